"""The paceline program where pipes lie in the places of a run's files, and where the machine starts no more threads."""

import contextlib
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import unittest

import unittest_report
from cli_support import DIGITS, PACELINE, SANITIZED, SLOW, CliCase, job, until

WAITS = 30 * SLOW   # seconds; whoever takes so long waits for a pipe's other end

GPT = """
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {{name: letters}}
spec:
  replicaSpecs: {{worker: {{}}}}
  training:
    model: {{type: gpt, layers: 1, heads: 2, width: 32, blockSize: 48, vocabularySize: 256}}
    data: {{format: text, train: {{inputs: {text}}}}}
    optimizer: {{type: AdamW, learningRate: 0.01, clipNorm: 1}}
    globalBatchSize: 8
    steps: 20
"""

SANITIZERS = 1 if "/tsan/" in PACELINE else 0   # the thread that ThreadSanitizer has of its own in each process


class Pipes(CliCase):
    """A pipe that nobody has at its other end would be waited for, for good."""

    def trained(self, name):
        file = self.write(job(steps=20, extra="  checkpoint: {everySteps: 10}"), f"{name}.yaml")
        self.assertEqual(self.paceline("run", file, "--name", name).returncode, 0)
        return file, self.state / "runs" / name

    @staticmethod
    def replace(path):
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        return f"{re.escape(str(path))} is a pipe, not a regular file"

    def test_commands_say_which_of_a_runs_files_is_a_pipe(self):
        file, run = self.trained("piped")
        log = next((run / "logs").glob("*-0.log"))
        for path, command, code in ((log, ("logs", "piped"), 4), (log, ("logs", "piped", "--tail", "2"), 4), (run / "metrics.jsonl", ("plot", "piped"), 2),
                                    (run / "events.jsonl", ("describe", "piped"), 0), (run / "status.json", ("describe", "piped"), 0),
                                    (run / "job.yaml", ("generate", "piped"), 2)):
            with self.subTest(path=path.name, command=command):
                if not path.is_fifo():
                    self.words = self.replace(path)
                result = self.paceline(*command, timeout=WAITS)
                self.assertEqual(result.returncode, code, result)
                self.assertRegex(result.stdout + result.stderr, self.words)
        # Now all of them are pipes, and these go on.
        self.replace(run / "lock")
        for command in (("get",), ("get", "piped"), ("top", "--once", "piped"), ("generate",), ("delete", "piped")):
            with self.subTest(command=command):
                result = self.paceline(*command, timeout=WAITS)
                self.assertIn(result.returncode, (0, 2, 3), result)

    def test_a_run_is_gone_on_with_or_says_what_is_a_pipe(self):
        file, run = self.trained("resumed")
        (run / "status.json").unlink()
        os.mkfifo(run / "status.json")
        self.assertEqual(self.paceline("run", file, "--resume", "resumed", timeout=120).returncode, 0, "its status is made anew")
        self.assertEqual(self.status("resumed")["phase"], "Succeeded")
        for name in ("job.yaml", "metrics.jsonl", "events.jsonl", "status.json.tmp", "lock"):
            with self.subTest(name):
                before = (run / name).read_bytes() if (run / name).exists() else None
                words = self.replace(run / name)
                result = self.paceline("run", file, "--resume", "resumed", timeout=WAITS)
                if name != "status.json.tmp":   # of the looks at a run that goes on, which are not needed
                    self.assertNotEqual(result.returncode, 0)
                self.assertRegex(result.stderr + result.stdout, words)
                (run / name).unlink()
                if before is not None:
                    (run / name).write_bytes(before)

    def test_a_job_that_a_user_names_may_be_a_pipe(self):
        pipe = self.folder / "job.pipe"
        os.mkfifo(pipe)
        process = self.start("run", pipe, "--name", "by-pipe")
        pipe.write_text(job(steps=20))   # once it reads
        self.assertEqual(process.wait(WAITS), 0)
        result = subprocess.run(["bash", "-c", '"$0" --state-dir "$1" run <(printf %s "$2") --name by-substitution', PACELINE, self.state, job(steps=20)],
                                capture_output=True, text=True, timeout=WAITS)
        self.assertEqual(result.returncode, 0, result.stderr)
        for name in ("-", "/dev/stdin"):
            result = self.paceline("run", name, "--name", "by" + name.replace("/", "-"), stdin=job(steps=20), timeout=WAITS)
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_who_waits_for_a_job_can_be_interrupted(self):
        pipe = self.folder / "job.pipe"
        os.mkfifo(pipe)
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start("run", pipe)
            until(lambda: sleeps(process.pid), WAITS, "it waits for who writes")
            process.send_signal(number)
            self.assertEqual(process.wait(WAITS), -number)
        self.assertFalse((self.state / "runs").exists())


class Threads(CliCase):
    """gRPC does not say that it could not start its threads, and waits for them at its end, for good."""

    user = 61200

    def setUp(self):
        super().setUp()
        if os.getuid() != 0:
            self.skipTest("only root can become a user without other processes")
        # All that is read lies where everybody may read; a clone in root's home does not.
        os.chmod(self.folder, 0o777)
        self.programs = self.folder / "bin"
        self.programs.mkdir()
        for name in ("paceline", "paceline-pod", "paceline-worker"):
            shutil.copy(pathlib.Path(PACELINE).parent / name, self.programs)
        shutil.copy(DIGITS, self.folder)
        self.job = self.write(job(steps=20, chief=False).replace(str(DIGITS), str(self.folder / DIGITS.name)))

    def limited(self, most, *arguments, environment=None, program="paceline"):
        Threads.user += 1   # nobody else's processes count
        user = self.user

        def few():
            os.setgid(user)
            os.setuid(user)
            resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
        state = self.folder / f"state-{user}"
        return subprocess.run([self.programs / program, *(("--state-dir", state) if "run" in arguments else ()), *map(str, arguments)],
                              capture_output=True, text=True, timeout=WAITS, preexec_fn=few, env={**os.environ, **(environment or {})})

    def test_a_run_that_lacks_threads_begins_nothing_and_names_the_limit(self):
        needs = 0
        for most in range(4, 200, 5):
            result = self.limited(most, "run", self.job)
            if result.returncode == 0:
                break
            self.assertEqual((result.returncode, result.stdout), (4, ""), (most, result))
            told = re.search(rf"^paceline: this needs (\d+) more threads and processes, and the system starts (\d+): "
                             rf"\d+ of the {most} that ulimit -u allows user {self.user} are in use", result.stderr)
            self.assertTrue(told, result.stderr)
            self.assertLess(int(told[2]), int(told[1]))
            self.assertEqual(int(told[1]), needs or int(told[1]))
            needs = int(told[1])
            self.assertFalse((self.folder / f"state-{self.user}" / "runs").exists())
        self.assertEqual(result.returncode, 0, "with room for what it says it runs")
        self.assertGreaterEqual(most, needs)
        self.nothing_left()

    def test_a_member_that_lacks_threads_says_so(self):
        member = {"PACELINE_COORDINATOR": "127.0.0.1:1", "PACELINE_JOB": "n/j", "PACELINE_ROLE": "worker", "PACELINE_INDEX": "0", "PACELINE_POD": "p",
                  "PACELINE_POD_UID": "u", "PACELINE_TOKEN": "0123456789abcdef", "PACELINE_THREADS": "1"}
        result = self.limited(10 + SANITIZERS, environment=member, program="paceline-worker")
        self.assertEqual(result.returncode, 1, result)
        self.assertRegex(result.stderr, f"error .*worker-0: this needs .* the system starts 8: {2 + SANITIZERS} of the {10 + SANITIZERS} "
                                        "that ulimit -u allows")

    @unittest.skipIf(SANITIZED, "a sanitizer must be loaded first")
    def test_who_lacks_one_of_grpcs_threads_tells_how_it_ended_and_ends(self):
        """Somebody else took it after the run had asked."""
        needs = int(re.search(r"needs (\d+) more", self.limited(4, "run", self.job).stderr)[1])
        held_up = ended_at_once = 0
        for thread in range(needs, needs + 16):
            lacks = {"LD_PRELOAD": os.environ["PACELINE_SCARCE_THREADS"], "PACELINE_SCARCE_PROGRAM": "paceline", "PACELINE_SCARCE_THREAD": str(thread)}
            process = self.start("run", self.job, "--name", f"lacks-{thread}", environment=lacks)
            until(lambda: (self.status(f"lacks-{thread}") or {}).get("phase") in ("Succeeded", "Failed") or process.poll() is not None, 60, "it ends")
            status = self.status(f"lacks-{thread}")
            if held_up and process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(1)
                ended_at_once += process.poll() is None
                process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=WAITS + 30)
            expected = {"Succeeded": 0, "Failed": 1}.get(status["phase"], 4)
            self.assertIn(process.returncode, (expected, 4), (thread, errors))   # 4: a thread of our own, and the run has failed, too
            held_up += "a library held it up for 10 s" in errors
            if ended_at_once:
                break
        self.assertEqual((held_up, ended_at_once), (1, 1), "one waited to its limit, the next to ctrl-C")

    def train_a_gpt(self):
        """Its state folder, which everybody may read."""
        (self.folder / "letters.txt").write_text("abcdefghijklmnopqrstuvwx\n" * 200)
        path = self.write(GPT.format(text=self.folder / "letters.txt"), "letters.yaml")
        result = self.paceline("run", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        return self.state

    def test_generate_that_lacks_threads_says_so(self):
        state = self.train_a_gpt()
        for most, started in ((2, 0), (4, 2)):   # beside the main thread and the one that hears ctrl-C
            result = self.limited(most + SANITIZERS, "generate", "--state-dir", state, "--threads", "4", program="paceline")
            self.assertEqual((result.returncode, result.stdout), (4, ""), result)
            self.assertRegex(result.stderr, f"^paceline: this needs 3 more threads and processes, and the system starts {started}: "
                                            f"{2 + SANITIZERS} of the {most + SANITIZERS} that ulimit -u allows")
        result = self.limited(5 + SANITIZERS, "generate", "--state-dir", state, "--threads", "4", "--tokens", "5", program="paceline")
        self.assertEqual(result.returncode, 0, result.stderr)

    @unittest.skipIf(SANITIZED, "sanitizers need the address space")
    def test_generate_without_address_space_says_so(self):
        state = self.train_a_gpt()
        lacked = 0
        for kib in range(90 << 10, 130 << 10, 1 << 10):
            result = subprocess.run([PACELINE, "--state-dir", state, "generate", "--threads", "1", "--tokens", "20"], capture_output=True, timeout=WAITS,
                                    preexec_fn=lambda most=kib << 10: resource.setrlimit(resource.RLIMIT_AS, (most, most)))
            self.assertIn(result.returncode, (0, 4, 127), (kib, result))   # 127: its libraries could not be loaded
            lacked += result.returncode == 4
        self.assertEqual(result.returncode, 0, "130 MiB are enough")
        self.assertGreater(lacked, 0)


def sleeps(pid):
    """Whether it waits for something."""
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "S"


if __name__ == "__main__":
    unittest_report.main("cli_scarcity_test")
