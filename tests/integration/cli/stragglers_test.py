"""A member that holds the others back is found, told of and cleared."""

import json
import os

import unittest_report
from cli_support import ENDLESS, SLOW, CliCase, until

PROGRAM = os.environ["PACELINE_HANGING_MEMBER"]


def job(file, action="", policy="Never"):
    """A ring of three, of which worker-1, in its first process, takes 20 ms to read a batch while there is this file."""
    return f"""
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {{name: straggles}}
spec:
  replicaSpecs:
    worker: {{replicas: 3, restartPolicy: {policy}, template: {{spec: {{containers: [{{name: trainer, command: [{PROGRAM}]}}]}}}}}}
  training:
    model: {{type: mlp, hidden: [16], classes: 2}}
    data: {{format: custom, custom: {{name: hanging, parameters: {{member: worker-1, milliseconds: 20, file: {file}}}}}}}
    optimizer: {{type: SGD, learningRate: 0.01}}
    globalBatchSize: 48
    steps: {ENDLESS}
{action}"""


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

    def test_a_slow_member_is_replaced_while_the_others_train(self):
        slow = self.folder / "slow"
        action = "  stragglers: {action: Replace, lostSeconds: 0.5}\n"
        output = self.folder / "output"
        with output.open("w") as stdout:
            process = self.start("run", self.write(job(slow, action, "OnFailure")), "--output", "json", stdout=stdout)
        until(lambda: (lambda s: s and s["step"] > 200)(self.status("straggles")), 40 * SLOW, "it trains")
        before = {m["index"]: m["pid"] for m in self.status("straggles")["members"]}
        slow.touch()

        def replaced():
            return [each for each in self.status("straggles")["status"].get("stragglerReplacements", [])
                    if each["outcome"] != "UnderWay"]

        self.assertEqual([(each["outcome"], each["role"], each["index"], each["pod"], each["successor"])
                          for each in until(replaced, 60 * SLOW, "it is replaced")],
                         [("Replaced", "worker", 1, "straggles-worker-1-0", "straggles-worker-1-1")])
        after = {m["index"]: m["pid"] for m in until(
            lambda: (lambda s: s["members"] if s["generation"] == 2 and all(m["rank"] >= 0 for m in s["members"]) else None)
            (self.status("straggles")), 20 * SLOW, "the view is whole")}
        self.assertEqual((before[0], before[2]), (after[0], after[2]), "the others' processes stay")
        self.assertNotEqual(before[1], after[1])
        until(lambda: not self.straggling(), 60 * SLOW, "nobody is slow any more")
        change = self.status("straggles")["status"]["view"]["change"]
        self.assertEqual((change["came"], change["left"], change["stepsLost"]), (["worker-1"], ["worker-1"], 0))
        self.assertEqual(self.status("straggles")["status"]["restarts"].get("total", 0), 0)
        self.stop(process)
        told = [event for event in map(json.loads, output.read_text().splitlines()) if event["type"] == "stragglerReplacement"]
        self.assertEqual([(each["outcome"], each["successor"]) for each in told],
                         [("UnderWay", "straggles-worker-1-1"), ("Replaced", "straggles-worker-1-1")])
        self.nothing_left()


if __name__ == "__main__":
    unittest_report.main("stragglers_test")
