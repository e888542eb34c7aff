"""benchmarks/recovery_log.py: what is read of the logs of members that lost one."""

import unittest

import recovery_log
import unittest_report

LOG = """2026-11-28T01:00:00.000Z info    paceline-worker: view 1: rank 1 of 3, 2 peers
2026-11-28T01:00:09.990Z info    paceline-worker: step 7: loss 0.5
2026-11-28T01:00:10.003Z warning paceline-worker: step 41 is abandoned, and waits for the next view: a peer is gone
it has no time
2026-11-28T01:00:10.012Z info    paceline-worker: view 2: rank 0 of 2, 1 peer
2026-11-28T01:00:10.014Z info    paceline-worker: step 42 is the first of view 2, 11 ms after the view before it ended
2026-11-28T01:00:10.300Z info    paceline-worker: view 3: rank 1 of 3, 2 peers
2026-11-28T01:00:10.330Z info    paceline-worker: step 90 is the first of view 3, 1 ms after the view before it ended
"""
LATER = """2026-11-28T01:00:10.004Z warning paceline-worker: step 41 is abandoned, and waits for the next view: a peer is gone
2026-11-28T01:00:10.013Z info    paceline-worker: view 2: rank 1 of 2, 1 peer
2026-11-28T01:00:10.017Z info    paceline-worker: step 42 is the first of view 2, 11 ms after the view before it ended
"""


class RecoveryLogTest(unittest.TestCase):
    def setUp(self):
        self.fault_at = next(recovery_log.lines_of("2026-11-28T01:00:10.000Z info    test: now"))[0]

    def stages(self, *logs):
        found = recovery_log.stages([line for log in logs for line in recovery_log.lines_of(log)], self.fault_at)
        return found and {name: value and round(value) for name, value in found.items()}

    def test_the_latest_survivor_counts(self):
        self.assertEqual(self.stages(LOG, LATER), {"noticed": 3, "next view": 13, "first step": 17, "back": 330})

    def test_a_ring_that_is_not_whole_again_is_not_back(self):
        self.assertEqual(self.stages(LATER), {"noticed": 4, "next view": 13, "first step": 17, "back": None})

    def test_a_member_that_left_in_order_was_not_noticed(self):
        in_order = "\n".join(line for line in LOG.splitlines() if "abandoned" not in line)
        self.assertEqual(self.stages(in_order), {"noticed": None, "next view": 12, "first step": 14, "back": 330})

    def test_nothing_is_told_before_a_step(self):
        self.assertIsNone(self.stages("\n".join(LOG.splitlines()[:5])))


if __name__ == "__main__":
    unittest_report.main("benchmarks_recovery_log_test")
