"""examples/custom-model as its reader would build and run it: against an installed Paceline, in a folder of its own.

usage: custom_model_test.py SOURCE_DIR BUILD_DIR CXX_COMPILER
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD, COMPILER = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]


def run(*command, **options):
    result = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            timeout=280, **options)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit code {result.returncode}\n{result.stdout}")
    return result.stdout


class CustomModel(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="paceline-test-")
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)

    def test_builds_against_an_installed_paceline_and_trains(self):
        prefix, project = self.root / "prefix", self.root / "project"
        run("cmake", "--install", BUILD, "--prefix", prefix, "--component", "Development")
        shutil.copytree(SOURCE / "examples/custom-model", project, ignore=shutil.ignore_patterns("build"))
        run("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
            f"-DCMAKE_CXX_COMPILER={COMPILER}", "-DCMAKE_BUILD_TYPE=Release")
        run("cmake", "--build", project / "build", "-j2")

        environment = dict(os.environ, XDG_STATE_HOME=str(self.root / "state"), NO_COLOR="1")
        output = run(BUILD / "bin/paceline", "run", project / "job.yaml", env=environment)
        self.assertIn("target accuracy >= 0.99 is reached", output)
        models = list((self.root / "state").rglob("model.safetensors"))
        self.assertEqual(len(models), 1, output)
        self.assertIn(b"block1.norm.gain", models[0].read_bytes()[:4096])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
