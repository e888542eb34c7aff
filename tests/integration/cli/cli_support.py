"""What the tests of the paceline program share: a job, a folder and a state folder for each test, looks at processes."""

import array
import contextlib
import json
import os
import pathlib
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

PACELINE = os.path.abspath(sys.argv.pop(1))
ROOT = pathlib.Path(__file__).resolve().parents[3]
DIGITS = ROOT / "examples/data/digits.csv.gz"
# Under a sanitizer everything is slower; bounds that users are promised are asserted in the release build.
SANITIZED = any(name in PACELINE for name in ("/asan/", "/tsan/"))
SLOW = 10 if SANITIZED else 1
# Of a run that is killed or interrupted: no machine is so fast that it is over before that.
ENDLESS = 100_000_000


def job(members=2, steps=200, extra="", name="digits", transport="Auto", chief=True, strategy="", roles="", momentum=0.9, batch=64, every=100):
    """A job on the digits, by all-reduce where no `strategy` is given; `roles`: those beside the chief and the workers."""
    workers = members - 1 if chief else members
    return f"""
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {{name: {name}}}
spec:
  strategy: {strategy or f"{{allReduce: {{transport: {transport}}}}}"}
  replicaSpecs:
    {"chief: {}" if chief else ""}
    worker: {{replicas: {workers}}}
    {roles}
  training:
    model: {{type: mlp, hidden: [32], classes: 10}}
    data: {{format: csv, train: {{inputs: {DIGITS}}}, testFraction: 0.2, normalize: {{scale: 0.0625}}}}
    optimizer: {{type: SGD, learningRate: 0.1, momentum: {momentum}}}
    globalBatchSize: {batch}
    steps: {steps}
    evaluation: {{everySteps: {every}}}
{extra}
"""


def processes_with(text):
    """Command lines and environments of all processes that mention `text`."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes() + pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
            cwd = os.readlink(f"/proc/{pid}/cwd")
            state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
            if state != "Z" and (text.encode() in environment or text in cwd):
                found.append(int(pid))
    return found


def is_stopped(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"
    return False


def until(condition, seconds, what):
    """Waits for a condition, looking often; fails the test after `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        select.select([], [], [], 0.02)
    raise AssertionError(f"not within {seconds} s: {what}")


def member_of(status, name):
    """The member "worker-1" of a run's status."""
    return next(m for m in status["members"] if f"{m['role']}-{m['index']}" == name)


def tensors_of(path):
    """All values of a safetensors file of F32 and I64 tensors, by name."""
    data = pathlib.Path(path).read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = array.array({"F32": "f", "I64": "q"}[entry["dtype"]], data[8 + length + begin:8 + length + end])
    return tensors


class CliCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="paceline-cli-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.state = self.folder / "state"

    def paceline(self, *arguments, timeout=120, stdin=None, preexec_fn=None, program=PACELINE):
        return subprocess.run([program, "--state-dir", self.state, *map(str, arguments)], capture_output=True, text=True,
                              timeout=timeout, input=stdin, preexec_fn=preexec_fn)

    def ends(self, code, *arguments, **options):
        """The result of a command, which ends with `code`."""
        result = self.paceline(*arguments, **options)
        self.assertEqual(result.returncode, code, result)
        return result

    def events(self, *arguments, timeout=600):
        """The events of a run that goes well."""
        result = self.ends(0, "run", *arguments, "--output", "json", timeout=timeout)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def start(self, *arguments, environment=None, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "start_new_session": True, **options}
        process = subprocess.Popen([PACELINE, "--state-dir", self.state, *map(str, arguments)], text=True,
                                   env={**os.environ, **(environment or {})}, **options)

        def end():
            if process.poll() is None:
                process.kill()
            process.communicate()
        self.addCleanup(end)
        return process

    def outcome(self, code, process, seconds):
        """The output and the errors of a process that ends with `code` within so many seconds."""
        output, errors = process.communicate(timeout=seconds)
        self.assertEqual(process.returncode, code, errors)
        return output, errors

    def start_endless(self, *options, members=2, extra="", **how):
        """A run of "digits" that trains until it is stopped, and its status once it trains."""
        process = self.start("run", self.write(job(members=members, steps=ENDLESS, extra=extra)), *options, **how)
        return process, self.training("digits", members)

    def stop(self, process, number=signal.SIGINT, seconds=20):
        """Stops a run by a signal, in order."""
        process.send_signal(number)
        self.assertEqual(process.wait(seconds * SLOW), 130)

    def stop_at_once(self, process, number=signal.SIGINT):
        """Asks a run that is stopping until it ends: signals of the same half second are one request."""
        until(lambda: process.poll() is not None or process.send_signal(number), 10 * SLOW, "a second request stops it at once")

    @contextlib.contextmanager
    def standing_still(self, process):
        """While a command stands still it finds no member silent, however long the test takes meanwhile. Signals that it is sent it takes afterwards."""
        os.kill(process.pid, signal.SIGSTOP)
        try:
            until(lambda: is_stopped(process.pid), 10, "it is stopped")
            yield
        finally:
            os.kill(process.pid, signal.SIGCONT)

    def stopping_with_frozen_members(self, number):
        """A run of frozen members that says, after this signal, that it is stopping."""
        process, status = self.start_endless()
        with self.standing_still(process):   # else it may find them frozen before it is interrupted
            for member in status["members"]:
                os.kill(member["pid"], signal.SIGSTOP)
            process.send_signal(number)
        for line in process.stdout:
            if "stopping" in line:
                break
        return process

    def within(self, limit, experiment):
        """Runs `experiment`, which returns how many seconds something took, at most three times, each in a state folder of its own, until that is below
        `limit`: a machine busy with other things may spoil one try, a promise that isn't kept spoils them all."""
        took = []
        for attempt in range(3):
            self.state = self.folder / f"state-{attempt}"
            took.append(experiment())
            if SANITIZED or took[-1] < limit:   # users are promised bounds of the release build
                return
        self.fail(f"not below {limit} s: took {', '.join(f'{seconds:.2f}' for seconds in took)} s")

    def write(self, text, name="job.yaml"):
        path = self.folder / name
        path.write_text(text)
        return path

    def status(self, run):
        with contextlib.suppress(OSError, ValueError):
            return json.loads((self.state / "runs" / run / "status.json").read_text())
        return None

    def training(self, run, members):
        """The run's status once it has taken steps."""
        def look():
            status = self.status(run)
            ready = status and status["step"] > 0 and len([m for m in status["members"] if m.get("pid")]) == members
            return status if ready else None
        return until(look, 20 * SLOW, f"run {run} trains")

    def nothing_left(self):
        until(lambda: not processes_with(str(self.folder)), 5 * SLOW, "all processes of the run are gone")
