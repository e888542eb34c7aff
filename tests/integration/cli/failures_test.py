"""Failures that a member names: memory, a loss that is not finite, data that can't be read."""

import resource
import unittest

import unittest_report
from cli_support import DIGITS, ENDLESS, SANITIZED, SLOW, CliCase, job


def limited(megabytes):
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))


def restarting(text, policy, limit):
    """The job, whose members have this restartPolicy and `limit` restarts in all."""
    text = text.replace("chief: {}", f"chief: {{restartPolicy: {policy}}}").replace("worker: {", f"worker: {{restartPolicy: {policy}, ")
    return text + f"  runPolicy: {{backoffLimit: {limit}}}\n"


class FailuresTest(CliCase):
    def fails(self, text, **options):
        """The status of a run that fails."""
        self.ends(1, "run", self.write(text), timeout=120 * SLOW, **options)
        status = self.status("digits")
        self.assertEqual(status["phase"], "Failed")
        self.nothing_left()
        return status

    def check(self, status, reason, kind, cause, restarts):
        fault = status["status"]["fault"]
        self.assertEqual((status["reason"], fault["kind"], fault["cause"]), (reason, kind, cause), status["message"])
        counted = status["status"]["restarts"].get("byCause", [])
        self.assertEqual([(each["cause"], each["count"]) for each in counted], [(cause, restarts)] if restarts else [])

    def diverging(self):
        return job(members=2, steps=ENDLESS).replace("learningRate: 0.1", "learningRate: 1e12")

    def unreadable(self):
        damaged = self.folder / "damaged.csv"
        damaged.write_text("1,2,0\n1,two,1\n")
        return job(members=1).replace(str(DIGITS), str(damaged))

    def test_a_loss_that_is_not_finite_is_permanent_by_exit_code(self):
        self.check(self.fails(restarting(self.diverging(), "ExitCode", 6)), "MemberNotFinite", "NotFinite", "NotFinite", 0)

    def test_a_loss_that_is_not_finite_starts_all_members_again_until_the_limit(self):
        self.check(self.fails(restarting(self.diverging(), "OnFailure", 1)), "BackoffLimitExceeded", "NotFinite", "NotFinite", 1)

    def test_data_that_cannot_be_read_is_permanent_by_exit_code(self):
        status = self.fails(restarting(self.unreadable(), "ExitCode", 6))
        self.check(status, "MemberDataUnreadable", "DataUnreadable", "DataUnreadable", 0)
        self.assertEqual([each["kind"] for each in status["status"]["fault"]["evidence"]][0], "DataUnreadable")

    def test_data_that_cannot_be_read_is_tried_again_until_the_limit(self):
        self.check(self.fails(restarting(self.unreadable(), "OnFailure", 1)), "BackoffLimitExceeded", "DataUnreadable", "DataUnreadable", 1)

    @unittest.skipIf(SANITIZED, "sanitizers need the address space")
    def test_a_model_that_finds_no_memory_is_permanent_by_exit_code(self):
        large = job(members=1).replace("hidden: [32]", "hidden: [16384, 16384]")
        status = self.fails(restarting(large, "ExitCode", 6), preexec_fn=limited(2 << 10))
        self.check(status, "MemberOutOfMemory", "OutOfMemory", "OutOfMemory", 0)


if __name__ == "__main__":
    unittest_report.main("failures_test")
