"""Builds the tests and runs each in the build that is its home, and counts single test cases.

The release build has the integration tests, asan the unit tests, tsan the programs that start threads (CMakePresets.json). A GoogleTest
program counts as its test cases (from its own JSON report), every other ctest entry as one. A program that crashed, hung or left no report
counts as one failure more. Prints the failures and the skips, the time of each stage, the slowest files and tests, and ends with the line
`N passed, N failed, N skipped`.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOMES = ("release", "asan", "tsan")
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
        self.stages, self.compiled, self.tested = [], [], []   # (seconds, name)


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


class Stage:
    """Notes how long it takes."""

    def __init__(self, counts, name):
        self.counts, self.name = counts, name

    def __enter__(self):
        print(f"test: {self.name}", flush=True)
        self.begun = time.monotonic()

    def __exit__(self, *_):
        self.counts.stages.append((time.monotonic() - self.begun, self.name))


def listed(preset, pattern):
    """The names of the build's tests that match."""
    found = subprocess.run(["ctest", "--test-dir", str(ROOT / "build" / preset), "-N", "-R", pattern], stdout=subprocess.PIPE, text=True, check=True)
    return re.findall(r"Test +#\d+: (\S+)", found.stdout)


def build(preset, pattern, counts):
    """False where nothing of this build matches. Ends the program where the build fails."""
    targets = ["all", "paceline_tests"] if preset == "release" else ["paceline_tests"]
    with Stage(counts, f"build {preset}"):
        if pattern:
            subprocess.run(["scripts/build", preset, "--configure"], cwd=ROOT, check=True)
            names = listed(preset, pattern)
            if not names:
                return False
            known = subprocess.run(["ninja", "-C", f"build/{preset}", "-t", "targets", "all"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
            programs = set(re.findall(r"^(\w+): phony$", known.stdout, re.MULTILINE))
            if programs.issuperset(names):
                targets = names
        log = ROOT / "build" / preset / ".ninja_log"
        before = set(log.read_text().splitlines()) if log.exists() else set()
        # A session of its own, at a low priority: tests that run beside it come first.
        subprocess.run(["nice", "scripts/build", preset, *targets], cwd=ROOT, check=True, start_new_session=True)
        for line in set(log.read_text().splitlines()) - before:
            begun, ended, _, output, *_ = (*line.split("\t"), "", "", "")
            if output.endswith((".o", ".fatbin")):
                counts.compiled.append(((int(ended) - int(begun)) / 1000, f"{preset}: {re.sub(r'CMakeFiles/|[^/]*[.]dir/|[.]o$', '', output)}"))
    return True


def run(preset, name, selection, counts, output=None):
    """OUTPUT: the file that ctest's words go to."""
    with tempfile.TemporaryDirectory() as reports, Stage(counts, name):
        junit = pathlib.Path(reports) / "ctest.xml"
        command = ["ctest", "--test-dir", str(ROOT / "build" / preset), "--output-on-failure", "--output-junit", str(junit),
                   "--no-tests=error", "--parallel", str(os.cpu_count()), *selection]
        environment = dict(os.environ, GTEST_OUTPUT=f"json:{reports}/", **SANITIZER_OPTIONS)
        environment["PATH"] = f"{TEST_VENV}/bin:{environment['PATH']}"
        status = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output and subprocess.STDOUT).returncode
        if not junit.exists():
            counts.failed.append(f"{preset}: ctest itself failed with status {status}")
            return
        for entry in xml.etree.ElementTree.parse(junit).getroot().iter("testcase"):
            name, before = f"{preset}: {entry.get('name')}", len(counts.failed)
            counts.tested.append((float(entry.get("time") or 0), name))
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


def run_everything(counts):
    """Tests on a real cluster mostly wait: they run beside all that follows the build that they need."""
    build("release", "", counts)
    with tempfile.TemporaryFile("w+") as output, concurrent.futures.ThreadPoolExecutor(1) as beside:
        cluster = beside.submit(run, "release", "tests on a real Kubernetes, beside the next stages", ["-L", "cluster"], counts, output)
        try:
            for preset in ("asan", "tsan"):
                build(preset, "", counts)
            for preset in ("asan", "tsan"):
                run(preset, f"tests of {preset}", [], counts)
        finally:
            cluster.result()
            output.seek(0)
            print(output.read(), flush=True)
    run("release", "tests of release", ["-LE", "cluster"], counts)


def clock(seconds):
    return f"{int(seconds) // 60:4}:{int(seconds) % 60:02}"


def print_times(counts):
    print("\nStages (min:s):")
    for seconds, name in counts.stages:
        print(f"  {clock(seconds)}  {name}")
    for title, times in (("Slowest to compile", counts.compiled), ("Slowest tests", counts.tested)):
        if times:
            print(f"\n{title} ({len(times)} took {sum(seconds for seconds, _ in times):.0f} s in all):")
            for seconds, name in sorted(times, reverse=True)[:10]:
                print(f"  {seconds:7.1f}  {name}")


def main():
    begun = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", action="append", default=[])
    parser.add_argument("--filter", default="")
    parser.add_argument("--setup-seconds", type=int, default=0)
    arguments = parser.parse_args()
    counts = Counts()
    counts.stages.append((arguments.setup_seconds, "set-up"))
    try:
        if arguments.preset or arguments.filter:
            for preset in arguments.preset or HOMES:
                if build(preset, arguments.filter, counts):
                    run(preset, f"tests of {preset}", ["-R", arguments.filter] if arguments.filter else [], counts)
        else:
            run_everything(counts)
    except subprocess.CalledProcessError as error:
        counts.failed.append(f"{' '.join(error.cmd)}: exit code {error.returncode}")
    for title, names in (("Skipped", counts.skipped), ("FAILED", counts.failed)):
        if names:
            print(f"\n{title}:")
            print("\n".join(f"  {name}" for name in names))
    print_times(counts)
    print(f"  {clock(arguments.setup_seconds + time.monotonic() - begun)}  in all")
    print(f"\n{counts.passed} passed, {len(counts.failed)} failed, {len(counts.skipped)} skipped")
    sys.exit(1 if counts.failed or counts.passed == 0 else 0)


if __name__ == "__main__":
    main()
