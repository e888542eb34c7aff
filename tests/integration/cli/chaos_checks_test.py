"""tests/support/chaos_checks.py: which logs of members break a rule."""

import unittest

import chaos_checks as checks
import unittest_report


def log(*lines):
    return "".join(f"2026-11-28T01:00:00.000Z info    paceline-worker: {line}\n" for line in lines)


CHIEF = log("view 1: rank 0 of 2, from step 0, 20 ms after the start", "first step applied 30 ms after the start",
            "step 41 is abandoned, and waits for the next view: a peer is gone", "view 2: rank 0 of 1, from step 41, 60 ms after the start",
            "step 42 is the first of view 2, 11 ms after the view before it ended", "view 3: rank 0 of 2, from step 90, 1 s after the start")
LOST = log("view 1: rank 1 of 2, from step 0, 20 ms after the start")
NEXT = log("view 3: rank 1 of 2, from step 90, 10 ms after the start")


class ChaosChecksTest(unittest.TestCase):
    def check(self, *logs, may_part=False):
        return checks.check_logs({f"pod-{number}": text for number, text in enumerate(logs)}, may_part)

    def assert_broken(self, *logs):
        with self.assertRaises(checks.Broken):
            self.check(*logs)

    def test_a_loss_and_a_newcomer_break_nothing(self):
        self.assertEqual(self.check(CHIEF, LOST, NEXT), 3)

    def test_an_applied_step_is_not_taken_again(self):
        self.assert_broken(CHIEF.replace("of 1, from step 41", "of 1, from step 40").replace("step 42 is the first", "step 41 is the first"))

    def test_the_first_step_of_a_view_is_the_next_one(self):
        self.assert_broken(CHIEF.replace("step 42 is the first", "step 43 is the first"))

    def test_generations_rise_in_a_log(self):
        self.assert_broken(CHIEF.replace("view 3: rank", "view 2: rank"))

    def test_a_generation_has_one_membership(self):
        for text in (NEXT.replace("of 2", "of 3"), NEXT.replace("step 90", "step 89"), NEXT.replace("rank 1", "rank 0"), NEXT.replace("rank 1", "rank 2")):
            self.assert_broken(CHIEF, LOST, text)

    def test_two_controllers_may_each_form_a_view_of_one_number(self):
        parted = log("view 2: rank 0 of 1, from step 41, 60 ms after the start")
        self.assertEqual(self.check(CHIEF, LOST + parted, NEXT, may_part=True), 3)
        self.assert_broken(CHIEF, LOST + parted, NEXT)

    def test_steps_go_back_only_where_nobody_holds_the_state(self):
        back = log("resumes from step-000000020", "view 4: rank 0 of 1, from step 20, 10 ms after the start")
        self.assertEqual(self.check(CHIEF, LOST, NEXT, back), 4)
        self.assert_broken(CHIEF, LOST, NEXT, back[back.index("\n") + 1:])
        self.assert_broken(CHIEF, LOST, NEXT + back)

    def test_a_model_that_lacks_a_step_is_another_one(self):
        self.assertLess(checks.check_model([1.0, 2.0 + 1e-7], [1.0, 2.0]), 1e-7)
        for other in ([1.0, 2.0 + 1e-5], [1.0, float("nan")]):
            with self.assertRaises(checks.Broken):
                checks.check_model(other, [1.0, 2.0])


if __name__ == "__main__":
    unittest_report.main("chaos_checks_test")
