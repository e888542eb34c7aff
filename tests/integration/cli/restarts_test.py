"""What restartPolicy, backoffLimit and suspend mean in a local run: the same as on a cluster."""

import json
import os
import signal

import unittest_report
from cli_support import ENDLESS, SLOW, CliCase, job, member_of, processes_with, until


class RestartsTest(CliCase):
    def restarting(self, steps, limit):
        return self.write(job(members=3, steps=steps, extra=f"  checkpoint: {{everySteps: 50}}\n  runPolicy: {{backoffLimit: {limit}}}\n")
                          .replace("worker: {replicas: 2}", "worker: {replicas: 2, restartPolicy: OnFailure}"))

    def in_attempt(self, number, after=0):
        """The run's status once the members of this attempt have taken steps beyond `after`."""
        def look():
            status = self.status("digits")
            ready = status and status["phase"] == "Running" and status["step"] > after
            return status if ready and all(m["pod"].endswith(f"-{number}") and m.get("pid") for m in status["members"]) else None
        return until(look, 40 * SLOW, f"attempt {number} trains")

    def kill_member(self, status):
        os.kill(member_of(status, "worker-1")["pid"], signal.SIGKILL)

    def test_a_lost_member_is_started_again_from_the_newest_checkpoint(self):
        steps = 30000
        process = self.start("run", self.restarting(steps, 6), "--output", "json")
        self.kill_member(self.in_attempt(0, after=200))
        output, _ = self.outcome(0, process, 120 * SLOW)
        events = [json.loads(line) for line in output.splitlines()]
        self.assertEqual((events[-1]["phase"], events[-1]["step"]), ("Succeeded", steps))
        self.assertEqual(len([e for e in events if e["type"] == "note" and "attempt 1" in e["message"]]), 1)
        self.assertEqual({m["pod"] for m in events[-1]["members"]}, {"digits-chief-0-1", "digits-worker-0-1", "digits-worker-1-1"})
        self.assertRegex((self.state / "runs/digits/logs/digits-chief-0-1.log").read_text(), r"resumes from step-0*[1-9]")
        times = [json.loads(line)["timeSeconds"] for line in (self.state / "runs/digits/metrics.jsonl").read_text().splitlines()
                 if '"step"' in line.split(",")[0]]
        self.assertEqual(times, sorted(times), "time goes on from attempt to attempt")
        self.nothing_left()

    def test_a_run_fails_when_its_restarts_are_used_up(self):
        process = self.start("run", self.restarting(ENDLESS, 1))
        for attempt in (0, 1):
            before = self.in_attempt(attempt, after=before["step"] if attempt else 100)
            self.kill_member(before)
        self.assertEqual(process.wait(60 * SLOW), 1)
        status = self.status("digits")
        self.assertEqual((status["phase"], status["reason"]), ("Failed", "BackoffLimitExceeded"))
        self.assertGreaterEqual(status["step"], before["step"])
        self.nothing_left()

    def test_a_run_is_suspended_and_resumed(self):
        process = self.start("run", self.write(job(steps=ENDLESS, extra="  runPolicy: {suspend: true}\n")))
        until(lambda: (self.status("digits") or {}).get("phase") == "Suspended", 20 * SLOW, "it begins suspended")
        self.assertEqual(self.paceline("resume", "digits").returncode, 0)
        before = self.in_attempt(0)
        for again in (False, True):
            self.assertEqual(self.paceline("suspend", "digits").stdout, "digits " + ("is suspended already\n" if again else "suspended\n"))
        until(lambda: self.status("digits")["phase"] == "Suspended", 20 * SLOW, "it is suspended")
        until(lambda: not processes_with(str(self.state / "runs/digits/pods")), 20 * SLOW, "its members have left")
        self.assertIsNone(process.poll())
        self.assertEqual(self.paceline("resume", "digits").stdout, "digits resumed\n")
        self.in_attempt(1, after=before["step"])
        self.stop(process)
        ended = self.paceline("suspend", "digits")
        self.assertEqual((ended.returncode, ended.stdout), (4, ""))
        self.assertIn("--resume digits", ended.stderr)
        self.nothing_left()


if __name__ == "__main__":
    unittest_report.main("restarts_test")
