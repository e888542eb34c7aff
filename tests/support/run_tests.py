"""Runs ctest in one or more builds and counts single test cases.

A GoogleTest program counts as its test cases (from its own JSON report), every other ctest entry as one. A program that
crashed, hung or left no report counts as one failure more. Prints what failed or was skipped, and ends with the line
`N passed, N failed, N skipped`.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
# scripts/setup makes it: tests that need Python packages find them there.
TEST_VENV = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "paceline/test-venv"
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=1:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": f"suppressions={ROOT}/tests/support/tsan.supp:halt_on_error=1:second_deadlock_stack=1",
    "LSAN_OPTIONS": f"suppressions={ROOT}/tests/support/lsan.supp",
}


class Counts:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, [], []


def count_gtest(report, name, counts):
    for suite in json.loads(report.read_text())["testsuites"]:
        for case in suite["testsuite"]:
            title = f"{name}: {suite['name']}.{case['name']}"
            if case.get("status") == "NOTRUN":
                counts.skipped.append(f"{title} (disabled)")
            elif "failures" in case:
                counts.failed.append(title)
            elif case.get("result") == "SKIPPED":
                counts.skipped.append(title)
            else:
                counts.passed += 1


def run(preset, label, pattern, counts):
    build = ROOT / "build" / preset
    with tempfile.TemporaryDirectory() as reports:
        junit = pathlib.Path(reports) / "ctest.xml"
        command = ["ctest", "--test-dir", str(build), "--output-on-failure", "--output-junit", str(junit),
                   "--no-tests=error", "--parallel", str(os.cpu_count())]
        if label:
            command += ["-L", label]
        if pattern:
            command += ["-R", pattern]
        environment = dict(os.environ, GTEST_OUTPUT=f"json:{reports}/", **SANITIZER_OPTIONS)
        environment["PATH"] = f"{TEST_VENV}/bin:{environment['PATH']}"
        status = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL).returncode
        if not junit.exists():
            counts.failed.append(f"{preset}: ctest itself failed with status {status}")
            return
        entries = xml.etree.ElementTree.parse(junit).getroot().iter("testcase")
        for entry in entries:
            name, before = f"{preset}: {entry.get('name')}", len(counts.failed)
            passed = entry.get("status") == "run" and entry.find("failure") is None
            report = pathlib.Path(reports) / f"{entry.get('name')}.json"
            if report.exists():
                count_gtest(report, name, counts)
                if not passed and len(counts.failed) == before:
                    counts.failed.append(f"{name} (exit status, though every case passed)")
            elif entry.find("skipped") is not None:
                counts.skipped.append(name)
            elif passed:
                counts.passed += 1
            else:
                counts.failed.append(f"{name} (crashed, timed out, or a script's failure)")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--label", default="")
    parser.add_argument("--filter", default="")
    parser.add_argument("presets", nargs="+")
    arguments = parser.parse_args()
    counts = Counts()
    for preset in arguments.presets:
        run(preset, arguments.label, arguments.filter, counts)
    for title, names in (("Skipped", counts.skipped), ("FAILED", counts.failed)):
        if names:
            print(f"\n{title}:")
            print("\n".join(f"  {name}" for name in names))
    print(f"\n{counts.passed} passed, {len(counts.failed)} failed, {len(counts.skipped)} skipped")
    sys.exit(1 if counts.failed or counts.passed == 0 else 0)


if __name__ == "__main__":
    main()
