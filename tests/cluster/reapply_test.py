"""`kubectl delete tj x; kubectl apply -f x.yaml`, again and again: the new job has nothing of the one before, and trains within seconds."""

import sys
import time

import unittest_report
from cluster_case import needs_cluster
from job_case import JobCase, endless, job

TIMES = 20
# A member that does not get in is given up after 60 s.
TRAINS_SECONDS = 45


@needs_cluster
class ReapplyTest(JobCase):
    def test_a_job_that_is_deleted_and_applied_again_trains_within_seconds(self):
        """Every other time the job before it still runs, every other time it has succeeded."""
        late, took = [], []
        for turn in range(TIMES + 1):
            if turn > 0:
                self.kubectl("delete", "tj/again")
            endlessly = turn % 2 == 0
            begun = time.monotonic()
            self.apply(endless("again", workers=3, restart="OnFailure") if endlessly else job("again", workers=3, restart="OnFailure"))
            condition = "Running" if endlessly else "Succeeded"
            waited = self.run_kubectl("wait", "tj/again", f"--for=condition={condition}", f"--timeout={TRAINS_SECONDS}s")
            took.append(f"{condition} after {time.monotonic() - begun:.1f} s")
            status = self.status("again")
            if waited.returncode != 0 or status.get("restarts", {}).get("total", 0) > 0:
                late.append(f"{turn}: {status.get('reason')}: {status.get('message')}")
                sys.stderr.write(f"\n{turn}: {self.job_story()}{self.run_kubectl('logs', 'again-worker-0-0').stdout}")
        sys.stderr.write("\n" + "\n".join(took) + "\n")
        self.assertEqual(late, [], "\n".join(took))

    def test_members_whose_token_is_lost_are_replaced_at_once(self):
        """Its Secret is deleted while nobody leads: the next controller makes another token."""
        self.apply(endless("locked", restart="OnFailure"))
        self.wait_for("locked", "Running")
        self.scale_controllers(0)
        self.kubectl("delete", self.secret("locked"))
        self.scale_controllers(2)
        first = {"locked-chief-0-0", "locked-worker-0-0"}
        self.wait_until("both to be replaced", lambda: len(self.pods("locked")) == 2 and not first & set(self.pods("locked")), TRAINS_SECONDS)
        self.assertIn("its token is not the job's", self.kubectl("get", "events", "--field-selector=involvedObject.name=locked"))

        def both_train():
            status = self.status("locked")
            return status["phase"] == "Running" and status["view"]["size"] == 2 and not first & {each["pod"] for each in status["members"]}
        self.wait_until("both to train", both_train)
        # A kubelet gives a new pod the old Secret while an old pod of it is on its node: such a one is replaced, too.
        self.assertGreaterEqual(self.status("locked")["restarts"]["total"], 2)


if __name__ == "__main__":
    unittest_report.main("cluster_reapply_test")
