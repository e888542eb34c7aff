"""How gpu-suite runs its stages: what takes too long is killed with all that it started, and the sanitizer gets options that it knows."""

import json
import os
import pathlib
import subprocess
import tempfile
import time
import types
import unittest

import suite

ROOT = pathlib.Path(__file__).resolve().parents[2]
HANGS = "#!/bin/sh\nsetsid tail -f /dev/null & echo $!\nwait\n"
REPORTS = """#!/bin/sh
cat >"${1#--gtest_output=json:}" <<'REPORT'
{"testsuites": [{"testsuite": [{"classname": "A", "name": "Passes", "result": "COMPLETED"}, {"classname": "A", "name": "Skips", "result": "SKIPPED"},
 {"classname": "A", "name": "Fails", "result": "COMPLETED", "failures": [{"failure": "a.cc:1\\nExpected: b"}]}]}]}
REPORT
exit 1
"""
FINDS = "#!/bin/sh\necho '========= COMPUTE-SANITIZER'\necho '========= Invalid __global__ write of size 4 bytes'\nexec tail -f /dev/null\n"


class StagesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.programs = pathlib.Path(folder.name)
        self.suite = suite.Suite(types.SimpleNamespace(
            programs=self.programs, root=ROOT, libraries=None, emulated=True, commit="", json=self.programs / "results.json",
            seconds=suite.LIMIT), {"name": "a GPU"})
        (self.programs / "tests").mkdir()
        for name, text in ("hangs", HANGS), ("finds", FINDS), ("reports", REPORTS):
            (self.programs / "tests" / name).write_text(text)
            (self.programs / "tests" / name).chmod(0o755)

    @staticmethod
    def lives(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
        except OSError:
            return False

    def test_late_program_is_killed_with_all_that_it_started(self):
        code, output = self.suite.run([self.programs / "tests/hangs"], most=0)
        self.assertEqual(code, suite.LATE)
        self.assertRegex(output, r"^[0-9]+\n\nkilled after 1 s$")
        deadline = time.monotonic() + 20
        while self.lives(output.split()[0]):
            self.assertLess(time.monotonic(), deadline, "it lives on")

    def test_the_cases_of_a_program_are_counted(self):
        self.suite.google_test("cases", "reports")
        [stage] = self.suite.stages
        self.assertEqual((stage["passed"], stage["failed"], stage["skipped"], stage["words"]), (1, 1, 1, ["A.Fails: a.cc:1; Expected: b"]))

    def test_results_are_kept_part_by_part(self):
        self.suite.google_test("cases", "reports")
        kept = json.loads(self.suite.options.json.read_text())
        self.assertEqual([stage["name"] for stage in kept["stages"]], ["cases"])
        self.suite.reports["kernels"] = {"gpu": "a GPU"}
        self.suite.stage("gpu_kernels", 1, 0, 0, 2)
        kept = json.loads(self.suite.options.json.read_text())
        self.assertEqual(([stage["name"] for stage in kept["stages"]], kept["kernels"]), (["cases", "gpu_kernels"], {"gpu": "a GPU"}))
        self.assertEqual([path.name for path in self.programs.glob("results*")], ["results.json"])

    def test_a_tool_without_time_is_skipped_and_a_test_that_hangs_has_failed(self):
        self.suite.google_test("a tool", "hangs", tool=1)
        self.suite.begun -= suite.LIMIT
        self.suite.google_test("a test", "hangs")
        self.assertEqual([(stage["failed"], stage["skipped"]) for stage in self.suite.stages], [(0, 1), (1, 0)])

    def test_finding_of_a_tool_that_ran_out_of_time_is_a_failure(self):
        self.suite.google_test("a tool", "finds", tool=1)
        self.assertEqual([(stage["failed"], stage["skipped"], stage["words"]) for stage in self.suite.stages],
                         [(1, 0, ["========= Invalid __global__ write of size 4 bytes"])])

    def test_tools_without_time_are_not_begun(self):
        self.suite.options = types.SimpleNamespace(**vars(self.suite.options) | {"emulated": False, "sanitizer": "/nowhere"})
        self.suite.begun -= suite.LIMIT - suite.LEAST
        self.suite.sanitizers()
        self.assertEqual([stage["words"] for stage in self.suite.stages], [["no time is left for it"]] * 4)

    def test_libraries_that_nobody_finds_are_named(self):
        missing = self.suite.unloadable(["libc.so.6", "libnowhere.so.1"])
        self.assertEqual(list(missing), ["libnowhere.so.1"])
        self.assertRegex(missing["libnowhere.so.1"], "^libnowhere.so.1: cannot open shared object file")

    def test_the_sanitizer_knows_its_options(self):
        folder = subprocess.run([ROOT / "scripts/cuda-sanitizer", "--cached"], capture_output=True, text=True, timeout=300).stdout.strip()
        if not folder:
            self.skipTest("there is no compute-sanitizer: scripts/setup --cuda gets it")
        for tool in suite.TOOLS:
            # It begins, and the program never calls CUDA.
            output = subprocess.run([f"{folder}/bin/compute-sanitizer", *suite.sanitizer_options(tool), "/bin/true"], stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True, timeout=60, env=dict(os.environ, TMPDIR=str(self.programs))).stdout
            self.assertIn("before first instrumented API call", output)


if __name__ == "__main__":
    unittest.main()
