"""What a GPU is tested and measured by: runs the programs that scripts/gpu-suite has built, prints what comes of each, and writes it all as JSON.

Without a GPU (--emulated) the same programs run on the GPU of the tests: that shows that the suite works, and nothing else."""

import argparse
import glob
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time

# Of runtime_cuda_test, what is about a GPU itself: the rest is about errors that a real one does not have.
KERNELS = ":".join(f"*{name}*" for name in ("Attention", "Columns", "Conversion", "CrossEntropy", "Elementwise", "Embedding", "LayerNorm", "MatMul",
                                            "Adam", "GpuOptimizer", "SmallLosses", "TensorCore", "WeightsHash", "Windows"))
OURS = KERNELS + "-*MatMul*"   # without what runs cuBLASLt's alone
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
NOT_OURS = "regex=.*(cublas|cutlass|gemm|nvjet|xmma|splitK).*"   # kernels of cuBLASLt's, also on Hopper
LATE = 124   # the exit code of what was killed because its time was over
LEAST = 10   # seconds with which a tool is begun
WORDS = 12   # lines, of a failure
LIMIT = 600   # seconds, of all, unless --seconds says so
SANITIZERS = 100   # of these, where compute-sanitizer is installed
PARTS = ("kernels", "operators", "nccl", "jobs", "times", "generate", "training", "sanitizers")


def rounds(text):
    if not re.fullmatch("[1-9][0-9]{0,4}", text) or int(text) > 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 to 10000")
    return int(text)


def arguments():
    parser = argparse.ArgumentParser(prog="gpu-suite", description=__doc__.splitlines()[0])
    parser.add_argument("--programs", required=True, type=pathlib.Path, help="the folder with bin/, tests/ and benchmarks/")
    parser.add_argument("--root", required=True, type=pathlib.Path, help="the folder with tests/ and examples/")
    parser.add_argument("--libraries", help="a folder in which the programs look first")
    parser.add_argument("--commit", default="", help="what the programs were built from")
    parser.add_argument("--json", type=pathlib.Path, help="where the results go, part by part")
    parser.add_argument("--seconds", type=float, default=LIMIT, help=f"of all; what is under way then is killed (default: {LIMIT})")
    parser.add_argument("--emulated", action="store_true", help="on the GPU of the tests")
    parser.add_argument("--rounds", type=rounds, default=20, help="of each kernel's measurement")
    parser.add_argument("--only", action="append", choices=PARTS, help="of the suite; it may be given more than once (default: all)")
    parser.add_argument("--sanitizer", help="NVIDIA's compute-sanitizer, where PATH has none")
    parser.add_argument("--python", default=sys.executable, help="one that has PyTorch, if any, to train beside us (default: this one)")
    parser.add_argument("--check", action="store_true", help="only says what is wrong with the other options")
    options = parser.parse_args()
    if not options.programs.is_dir():
        parser.error(f"--programs {options.programs}: no such folder")
    if options.json and not options.json.absolute().parent.is_dir():
        parser.error(f"--json {options.json}: there is no folder {options.json.absolute().parent} to write it into")
    if options.json and options.json.exists() and not options.json.is_file():
        parser.error(f"--json {options.json}: it is there, and no regular file")
    if shutil.which(options.python) is None:
        parser.error(f"--python {options.python}: no such program")
    options.sanitizer = shutil.which("compute-sanitizer") or shutil.which(options.sanitizer or "")
    options.programs, options.root = options.programs.resolve(), options.root.resolve()
    return options


def library_folders(python):
    """Where wheels, this Python's and that one's, and toolkits keep libcublasLt and NCCL."""
    packages = {sysconfig.get_paths()["purelib"], *filter(lambda path: "packages" in path, sys.path)}
    if python != sys.executable:   # it has PyTorch, and what that brings
        ask = "import sys, sysconfig; print(sysconfig.get_paths()['purelib'], *filter(lambda path: 'packages' in path, sys.path), sep='\\n')"
        try:
            packages.update(subprocess.run([python, "-c", ask], capture_output=True, text=True, timeout=60).stdout.split("\n"))
        except subprocess.TimeoutExpired:
            sys.exit(f"gpu-suite: --python {python} does not answer within a minute")
    places = [f"{package}/nvidia/*/lib" for package in sorted(filter(None, packages))] + [f"{os.environ.get('CUDA_HOME', '/usr/local/cuda')}/lib64"]
    found = [folder for place in places for folder in sorted(glob.glob(place))]
    return [folder for folder in found if glob.glob(f"{folder}/libcublasLt.so.13*") or glob.glob(f"{folder}/libnccl.so.2*")]


def gpu():
    """What nvidia-smi says of the first GPU; None where it says nothing."""
    fields = ("name", "driver_version", "memory.total", "clocks.max.sm", "power.limit", "pci.bus_id")
    try:
        answer = subprocess.run(["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = answer.stdout.splitlines()
    return dict(zip(fields, map(str.strip, lines[0].split(",")))) if answer.returncode == 0 and lines else None


def end(pid):
    """Kills a process that we started and all that came of it, in whatever session."""
    parents = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rsplit(")", 1)[1].split()[1])
        except OSError:   # it has just ended
            pass
    family = [pid]
    for one in family:   # it grows
        family += [child for child, parent in parents.items() if parent == one]
    for one in family:
        try:
            os.kill(one, signal.SIGKILL)
        except ProcessLookupError:
            pass


def sanitizer_options(tool):
    return ["--tool", tool, "--error-exitcode", "9", "--kernel-name-exclude", NOT_OURS]


class Suite:
    def __init__(self, options, device):
        self.options = options
        self.device = device
        self.stages = []
        self.reports = {"kernels": None, "generate": None, "training": None}
        self.begun = time.monotonic()
        self.environment = dict(os.environ, PYTHONPATH=str(options.root / "tests/support"), PYTHONDONTWRITEBYTECODE="1")
        folders = [options.libraries, os.environ.get("LD_LIBRARY_PATH"), *([] if options.emulated else library_folders(options.python))]
        self.environment["LD_LIBRARY_PATH"] = ":".join(filter(None, folders))
        if not options.emulated:
            self.environment["PACELINE_TEST_GPU"] = "real"
            return
        for variable, path in (("PACELINE_FAKE_CUDA", "fake_cuda/libpaceline_fake_cuda.so"),
                               ("PACELINE_FAKE_CUBLASLT", "fake_cublaslt/libpaceline_fake_cublaslt.so"),
                               ("PACELINE_FAKE_NVML", "fake_nvml/libpaceline_fake_nvml.so"),
                               ("PACELINE_FAKE_NCCL", "fake_nccl/libpaceline_fake_nccl.so")):
            self.environment[variable] = str(options.programs / "tests/support" / path)

    def left(self):
        return self.options.seconds - (time.monotonic() - self.begun)

    def run(self, command, environment=None, most=LIMIT):
        """Exit code and output; what outlasts `most` seconds, or the suite's time, is killed with all that it has started: LATE."""
        seconds = max(min(self.left(), most), 1)
        process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                   env=environment or self.environment, start_new_session=True)
        try:
            output = process.communicate(timeout=seconds)[0]
            return process.returncode, output
        except subprocess.TimeoutExpired:
            end(process.pid)
            try:
                output = process.communicate(timeout=5)[0]
            except subprocess.TimeoutExpired as expired:   # somebody who is no longer a child keeps the pipe
                output = (expired.stdout or b"").decode(errors="replace")
            return LATE, f"{output}\nkilled after {seconds:.0f} s"
        finally:
            if process.poll() is None:   # ctrl-C
                end(process.pid)

    def unloadable(self, libraries):
        """Of these libraries those that no program here would find, with the loader's words."""
        found = {}
        for library in libraries:
            code, output = self.run([sys.executable, "-c", f"import ctypes; ctypes.CDLL({library!r})"], most=60)
            if code != 0:
                found[library] = output.strip().splitlines()[-1].removeprefix("OSError: ")
        return found

    def stage(self, name, passed, failed, skipped, seconds, words=()):
        self.stages.append({"name": name, "passed": passed, "failed": failed, "skipped": skipped, "seconds": round(seconds, 1), "words": list(words)})
        print(f"{name:28} {passed:5} passed {failed:3} failed {skipped:3} skipped {seconds:7.1f} s", flush=True)
        for word in words:
            print(f"    {word}", flush=True)
        self.keep()

    def keep(self):
        """Writes what is known by now: a part that hangs, or the machine's end, takes nothing of the parts before it along."""
        if self.options.json is None:
            return
        result = {"gpu": self.device, "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.release()}", "commit": self.options.commit,
                  "seconds": round(time.monotonic() - self.begun, 1), "stages": self.stages, **self.reports}
        partial = self.options.json.with_name(self.options.json.name + ".partial")
        partial.write_text(json.dumps(result, indent=1) + "\n")
        partial.replace(self.options.json)

    def google_test(self, name, program, *more, prefix=(), tool=None):
        """`tool`: seconds for one that may have no time to end, which then counts as skipped."""
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "report.json"
            code, output = self.run([*prefix, self.options.programs / "tests" / program, *more, f"--gtest_output=json:{report}"],
                                    most=tool or LIMIT)
            tests = []
            if report.exists():
                tests = [test for group in json.loads(report.read_text())["testsuites"] for test in group["testsuite"]]
        found = [line for line in output.splitlines() if re.match(r"=========\s+(?!COMPUTE-SANITIZER)\w|\[  FAILED  \]", line)]
        if tool and code == LATE and not found:
            return self.stage(name, 0, 0, 1, time.monotonic() - begun, ["its time was over before it came to an end: nothing is known"])
        bad = [test for test in tests if "failures" in test]
        skipped = [test for test in tests if test["result"] == "SKIPPED"]
        words = [f"{test['classname']}.{test['name']}: {'; '.join(test['failures'][0]['failure'].splitlines()[:WORDS])}" for test in bad]
        if code != 0 and not bad:   # crashed, or a tool found something
            words = found[:12] if code == LATE else output.strip().splitlines()[-12:]
        failed = len(bad) or (1 if code != 0 else 0)
        self.stage(name, max(len(tests) - len(bad) - len(skipped), 0), failed, len(skipped), time.monotonic() - begun, words)

    def sanitizers(self):
        tool = self.options.sanitizer
        if self.options.emulated or tool is None:
            self.stage("compute-sanitizer", 0, 0, len(TOOLS), 0, ["the GPU of the tests looks itself" if self.options.emulated else "it is not installed"])
            return
        for done, name in enumerate(TOOLS):
            share = (self.left() - 5) / (len(TOOLS) - done)
            if share < LEAST:
                self.stage(f"compute-sanitizer {name}", 0, 0, 1, 0, ["no time is left for it"])
                continue
            self.google_test(f"compute-sanitizer {name}", "runtime_cuda_test", f"--gtest_filter={OURS}", tool=share,
                             prefix=[tool, *sanitizer_options(name)])

    def runs(self):
        """Whole jobs."""
        begun = time.monotonic()
        code, output = self.run([sys.executable, self.options.root / "tests/integration/cli/gpu_runs_test.py", self.options.programs / "bin/paceline"])
        count = {word: len(re.findall(rf"\.\.\. {word}", output)) for word in ("ok", "FAIL", "ERROR", "skipped")}
        bad = count["FAIL"] + count["ERROR"]
        self.stage("jobs", count["ok"], bad or (1 if code != 0 else 0), count["skipped"], time.monotonic() - begun,
                   output.strip().splitlines()[-25:] if code != 0 else [])

    def kernels(self):
        """How fast they are; the report of gpu_kernels."""
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "kernels.json"
            emulated = ["--tiny", "--driver", self.environment.get("PACELINE_FAKE_CUDA", ""),
                        "--cublaslt", self.environment.get("PACELINE_FAKE_CUBLASLT", "")]
            code, output = self.run([self.options.programs / "benchmarks/gpu_kernels", *(emulated if self.options.emulated else []),
                                     "--rounds", self.options.rounds, "--json", report])
            print(output, end="", flush=True)
            told = json.loads(report.read_text()) if report.exists() else None
        sys.path.insert(0, str(self.options.root / "benchmarks"))
        import gpu_training_report
        limits = gpu_training_report.gpu_limits(told["gpu"]) if told else None
        if limits:
            told["limits"], told["kernels"] = limits, gpu_training_report.with_limits(told["kernels"], limits)
            print("\n".join(gpu_training_report.kernel_lines(told["kernels"])), flush=True)
        self.reports["kernels"] = told
        self.stage("gpu_kernels", int(code == 0), int(code != 0), 0, time.monotonic() - begun)

    def generate(self):
        """Tokens per second of text by a GPT-2 of random weights; benchmarks/generate."""
        begun = time.monotonic()
        options = self.options
        with tempfile.TemporaryDirectory() as folder:
            report, libraries = pathlib.Path(folder) / "generate.json", pathlib.Path(folder)
            kind, environment = ["--tokens", "256"], dict(self.environment, PACELINE_DEVICE="cuda")
            if options.emulated:
                kind = ["--size", "tiny", "--prompt", "2", "--tokens", "4"]
                for name, variable in (("libcuda.so.1", "CUDA"), ("libcublasLt.so.13", "CUBLASLT"), ("libnvidia-ml.so.1", "NVML")):
                    (libraries / name).symlink_to(environment[f"PACELINE_FAKE_{variable}"])
                environment["LD_LIBRARY_PATH"] = f"{libraries}:{environment['LD_LIBRARY_PATH']}"
            code, output = self.run([sys.executable, options.root / "benchmarks/generate", *kind, "--paceline", options.programs / "bin/paceline",
                                     "--json", report], environment)
            print(output, end="", flush=True)
            self.reports["generate"] = json.loads(report.read_text()) if report.exists() else None
            self.stage("generate", int(code == 0), int(code != 0), 0, time.monotonic() - begun)

    def training(self):
        """Whole trainings of GPT-2, beside PyTorch where it is; benchmarks/gpu_training."""
        begun = time.monotonic()
        options = self.options
        sanitizers = not options.emulated and "sanitizers" in options.only and options.sanitizer
        seconds = self.left() - (SANITIZERS if sanitizers else 0) - 10
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "training.json"
            kind = ["--tiny", "--without-torch", "--emulated", options.programs] if options.emulated else ["--python", options.python]
            # PyTorch has libraries of its own, which come before those of the bundle.
            code, output = self.run([sys.executable, options.root / "benchmarks/gpu_training", *kind, "--paceline", options.programs / "bin/paceline",
                                     "--libraries", self.environment["LD_LIBRARY_PATH"], "--seconds", int(seconds), "--json", report],
                                    dict(os.environ, PYTHONDONTWRITEBYTECODE="1"))
            print(output, end="", flush=True)
            self.reports["training"] = json.loads(report.read_text()) if report.exists() else None
            self.stage("gpu_training", int(code == 0), int(code != 0), 0, time.monotonic() - begun)


def main():
    options = arguments()
    if options.check:
        return
    device = {"name": "emulated"} if options.emulated else gpu()
    if device is None:
        sys.exit("gpu-suite: nvidia-smi names no GPU on this machine; --emulated runs the suite on the GPU of the tests, "
                 "--bundle packs it for a machine that has one")
    options.only = options.only or PARTS
    suite = Suite(options, device)
    missing = {} if options.emulated else suite.unloadable(["libcuda.so.1", "libcublasLt.so.13", "libnccl.so.2"])
    for library, where in (("libcuda.so.1", "NVIDIA's driver, 580 or newer"),
                           ("libcublasLt.so.13", "the CUDA 13 toolkit, or the wheel nvidia-cublas, or name a Python that has it: --python PATH")):
        if library in missing:
            sys.exit(f"gpu-suite: {missing[library]}; install {where}")
    if "kernels" in options.only:
        suite.google_test("kernels", "runtime_cuda_test", f"--gtest_filter={KERNELS}:GraphTest.*")
    if "operators" in options.only:
        suite.google_test("operators", "runtime_tensor_gpu_test")
        suite.google_test("scores of what follows", "runtime_generate_gpu_test")
        suite.google_test("optimizer steps", "runtime_optimizer_gpu_test")
    if "nccl" in options.only:   # of one rank: there is one GPU
        if "libnccl.so.2" in missing:
            suite.stage("nccl", 0, 0, 1, 0, [f"{missing['libnccl.so.2']}; python3 -m pip install nvidia-nccl-cu13"])
        else:
            suite.google_test("nccl", "runtime_nccl_test", "--gtest_filter=NcclOneRank.*")
    if "jobs" in options.only:
        suite.runs()
    if "times" in options.only:
        suite.kernels()
    if "generate" in options.only:
        suite.generate()
    if "training" in options.only:
        suite.training()
    if "sanitizers" in options.only:
        suite.sanitizers()   # last: they take what time is left
    failed = sum(stage["failed"] for stage in suite.stages)
    print(f"{sum(stage['passed'] for stage in suite.stages)} passed, {failed} failed, {sum(stage['skipped'] for stage in suite.stages)} skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
