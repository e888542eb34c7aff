"""A member that holds the others back is found, told of and cleared."""

import contextlib
import json
import os
import pathlib
import signal
import threading

import unittest_report
from cli_support import ENDLESS, SLOW, CliCase, tensors_of, until

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


BATCH = 480


class Bursts:
    """A process is slow in bursts: in 3 of 10 steps' time, of which `step` is the seconds, it stands still for four fifths."""
    def __init__(self, pid, step):
        self.pid, self.step, self.over = pid, step, threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        with contextlib.suppress(ProcessLookupError):
            while not self.over.wait(7 * self.step):
                for _ in range(30):
                    os.kill(self.pid, signal.SIGSTOP)
                    self.over.wait(0.08 * self.step)
                    os.kill(self.pid, signal.SIGCONT)
                    self.over.wait(0.02 * self.step)

    def end(self):
        self.over.set()
        self.thread.join()


def laborious(steps, factor, action="", passes="", drop_rate=0):
    """Two that compute; worker-1 does so `factor` times as often."""
    return f"""
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {{name: labours}}
spec:
  strategy: {{allReduce: {{maxDropRate: {drop_rate}}}}}
  replicaSpecs:
    worker: {{replicas: 2, template: {{spec: {{containers: [{{name: trainer, command: [{PROGRAM}]}}]}}}}}}
  training:
    model: {{type: custom, name: laborious, parameters: {{member: worker-1, work: "20", factor: "{factor}"}}}}
    data: {{format: custom, custom: {{name: hanging, parameters: {{member: nobody, file: none}}}}}}
    optimizer: {{type: SGD, learningRate: 0.01}}
    globalBatchSize: {BATCH}
{passes}
    steps: {steps}
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
        change = until(lambda: self.status("straggles")["status"]["view"].get("change"), 20 * SLOW, "how the view began is told")
        self.assertEqual((change["came"], change["left"], change["stepsLost"]), (["worker-1"], ["worker-1"], 0))
        self.assertEqual(self.status("straggles")["status"]["restarts"].get("total", 0), 0)
        self.stop(process)
        told = [event for event in map(json.loads, output.read_text().splitlines()) if event["type"] == "stragglerReplacement"]
        self.assertEqual([(each["outcome"], each["successor"]) for each in told],
                         [("UnderWay", "straggles-worker-1-1"), ("Replaced", "straggles-worker-1-1")])
        self.nothing_left()

    def labours(self):
        return self.status("labours")["status"]

    def members(self):
        return self.status("labours")["members"]

    def computing(self):
        """What a step's computing takes of each, in ms."""
        return [member.get("computeMs", 0) for member in self.members()]

    def test_a_slow_member_takes_fewer_samples(self):
        output = self.folder / "output"
        with output.open("w") as stdout:
            process = self.start("run", self.write(laborious(ENDLESS, 3, "  stragglers: {action: Rebalance, lostSeconds: 0.5}\n")),
                                 "--output", "json", stdout=stdout)
        until(lambda: (lambda s: s and s["step"] > 20)(self.status("labours")), 40 * SLOW, "it trains")
        self.assertEqual([member["samples"] for member in self.members()], [BATCH // 2, BATCH // 2])
        before = until(lambda: (lambda c: c if min(c) > 0 else None)(self.computing()), 20 * SLOW, "members tell of their steps")
        self.assertGreater(before[1], 1.5 * before[0])
        shares = until(lambda: self.labours()["view"].get("rebalance"), 60 * SLOW, "shares follow speed")
        self.assertEqual((shares["generation"], sum(shares["samples"]), shares["even"]), (2, BATCH, False))
        self.assertLess(shares["samples"][1], 0.8 * shares["samples"][0])
        self.assertGreaterEqual(shares["samples"][1], 1)
        until(lambda: [member["samples"] for member in self.members()] == shares["samples"], 20 * SLOW, "members have them")
        change = until(lambda: (lambda c: c if c and c["generation"] == 2 else None)(self.labours()["view"].get("change")), 20 * SLOW, "it trains")
        self.assertEqual((change.get("came", []), change.get("left", []), change["stepsLost"]), ([], [], 0))
        found = self.labours().get("stragglers", [])
        self.assertEqual([each["action"] for each in found], ["Rebalance"] * len(found))
        until(lambda: not self.labours().get("stragglers"), 60 * SLOW, "nobody is a straggler any more")
        after = self.computing()
        self.assertLess(after[1] / after[0], before[1] / before[0])
        self.stop(process)
        told = [event for event in map(json.loads, output.read_text().splitlines()) if event["type"] == "rebalance"]
        self.assertEqual((told[0]["generation"], told[0]["samples"], told[0]["even"]), (2, shares["samples"], False))
        events = [json.loads(line) for line in (pathlib.Path(self.status("labours")["folder"]) / "events.jsonl").read_text().splitlines()]
        self.assertIn("StragglerRebalanced", [event["reason"] for event in events])
        self.nothing_left()

    def test_a_member_that_is_slow_in_bursts_leaves_samples_out(self):
        rate, steps = 0.3, 1000
        process = self.start("run", self.write(laborious(steps, 1, "  stragglers: {action: Report}\n", "    microBatchSize: 30", rate)))
        until(lambda: (lambda s: s and s["step"] > 20 and s["members"][1].get("stepMs"))(self.status("labours")), 40 * SLOW, "it trains")
        member = self.members()[1]
        bursts = Bursts(member["pid"], member["stepMs"] / 1000)
        try:
            until(lambda: self.status("labours").get("droppedSamples") or process.poll() is not None, 120 * SLOW, "samples are left out")
        finally:
            bursts.end()
        self.assertEqual(process.wait(timeout=120 * SLOW), 0)
        last = self.status("labours")
        self.assertEqual((last["phase"], last["step"], last["samples"], last["weightsCheckedStep"]), ("Succeeded", steps, steps * BATCH, steps))
        self.assertGreater(last.get("droppedSamples", 0), 0)
        self.assertLessEqual(last["droppedSamples"], rate * steps * BATCH)
        self.assertEqual(sum(each.get("droppedSamples", 0) for each in last["members"]), last["droppedSamples"])
        self.nothing_left()

    def test_each_sample_counts_once_with_whatever_shares(self):
        even = self.events(self.write(laborious(900, 1)), "--name", "even")
        uneven = self.events(self.write(laborious(900, 3, "  stragglers: {action: Rebalance, lostSeconds: 0}\n")), "--name", "uneven")
        self.assertTrue(any(event["type"] == "rebalance" and not event["even"] for event in uneven))
        last = {name: events[-1] for name, events in (("even", even), ("uneven", uneven))}
        self.assertEqual([(each["step"], each["samples"], each["weightsCheckedStep"]) for each in last.values()], [(900, 900 * BATCH, 900)] * 2)
        a, b = (tensors_of(each["model"]) for each in last.values())
        self.assertEqual(a.keys(), b.keys())
        for name, values in a.items():
            scale = max(map(abs, values))
            self.assertLess(max(abs(x - y) for x, y in zip(values, b[name])), 1e-3 * scale, name)


if __name__ == "__main__":
    unittest_report.main("stragglers_test")
