"""The paceline program where the machine, its reader or its user is difficult: no memory, a full pipe, signals, two at once."""

import fcntl
import json
import os
import pathlib
import pty
import re
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import termios
import time
import unittest

import unittest_report
from cli_support import DIGITS, ENDLESS, PACELINE, SANITIZED, SLOW, CliCase, is_stopped, job, processes_with, until


def limited(kind, value):
    return lambda: resource.setrlimit(kind, (value, value))


def read_terminal(descriptor, seconds):
    """All that comes from a terminal until its other end closes."""
    text = b""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not select.select([descriptor], [], [], 0.1)[0]:
            continue
        try:
            piece = os.read(descriptor, 65536)
        except OSError:
            break
        if not piece:
            break
        text += piece
    return text


def sleeps(pid):
    """Whether it waits for something."""
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "S"


class HardEdges(CliCase):
    def on_terminal(self, *command, columns=80, rows=24, seconds=20, environment=None):
        """All that a command, which goes well, writes to a terminal of this size."""
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        process = self.start(*command, stdout=theirs, environment=environment)
        os.close(theirs)
        text = read_terminal(ours, seconds)
        self.assertEqual(process.wait(10), 0)
        return text

    def in_shell(self, redirections, *command):
        """The result of a command whose standard files a shell redirects."""
        return subprocess.run(["sh", "-c", f'exec "$@" {redirections}', "sh", PACELINE, "--state-dir", self.state, *command],
                              capture_output=True, text=True, timeout=120)

    def test_closed_standard_files_are_nobodys(self):
        file = self.write(job(steps=20))
        for number, closed in enumerate(("<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-")):
            with self.subTest(closed):
                name = f"closed-{number}"
                result = self.in_shell(closed, "run", file, "--name", name)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(self.status(name)["phase"], "Succeeded")
                lock = self.state / "runs" / name / "lock"
                self.assertNotIn("paceline", lock.read_text(), "what is printed is in no file of the run")

    def test_output_that_went_nowhere_is_noticed(self):
        self.write_log(b"a line\n")
        path = self.write(job())
        commands = (("get",), ("describe", "old"), ("logs", "old", "worker-0"), ("top", "old"), ("run", "--help"), ("explain", path), ("validate", path),
                    ("completion", "bash"), ("simulate", "stragglers", "--steps", "1", "--workers", "2", "--json"), ("--help",), ("--version",))
        for where, words in ((">&-", "standard output is closed"), ("</dev/null >&0", "standard output is closed, or open for reading alone"),
                             (">/dev/full", "is its disk full")):
            for command in commands:
                with self.subTest(command=command[0], where=where):
                    result = self.in_shell(where, *command)
                    self.assertEqual(result.returncode, 4, result)
                    self.assertRegex(result.stderr, f"^paceline: the output could not be written.*{words}")
        # A run trains on all the same.
        result = self.in_shell(">/dev/full", "run", self.write(job(steps=20)))
        self.assertEqual(result.returncode, 4, result)
        self.assertRegex(result.stderr, "^paceline: the output could not be written")
        self.assertEqual(self.status("digits")["phase"], "Succeeded")
        # Who has nothing to print loses nothing.
        self.write_log(b"")
        result = self.in_shell(">&-", "logs", "old", "worker-0")
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def running_pids(self):
        """The pods' own processes, by name: chief-0, worker-0, ..."""
        pids = {}
        for pid in processes_with(str(self.folder)):
            try:
                environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if not words[0].endswith(b"paceline-worker"):
                continue
            values = dict(entry.split(b"=", 1) for entry in environment if b"=" in entry)
            pids[f"{values[b'PACELINE_ROLE'].decode().lower()}-{values[b'PACELINE_INDEX'].decode()}"] = pid
        return pids

    # ---- limits of the machine

    @unittest.skipIf(SANITIZED, "sanitizers need the address space")
    def test_too_little_address_space_is_an_error_not_an_abort(self):
        for megabytes in (100, 200, 300):
            result = self.ends(4, "run", self.write(job()), preexec_fn=limited(resource.RLIMIT_AS, megabytes << 20))
            self.assertIn("ulimit -v", result.stderr)
            self.assertFalse((self.state / "runs").exists(), "nothing was begun")

    @unittest.skipIf(SANITIZED, "sanitizers need the address space")
    def test_a_job_takes_the_address_space_that_it_needs(self):
        servers = job(steps=20).replace("{allReduce: {transport: Auto}}", "{type: ParameterServer}").replace("worker:", "ps: {replicas: 2}\n    worker:")
        for text in (job(steps=20), servers):
            self.ends(0, "run", self.write(text), preexec_fn=limited(resource.RLIMIT_AS, 4 << 30))

    def fails_for_memory(self, text, **limits):
        """The error of a run whose members find no room before they make any weights."""
        result = self.ends(1, "run", self.write(text), "--name", "large", **limits)
        status = self.status("large")
        self.assertEqual((status["phase"], status["reason"], status["step"]), ("Failed", "MemberOutOfMemory", 0))
        need, free = map(int, re.search(r"they need (\d+) MiB .* and (\d+) MiB are ", status["message"]).groups())
        self.assertLess(free, need)
        self.assertNotIn("GPU", status["message"])
        return need, status["message"].splitlines()[0], result.stderr

    @unittest.skipIf(SANITIZED, "sanitizers need the address space")
    def test_a_model_beyond_the_address_space_is_refused_before_it_is_made(self):
        for members in (1, 2):
            with self.subTest(members=members):
                text = job(members=members, momentum=0).replace("[32]", "[20000, 20000]")
                need, message, errors = self.fails_for_memory(text, preexec_fn=limited(resource.RLIMIT_AS, 2 << 30))
                self.assertGreaterEqual(need, 2 * 1532, "401.5 million weights and their gradient")
                self.assertIn("ulimit -v", message)
                self.assertIn(message, errors)
                self.paceline("delete", "large")

    def test_a_model_beyond_the_machines_memory_is_refused_before_it_is_made(self):
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        width = int((memory / 2) ** 0.5)
        need, message, _ = self.fails_for_memory(job(members=2, momentum=0).replace("[32]", f"[{width}, {width}]"))
        self.assertGreater(need << 20, 3 * memory, "weights and gradient of twice the memory each")
        self.assertNotIn("ulimit", message)

    def test_too_few_descriptors_are_named(self):
        result = self.ends(4, "run", self.write(job()), preexec_fn=limited(resource.RLIMIT_NOFILE, 20))
        self.assertRegex(result.stderr, r"file descriptors.*ulimit -n")
        self.assertFalse((self.state / "runs").exists(), "nothing was begun")

    def test_an_interval_is_no_octal_number(self):
        self.write_log(b"")
        result = self.ends(2, "top", "--once", "--interval", "010")
        self.assertIn('--interval: "010" is no number from 0.1 to 3600: it begins with a zero', result.stderr)
        self.assertEqual(self.paceline("top", "--once", "--interval", "0.5").returncode, 0)

    def test_logs_are_all_there_or_an_error(self):
        logs = self.write_log(b"").parent
        for worker in range(4):
            (logs / f"digits-worker-{worker}-0.log").write_text("a line\n")
        self.assertEqual(self.paceline("logs").stdout.count("a line\n"), 4)
        (logs / "digits-worker-4-0.log").symlink_to("digits-worker-4-0.log")
        result = self.paceline("logs", "old", "worker-4")
        self.assertEqual((result.returncode, result.stdout), (4, ""))
        self.assertRegex(result.stderr, r"digits-worker-4-0\.log: Too many levels of symbolic links\n$")
        (logs / "digits-worker-4-0.log").unlink()
        (logs / "digits-worker-4-0.log").symlink_to("nowhere")
        self.assertEqual(self.paceline("logs").stdout.count("a line\n"), 4, "what is gone is passed over")
        (logs / "digits-worker-4-0.log").unlink()
        shutil.rmtree(logs)
        self.assertEqual(self.paceline("logs").returncode, 3)
        logs.symlink_to("logs")
        self.assertEqual(self.paceline("logs").returncode, 4)

    def test_events_that_can_not_be_read_are_not_none(self):
        self.write_log(b"")
        events = self.state / "runs/old/events.jsonl"
        self.assertNotIn("Events", self.paceline("describe", "old").stdout)
        events.symlink_to("events.jsonl")
        self.assertRegex(self.paceline("describe", "old").stdout, r"\nEvents:\n  open \S*/events\.jsonl: Too many levels of symbolic links\n$")

    def as_nobody(self, *arguments):
        """The command as a user who may not read all, and owns what is in the test's folder."""
        def nobody():
            if os.getuid() == 0:
                os.setgid(61184)
                os.setuid(61184)
        if os.getuid() == 0:
            for path in (self.folder, *self.folder.rglob("*")):
                os.chown(path, 61184, 61184, follow_symlinks=False)
        program = self.folder / "paceline"
        if not program.exists():
            shutil.copy(PACELINE, program)
        return self.paceline(*arguments, preexec_fn=nobody, program=program)

    def test_runs_that_may_not_be_read_are_named(self):
        self.write_log(b"")
        old, mine = self.state / "runs/old", self.state / "runs/mine"
        shutil.copytree(old, mine)
        for closed in (old / "status.json", old):
            mode = closed.stat().st_mode
            closed.chmod(0)
            listed = self.as_nobody("get", "-o", "name")
            deleted = self.as_nobody("delete", "--finished") if closed == old else None
            self.assertEqual((listed.returncode, listed.stdout), (4, "mine\n"), listed.stderr)
            self.assertRegex(listed.stderr, r'^paceline: run "old" can\'t be read: open \S+/old/status\.json: Permission denied\n$')
            named = self.as_nobody("describe", "old")
            self.assertEqual((named.returncode, named.stdout), (4, ""))
            closed.chmod(mode)
        self.assertEqual((deleted.returncode, deleted.stdout), (4, "mine deleted\n"))
        self.assertEqual(deleted.stderr, listed.stderr)
        old.chmod(0)
        alone = self.as_nobody("get")
        old.chmod(0o755)
        self.assertEqual((alone.returncode, alone.stdout, alone.stderr), (4, "", listed.stderr))

    def test_remainder_of_a_delete_is_named_and_can_be_deleted_again(self):
        self.write_log(b"")
        run = self.state / "runs/old"
        kept = run / "checkpoints/step-000000001"
        kept.mkdir(parents=True)
        (kept / "state.safetensors").touch()
        (run / "model").mkdir()
        kept.chmod(0o555)
        result = self.as_nobody("delete", "old")
        self.assertEqual((result.returncode, result.stdout), (4, ""))
        self.assertEqual(result.stderr, 'paceline: run "old" is deleted in part, and can be again; '
                                        f"left: {kept}/state.safetensors (Permission denied)\n")
        self.assertEqual({path.name for path in run.iterdir()} - {"lock"}, {"checkpoints", "status.json"})
        kept.chmod(0o755)
        self.assertEqual(self.as_nobody("delete", "old").stdout, "old deleted\n")
        self.assertFalse(run.exists())

    def test_data_that_may_not_be_read_are_not_missing(self):
        data = self.folder / "data"
        data.mkdir()
        shutil.copy(DIGITS, data / "digits.csv.gz")
        path = self.write(job().replace(str(DIGITS), str(data / "digits.csv.gz")))
        for closed in (data, data / "digits.csv.gz"):
            mode = closed.stat().st_mode
            closed.chmod(0)
            for command, code in (("run", 4), ("simulate", 4), ("validate", 0), ("explain", 0)):
                result = self.as_nobody(*(("simulate", "training") if command == "simulate" else (command,)), path)
                self.assertEqual(result.returncode, code, result)
                self.assertIn(f"read {data}/digits.csv.gz: Permission denied", result.stderr + result.stdout)
                self.assertNotIn("no file", result.stderr + result.stdout)
            closed.chmod(mode)

    def test_few_descriptors_are_enough_for_few_members(self):
        self.ends(0, "run", self.write(job(members=3, steps=20)), preexec_fn=limited(resource.RLIMIT_NOFILE, 32))

    def test_a_low_soft_limit_of_descriptors_is_raised(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        self.ends(0, "run", self.write(job(steps=20)),
                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (20, hard)))

    def test_a_limit_of_file_sizes_is_an_error_not_a_signal(self):
        result = self.ends(4, "run", self.write(job()), preexec_fn=limited(resource.RLIMIT_FSIZE, 1000))
        self.assertRegex(result.stderr, "File too large")
        # Enough for the run's own files, but not for the memory that members share, which counts as a file.
        result = self.ends(1, "run", self.write(job()), preexec_fn=limited(resource.RLIMIT_FSIZE, 1 << 20))
        self.assertRegex(result.stderr, r"File too large; .*ulimit -f")
        self.nothing_left()

    def test_a_job_that_a_user_names_may_be_a_pipe(self):
        pipe = self.folder / "job.pipe"
        os.mkfifo(pipe)
        process = self.start("run", pipe, "--name", "by-pipe")
        pipe.write_text(job(steps=20))   # once it reads
        self.assertEqual(process.wait(30 * SLOW), 0)
        result = subprocess.run(["bash", "-c", '"$0" --state-dir "$1" run <(printf %s "$2") --name by-substitution', PACELINE, self.state, job(steps=20)],
                                capture_output=True, text=True, timeout=30 * SLOW)
        self.assertEqual(result.returncode, 0, result.stderr)
        for name in ("-", "/dev/stdin"):
            result = self.ends(0, "run", name, "--name", "by" + name.replace("/", "-"), stdin=job(steps=20), timeout=30 * SLOW)

    def test_a_run_that_waits_for_its_job_can_be_interrupted(self):
        pipe = self.folder / "job.pipe"
        os.mkfifo(pipe)
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start("run", pipe)
            until(lambda: sleeps(process.pid), 30 * SLOW, "it waits for who writes")
            process.send_signal(number)
            self.assertEqual(process.wait(30 * SLOW), -number)
        self.assertFalse((self.state / "runs").exists())

    # ---- signals

    def test_ctrl_c_while_the_reader_takes_nothing(self):
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
        self.assertEqual(os.write(write, b"x" * 4096), 4096)     # it is full
        process, status = self.start_endless("--output", "json", stdout=write, stderr=write)
        os.close(write)
        step = status["step"]
        until(lambda: self.status("digits")["step"] > step + 100, 20 * SLOW, "the training and its status go on")
        self.stop(process, seconds=10)
        self.assertEqual(self.status("digits")["phase"], "Stopped")
        self.nothing_left()

    def test_sigterm_stops_in_order_and_a_second_one_at_once(self):
        process = self.stopping_with_frozen_members(signal.SIGTERM)
        self.stop_at_once(process, signal.SIGTERM)
        self.assertEqual(self.status("digits")["phase"], "Stopped")
        self.nothing_left()

    def test_ctrl_z_and_fg_blame_nobody(self):
        process, _ = self.start_endless()
        with self.standing_still(process):   # ctrl-Z, where the terminal's shell would be its parent
            enough = time.monotonic() + 5    # longer than a member may be silent, which is 3 s, and long enough for an event
            until(lambda: time.monotonic() > enough, 10, "that time has passed")
            before = self.status("digits")["step"]
        until(lambda: self.status("digits")["step"] > before + 100, 20 * SLOW, "the run goes on")
        self.assertEqual(self.status("digits")["phase"], "Running")
        events = [json.loads(line) for line in (self.state / "runs/digits/events.jsonl").read_text().splitlines()]
        self.assertEqual([each["reason"] for each in events].count("OwnerStoodStill"), 1)
        self.stop(process)

    # ---- members in trouble before they train

    def test_ctrl_c_while_a_member_is_stopped_before_it_attaches(self):
        worker = pathlib.Path(PACELINE).parent / "paceline-worker"
        script = f"[ $PACELINE_INDEX != 1 ] || kill -STOP $$; exec {worker}"
        template = f"template: {{spec: {{containers: [{{command: [sh, -c, '{script}']}}]}}}}"
        text = job(members=3, steps=ENDLESS)
        self.assertIn("worker: {replicas: 2}", text)
        process = self.start("run", self.write(text.replace("{replicas: 2}", f"{{replicas: 2, {template}}}")))
        until(lambda: any(map(is_stopped, processes_with(str(self.folder)))), 20 * SLOW, "worker-1 is started, and stopped")
        self.stop(process, seconds=30)   # not the 60 s that it has to attach
        self.nothing_left()

    def test_a_death_at_start_up_is_named_within_two_seconds(self):
        def kill():
            process = self.start("run", self.write(job(members=3, steps=ENDLESS)))
            victim = until(lambda: self.running_pids().get("worker-0"), 20 * SLOW, "worker-0 is started")
            begin = time.monotonic()
            os.kill(victim, signal.SIGKILL)
            out, error = process.communicate(timeout=30 * SLOW)
            seconds = time.monotonic() - begin
            self.assertEqual(process.returncode, 1, error)
            self.assertRegex(error, r"worker-0 .*signal 9")
            self.assertEqual((out + error).count("was killed by signal 9"), 1, out + error)
            self.nothing_left()
            return seconds
        self.within(2.0, kill)

    # ---- two at once, and strangers

    def test_of_two_resumes_at_once_one_wins(self):
        first, _ = self.start_endless(extra="  checkpoint: {everySteps: 50}\n")
        self.stop(first)
        both = [self.start("run", self.folder / "job.yaml", "--resume", "digits") for _ in range(2)]
        loser = until(lambda: next((p for p in both if p.poll() is not None), None), 20 * SLOW, "one gives up")
        winner = both[1 - both.index(loser)]
        _, error = loser.communicate()
        self.assertEqual(loser.returncode, 4)
        self.assertRegex(error, r'run "digits" is held by another command, .*; wait until that has ended: `paceline get digits')
        self.training("digits", 2)
        self.stop(winner)
        self.nothing_left()

    def test_two_runs_do_not_save_in_one_place(self):
        first, _ = self.start_endless(extra=f"  checkpoint: {{everySteps: 50, location: {self.folder}/saved}}\n")
        second = self.start("run", self.folder / "job.yaml", "--name", "second")
        _, error = self.outcome(4, second, 20 * SLOW)
        self.assertRegex(error, rf'run "digits" \(.*pid {first.pid}\) saves its checkpoints in .*saved right now; .*another checkpoint.location')
        self.stop(first)
        self.nothing_left()

    def test_strangers_at_the_coordinators_port_do_no_harm(self):
        process, status = self.start_endless()
        environment = pathlib.Path(f"/proc/{status['members'][0]['pid']}/environ").read_bytes().split(b"\0")
        address = next(e for e in environment if e.startswith(b"PACELINE_COORDINATOR=")).split(b"=", 1)[1].decode()
        host, port = address.rsplit(":", 1)
        strangers = [socket.create_connection((host, int(port)), timeout=5) for _ in range(100)]
        for connection in strangers:
            self.addCleanup(connection.close)
        for number, connection in enumerate(strangers):
            if number % 3 == 1:
                connection.sendall(os.urandom(16384))
            if number % 3 == 2:
                connection.sendall(b"P")     # of the preface that gRPC expects; the rest never comes
        before = self.status("digits")["step"]
        for byte in b"RI * HTTP/2.0":
            for connection in strangers[2::3]:
                try:
                    connection.sendall(bytes([byte]))
                except OSError:
                    pass                     # it has been turned away
            now = self.status("digits")["step"]
            until(lambda: self.status("digits")["step"] > now, 20 * SLOW, "the training goes on")
        self.assertGreater(self.status("digits")["step"], before)
        self.stop(process)
        self.nothing_left()

    # ---- terminals

    def test_a_tiny_terminal(self):
        for columns, rows in ((10, 3), (1, 1)):
            with self.subTest(columns=columns):
                text = self.on_terminal("run", self.write(job(steps=300)), "--name", f"tiny{columns}", columns=columns, rows=rows,
                                        seconds=60 * SLOW, environment={"TERM": "xterm"})
                self.assertIn(b"Succeeded", text)
                self.assertTrue(text.rstrip().endswith(b"\x1b[?25h"), "the cursor is back")

    def write_log(self, content):
        folder = self.state / "runs" / "old"
        (folder / "logs").mkdir(parents=True, exist_ok=True)
        (folder / "status.json").write_text(json.dumps({"name": "old", "job": "digits", "phase": "Succeeded"}))
        path = folder / "logs" / "digits-worker-0-0.log"
        path.write_bytes(content)
        return path

    def test_logs_are_harmless_on_a_terminal_and_whole_in_a_pipe(self):
        content = b"\x1b[2Jred \x07\xff\xc2\x9b1m \xc3\xa9\r\n" + b"y" * 100000 + b"\nend"
        self.write_log(content)
        lines = self.on_terminal("logs", "old", "worker-0").replace(b"\r\n", b"\n").split(b"\n")
        self.assertEqual(lines[0], b"\\x1b[2Jred \\x07\\xff\\xc2\\x9b1m \xc3\xa9\\x0d")
        self.assertEqual(lines[1], b"y" * 4096 + b"...")
        self.assertEqual(lines[2:], [b"end", b""])
        piped = subprocess.run([PACELINE, "--state-dir", self.state, "logs", "old", "worker-0"], capture_output=True, timeout=20)
        self.assertEqual(piped.stdout, content)

    def test_text_of_files_and_names_is_harmless_on_a_terminal(self):
        self.write_log(b"")
        bad = "\x1b]0;mine\x07\x1b[33m"
        shown = "\\x1b]0;mine\\x07\\x1b[33m"
        status = self.state / "runs/old/status.json"
        status.write_text(json.dumps({"name": "old", "job": f"a{bad}", "phase": "Failed", "reason": f"b{bad}", "message": f"c{bad}", "model": f"d{bad}"}))
        (self.state / "runs/old/events.jsonl").write_text(json.dumps({"time": "2026-01-01T00:00:00.000Z", "type": "Warning", "reason": f"e{bad}",
                                                                      "message": f"f{bad}"}) + "\n")
        for command, said in ((("describe",), "abcdef"), (("top", "old"), "c")):
            with self.subTest(command=command[0]):
                text = self.on_terminal(*command, columns=160, environment={"TERM": "xterm"}).decode()
                self.assertNotIn("\x1b]", text)
                self.assertNotIn("\x07", text)
                self.assertNotIn("\x1b[33m", text)
                for letter in said:
                    self.assertIn(letter + shown, text)
                self.assertIn("\x1b[31m", text, "our own colours stay")
        self.assertIn("a" + shown, self.paceline("describe").stdout, "text about a run is one line each, also in a pipe")
        self.assertEqual(json.loads(self.paceline("get", "old", "-o", "json").stdout)["status"]["run"]["job"], "a" + bad, "data are as they are")

    def test_messages_are_harmless_wherever_they_go(self):
        bad = "\x1b[2J\x1b[31m\x07"
        for text, code in ((f"kind: {bad}\n", 2), ("kind: \xff\n", 2), (f"{bad}: [", 2)):
            result = self.paceline("validate", self.write(text, f"{bad}.yaml"))
            self.assertEqual((result.returncode, result.stdout), (code, ""))
            self.assertIn("\\x1b[2J\\x1b[31m\\x07.yaml:1:", result.stderr)
            self.assertNotRegex(result.stderr, "[\x00-\x08\x0b-\x1f\x7f]")
        for command in (("describe", bad), ("run", f"{bad}/none.yaml"), ("generate", "--checkpoint", bad), (bad,), ("get", f"--{bad}")):
            result = self.paceline(*command)
            self.assertNotEqual(result.returncode, 0)
            self.assertNotRegex(result.stderr, "[\x00-\x08\x0b-\x1f\x7f]")

    @unittest.skipIf(SANITIZED, "sanitizers need the address space")
    def test_an_endless_line_needs_no_memory(self):
        path = self.write_log(b"")
        os.truncate(path, 256 << 20)
        with open(os.devnull, "wb") as nowhere:
            process = self.start("logs", "old", "worker-0", stdout=nowhere, preexec_fn=limited(resource.RLIMIT_AS, 256 << 20))
            self.assertEqual(process.wait(120), 0, "it streams")


if __name__ == "__main__":
    unittest_report.main("cli_hard_edges_test")
