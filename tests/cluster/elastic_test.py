"""A ring on real pods that loses a worker, the chief, a node, and a worker while nobody leads: nobody else starts again, and the job ends as an
undisturbed one does. And one whose member is slow, and that is asked for a checkpoint and for another member."""

import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import tempfile

import unittest_report
from cluster_case import needs_cluster
from command_case import CommandCase
from job_case import ENDLESS_STEPS, SLOW
from machine import cluster, parts
from ring_case import RingCase, ring, successor_of

# More than members with SLOW's share of a processor do until all that is lost here has come back: they do about 100 a second.
STEPS = 8_000
TRAINING = {"model": {"type": "mlp", "hidden": [128], "classes": 10}, "globalBatchSize": 512, "steps": STEPS, "evaluation": {"everySteps": 1000}}
END_SECONDS = 300


@needs_cluster
class ElasticTest(CommandCase, RingCase):
    def test_lost_members_come_back_while_the_others_train_and_the_accuracy_is_the_same(self):
        home, away = self.nodes()
        self.apply(ring("straight", home, {"containers": [{"name": "trainer"}]}, TRAINING))
        self.wait_for("straight", "Succeeded", END_SECONDS)
        accuracy = self.status("straight")["progress"]["testAccuracy"]

        steady, moving = self.begin("tried", home, SLOW["spec"], TRAINING)
        told = self.follow("tried")
        moving = self.lose("tried", moving, self.delete)
        self.lose("tried", "tried-chief-0-0", self.delete)
        moving = self.lose_node("tried", moving, home, away)
        self.lose("tried", moving, lambda pod: self.wait_for_another_leader(self.kill_while_nobody_leads(pod)[1]))
        self.assertEqual(self.status("tried")["phase"], "Running")

        self.unthrottle("tried")
        self.wait_for("tried", "Succeeded", END_SECONDS)
        status = self.status("tried")
        self.assertEqual(status["progress"]["step"], STEPS)
        self.assertAlmostEqual(status["progress"]["testAccuracy"], accuracy, delta=1e-6)
        self.assertEqual([(each["role"], each["cause"], each["count"]) for each in status["restarts"]["byCause"] if each["role"] == "chief"],
                         [("chief", "Deleted", 1)])
        self.assertEqual(sum(each["count"] for each in status["restarts"]["byCause"]), 4)
        self.assert_no_step_is_lost(steady, told())

    def test_a_slow_member_takes_fewer_samples_or_is_replaced_on_another_node_while_the_others_train(self):
        """Then a checkpoint and another member are asked for, by people."""
        home, away = self.nodes()
        training = {"model": {"type": "mlp", "hidden": [256, 256], "classes": 10}, "globalBatchSize": 768, "steps": ENDLESS_STEPS}
        kept = pathlib.Path(tempfile.mkdtemp(prefix="paceline-kept-"))
        self.addCleanup(shutil.rmtree, kept)
        kept.chmod(0o777)
        trainer = {"name": "trainer", "resources": {"limits": {"cpu": "400m"}}, "volumeMounts": [{"name": "kept", "mountPath": "/kept"}]}
        pod = {"containers": [trainer], "volumes": [{"name": "kept", "hostPath": {"path": str(kept)}}]}
        steady, slow = self.begin("uneven", home, pod, training, checkpoint={"everySteps": ENDLESS_STEPS, "location": "/kept"})
        others = {each: self.lives("uneven")[each] for each in ("uneven-chief-0-0", steady)}
        self.addCleanup(self.sign, away, "False")
        self.sign(away, "True")
        less = {"limits": {"cpu": "40m"}, "requests": {"cpu": "40m"}}
        self.kubectl("patch", "pod", slow, "--subresource", "resize", "-p", json.dumps({"spec": {"containers": [{"name": "trainer", "resources": less}]}}))
        found = self.wait_until("the slow one", lambda: [each for each in self.status("uneven").get("stragglers", []) if each["kind"] == "Slow"], 120)
        self.assertEqual([(each["pod"], each["action"], each["nodeTrouble"]) for each in found],
                         [(slow, "Report", f"node {away} has condition GpuUnhealthy (XidError)")])
        self.act_on_slow_ones("Rebalance")
        shares = self.wait_until("its smaller share", lambda: (lambda told: told if len(told) == 3 and min(told.values()) < 200 else None)(
            {each["pod"]: each["samples"] for each in self.status("uneven")["members"]}), 120)
        self.assertEqual((min(shares, key=shares.get), sum(shares.values())), (slow, training["globalBatchSize"]))
        self.assertEqual(self.lives("uneven").keys(), {*others, slow})
        self.act_on_slow_ones("Replace")
        done = self.wait_until("its replacement", lambda: [each for each in self.status("uneven").get("stragglerReplacements", [])
                                                           if each["outcome"] != "UnderWay"], 120)
        successor = successor_of(slow)
        self.assertEqual([(each["pod"], each["host"], each["successor"], each["outcome"]) for each in done], [(slow, away, successor, "Replaced")])
        self.wait_until_whole("uneven", set(others) | {successor})
        self.wait_until("the slow pod's end", lambda: slow not in self.pods("uneven"))
        after = self.lives("uneven")
        self.assertEqual({each: after[each] for each in others}, others, "nobody else was started again")
        self.assertEqual(self.pods("uneven")[successor]["spec"]["nodeName"], home)
        status = self.wait_until("how the view began", lambda: (lambda s: s if "change" in s["view"] else None)(self.status("uneven")))
        self.assertEqual((status["phase"], status["view"]["change"]["stepsLost"]), ("Running", 0))
        self.assertEqual(status["restarts"]["total"], 0)
        reasons = self.reasons("uneven")
        self.assertLessEqual({"StragglerDetected", "StragglerReplacing", "StragglerReplaced", "ViewChanged"}, reasons)
        self.assertNotIn("StragglerAsSlow", reasons)
        # Its node is the last choice from now on.
        self.lose("uneven", successor, self.delete)
        next_pod = self.pods("uneven")[successor_of(successor)]
        preferred = next_pod["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
        self.assertEqual([each["matchFields"] for each in (one["preference"] for one in preferred)],
                         [[{"key": "metadata.name", "operator": "NotIn", "values": [away]}]])
        self.save_by_request("uneven", kept)
        self.replace_by_request("uneven", steady)
        self.kubectl("delete", "tj/uneven", "--wait=false")

    def save_by_request(self, name, folder):
        """No checkpoint is due; the one that is asked for is written when the command returns."""
        before = self.status(name)
        self.assertEqual((before.get("lastCheckpoint"), list(folder.iterdir())), (None, []))
        self.paceline("checkpoint", name)
        status = self.status(name)
        self.assertEqual(status["requests"]["checkpoint"]["outcome"], "Done")
        saved = int(status["lastCheckpoint"].removeprefix("/kept/step-"))
        self.assertGreaterEqual(saved, before["progress"]["step"])
        self.assertEqual([each.name for each in folder.iterdir()], [f"step-{saved:09}"])
        self.assertIn("CheckpointSaved", self.reasons(name))

    def replace_by_request(self, name, pod):
        """Another pod has its rank, and nobody else was started again."""
        before, lives = self.member(name, pod), self.lives(name)
        restarts, successor = self.status(name)["restarts"], successor_of(pod)
        self.paceline("replace", name, f"{before['role']}-{before['index']}")
        self.assertEqual(self.status(name)["requests"]["replace"]["outcome"], "Done")
        self.wait_until_whole(name, set(lives) - {pod} | {successor})
        self.wait_until("the end of the one that was replaced", lambda: pod not in self.pods(name))
        lives.pop(pod)
        after = self.lives(name)
        self.assertEqual({each: after[each] for each in lives}, lives)
        self.assertEqual(self.member(name, successor)["rank"], before["rank"])
        status = self.status(name)
        done = status["stragglerReplacements"][-1]
        self.assertEqual((done["pod"], done["successor"], done["cause"], done["outcome"]), (pod, successor, "Requested", "Replaced"))
        self.assertEqual((status["phase"], status["view"]["change"]["stepsLost"], status["restarts"]["total"]), ("Running", 0, restarts["total"]))
        self.assertLessEqual({"MemberReplacing", "MemberReplaced"}, self.reasons(name))

    def member(self, name, pod):
        return next(each for each in self.status(name)["members"] if each["pod"] == pod)

    def reasons(self, name):
        """Of the job's events."""
        return {event["reason"] for event in self.get("events")["items"] if event["involvedObject"]["name"] == name}

    def act_on_slow_ones(self, action):
        self.kubectl("patch", "tj/uneven", "--type=merge", "-p", json.dumps({"spec": {"stragglers": {"action": action, "lostSeconds": 2}}}))

    def sign(self, node, status):
        """As a tool does that watches the hardware."""
        condition = {"type": "GpuUnhealthy", "status": status, "reason": "XidError" if status == "True" else ""}
        self.kubectl("patch", f"node/{node}", "--subresource=status", "-p", json.dumps({"status": {"conditions": [condition]}}))

    def lose(self, name, pod, how):
        """The pod that takes this one's place, when the ring is whole again; nobody else was started again."""
        before = self.lives(name)
        how(pod)
        others, successor = set(before) - {pod}, successor_of(pod)
        self.wait_until_whole(name, others | {successor})
        after = self.lives(name)
        self.assertEqual({other: after[other] for other in others}, {other: before[other] for other in others})
        self.assertEqual(after[successor][1], [0])
        return successor

    def lose_node(self, name, pod, home, away):
        """The node comes back at the end, and with it a process that nobody knows any more."""
        with contextlib.ExitStack() as healing:
            healing.callback(self.plug, away, True)
            successor = self.lose(name, pod, lambda _: self.plug(away, False))
            self.assertEqual(self.pods(name)[successor]["spec"]["nodeName"], home)
            before = self.lives(name)
        self.kubectl("wait", f"node/{away}", "--for=condition=Ready", "--timeout=60s")
        self.wait_until("the end of the one that was cut off", lambda: pod not in self.pods(name))
        before.pop(pod, None)
        self.assertEqual(self.lives(name), before)
        return successor

    def follow(self, name):
        """Every status of a job from now on; call the result for (generation, step) of each."""
        told = tempfile.TemporaryFile("w+")
        self.addCleanup(told.close)
        words = [parts.program("kubectl"), f"--namespace={self.namespace}", "get", f"tj/{name}", "--watch",
                 "-o", 'jsonpath={.status.view.generation} {.status.progress.step}{"\\n"}']
        watch = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=told, env=cluster.client_environment(self.layout))
        self.addCleanup(watch.wait)
        self.addCleanup(watch.kill)

        def lines():
            self.assertIsNone(watch.poll(), "the watch goes on")
            told.seek(0)
            return [tuple(map(int, line.split())) for line in told.read().splitlines() if len(line.split()) == 2]
        return lines

    def assert_no_step_is_lost(self, steady, told):
        """By each status that there was, and by the log of a member that saw all views: what was applied before a view ended is not taken again
        in the next one."""
        self.assertGreater(len(told), 10)
        for earlier, later in zip(told, told[1:]):
            self.assertLessEqual(earlier[0], later[0])
            self.assertLessEqual(earlier[1], later[1])
        events = re.findall(r"step (\d+) is (abandoned|the first of view)", self.kubectl("logs", steady))
        self.assertGreaterEqual([kind for _, kind in events].count("the first of view"), 8)
        applied = 0
        for step, kind in events:
            if kind == "abandoned":
                self.assertGreaterEqual(int(step), applied)
            else:
                self.assertGreater(int(step), applied)
            applied = int(step)


if __name__ == "__main__":
    unittest_report.main("cluster_elastic_test")
