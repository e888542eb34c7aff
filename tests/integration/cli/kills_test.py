"""A ring that loses twenty members, one after the other, has taken each sample as often as one that nobody disturbs: to the bit."""

import os
import random
import signal

import unittest_report
from cli_support import ENDLESS, SLOW, CliCase, tensors_of, until

PROGRAM = os.environ["PACELINE_COUNTING_MEMBER"]
WORKERS, KILLS_OF_EACH, BATCH = 9, 2, 64
UNIT = 2.0 ** -24   # by which a sample lowers its weight


def job(workers, steps):
    roles = ["chief: "] + ([f"worker: replicas: {workers}, minReplicas: 1, "] if workers else [])
    template = f"restartPolicy: OnFailure, template: {{spec: {{containers: [{{name: trainer, command: [{PROGRAM}]}}]}}}}"
    lines = "\n    ".join(role.replace(": ", ": {", 1) + template + "}" for role in roles)
    return f"""
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {{name: counts}}
spec:
  replicaSpecs:
    {lines}
  training:
    model: {{type: custom, name: counters}}
    data: {{format: custom, custom: {{name: samples}}}}
    optimizer: {{type: SGD, learningRate: {UNIT}}}
    globalBatchSize: {BATCH}
    steps: {steps}
  runPolicy: {{backoffLimit: 1000}}
"""


class KillsTest(CliCase):
    def whole(self, step):
        """The status, once all members train and a later step was taken."""
        status = self.status("counts")
        trains = status and len(status["members"]) == 1 + WORKERS and all(m.get("pid") and m["rank"] >= 0 for m in status["members"])
        return status if trains and status["step"] > step else None

    def test_each_sample_counts_once_whoever_is_killed(self):
        seed = random.SystemRandom().randrange(1 << 32)
        print(f"seed {seed}", flush=True)
        victims = [number for number in range(1 + WORKERS) for _ in range(KILLS_OF_EACH)]
        random.Random(seed).shuffle(victims)
        process = self.start("run", self.write(job(WORKERS, ENDLESS)))
        status = until(lambda: self.whole(100), 60 * SLOW, "all train")
        for number in victims:
            members = sorted(status["members"], key=lambda m: (m["role"], m["index"]))
            killed = members[number]["pid"]
            os.kill(killed, signal.SIGKILL)

            def again(killed=killed, step=status["step"]):
                found = self.whole(step)
                return found if found and killed not in [m["pid"] for m in found["members"]] else None
            status = until(again, 60 * SLOW, f"all train after {members[number]['pod']} was killed")
        self.stop(process)
        steps = self.status("counts")["step"]
        newest = max((self.state / "runs/counts/checkpoints").glob("step-*"))
        self.assertEqual(int(newest.name.split("-")[1]), steps)
        counted = tensors_of(newest / "state.safetensors")["weights"]
        self.assertEqual(sum((1 - weight) / UNIT for weight in counted), steps * BATCH, "samples in all")
        alone = self.events(self.write(job(0, steps)), "--name", "alone")[-1]
        self.assertEqual(list(counted), list(tensors_of(alone["model"])["weights"]), f"seed {seed}")


if __name__ == "__main__":
    unittest_report.main("kills_test")
