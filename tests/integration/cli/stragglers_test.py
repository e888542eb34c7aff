"""A member that holds the others back is found, told of and cleared."""

import json
import os

import unittest_report
from cli_support import ENDLESS, SLOW, CliCase, until

PROGRAM = os.environ["PACELINE_HANGING_MEMBER"]


def job(file):
    """A ring of three, of which worker-1 takes 20 ms to read a batch while there is this file."""
    return f"""
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {{name: straggles}}
spec:
  replicaSpecs:
    worker: {{replicas: 3, template: {{spec: {{containers: [{{name: trainer, command: [{PROGRAM}]}}]}}}}}}
  training:
    model: {{type: mlp, hidden: [16], classes: 2}}
    data: {{format: custom, custom: {{name: hanging, parameters: {{member: worker-1, milliseconds: 20, file: {file}}}}}}}
    optimizer: {{type: SGD, learningRate: 0.01}}
    globalBatchSize: 48
    steps: {ENDLESS}
"""


class StragglersTest(CliCase):
    def straggling(self):
        return self.status("straggles")["status"].get("stragglers", [])

    def condition(self):
        conditions = self.status("straggles")["status"]["conditions"]
        return next((each["status"] for each in conditions if each["type"] == "Straggling"), None)

    def test_a_slow_reader_is_found_told_of_and_cleared(self):
        slow = self.folder / "slow"
        output = self.folder / "output"
        with output.open("w") as stdout:
            process = self.start("run", self.write(job(slow)), "--output", "json", stdout=stdout)
        until(lambda: (lambda s: s and s["step"] > 200)(self.status("straggles")), 40 * SLOW, "it trains")
        self.assertEqual(self.straggling(), [])
        slow.touch()
        found = until(self.straggling, 60 * SLOW, "the slow member is found")
        self.assertEqual([(each["kind"], each["role"], each["index"], each["part"]) for each in found], [("Slow", "worker", 1, "input")])
        self.assertIn(found[0]["cause"], ("Input", "CpuContention", "Storage"))   # the machine may be busy with whatever
        self.assertGreater(found[0]["factor"], 1.15)
        self.assertGreater(found[0]["ownMs"], 10)
        until(lambda: self.condition() == "True", 10 * SLOW, "the condition is true")
        slow.unlink()
        until(lambda: not self.straggling(), 60 * SLOW, "it is cleared")
        until(lambda: self.condition() == "False", 10 * SLOW, "the condition is false")
        self.stop(process)
        told = [event for event in map(json.loads, output.read_text().splitlines()) if event["type"] == "straggler"]
        self.assertEqual([(event["found"], event["index"]) for event in told], [(True, 1), (False, 1)])
        self.nothing_left()


if __name__ == "__main__":
    unittest_report.main("stragglers_test")
