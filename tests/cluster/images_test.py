"""Paceline's images: the Dockerfile says what is made without Docker, and a program needs nothing but what is in its image."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import unittest_report
from machine import image

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["PACELINE_BINARY_DIR"])


class DockerfileTest(unittest.TestCase):
    def test_the_dockerfile_says_what_the_images_without_docker_say(self):
        text = (ROOT / "images/Dockerfile").read_text().replace("\\\n", " ")
        stages = {stage.split()[2]: stage for stage in re.split(r"^FROM ", text, flags=re.MULTILINE)[1:]}
        self.assertEqual(set(stages) - {"build"}, set(image.IMAGES))
        for stem in image.IMAGES:
            says = dict(re.findall(r"^(USER|WORKDIR|ENTRYPOINT|LABEL|ENV|COPY) +(.*)$", stages[stem], re.MULTILINE))
            self.assertEqual({"Entrypoint": json.loads(says["ENTRYPOINT"]), "User": says["USER"], "WorkingDir": says["WORKDIR"],
                              "Env": [says["ENV"]], "Labels": dict(re.findall(r'(\S+)="([^"]*)"', says["LABEL"]))}, image.configuration(stem))
            self.assertEqual(says["COPY"], f"--from=build /image/{stem} /")
            self.assertIn(f"images/image_files.py {stem} --out /image/{stem}", stages["build"])
            self.assertIn(image.IMAGES[stem].program, re.search("^RUN scripts/build release (.*)$", stages["build"], re.MULTILINE)[1].split())


class ImageFilesTest(unittest.TestCase):
    """The folder that the Dockerfile copies has what the archive for the test cluster has, and its program runs from there."""

    def test_the_program_runs_with_nothing_but_its_image(self):
        for stem, made in image.IMAGES.items():
            with self.subTest(stem), tempfile.TemporaryDirectory() as folder:
                root = pathlib.Path(folder) / "root"
                image.layer(stem, BUILD).write_to(root)
                self.assertEqual({str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}, set(image.layer(stem, BUILD).files))
                self.assertEqual((root / "tmp").stat().st_mode & 0o7777, 0o1777)
                self.assertFalse((root / "bin/sh").exists())
                self.assertFalse([path for path in root.rglob("*") if path.is_file() and path.stat().st_mode & 0o6000])   # no setuid
                if os.getuid() == 0:
                    result = subprocess.run(["chroot", f"--userspec={image.NON_ROOT}:{image.NON_ROOT}", root, f"/usr/local/bin/{made.program}",
                                             "--version"], capture_output=True, text=True, timeout=60)
                    self.assertEqual(result.returncode, 0, result.stderr)
                    self.assertIn(image.version(), result.stdout)

    @unittest.skipUnless(BUILD.name == "release", "sanitizers and debug information are not small")
    def test_they_are_as_small_as_the_page_says(self):
        said = re.search(r"\((\d+) and (\d+) MB\)", (ROOT / "images/README.md").read_text())
        for stem, megabytes in zip(image.IMAGES, said.groups()):
            size = sum(len(content) for _, content in image.layer(stem, BUILD).files.values()) / 1e6
            self.assertLess(size, 80, stem)
            self.assertLess(abs(size / int(megabytes) - 1), 0.15, f"{stem} is of {size:.0f} MB; images/README.md says {megabytes}")

    def test_a_folder_that_has_something_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "file").touch()
            with self.assertRaisesRegex(image.ImageError, "is not empty"):
                image.Layer().write_to(folder)


if __name__ == "__main__":
    unittest_report.main("cluster_images_test")
