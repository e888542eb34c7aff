"""Programs of other frameworks on this machine: they start, meet and end, and a slow one is found by what they tell of their steps."""

import json
import pathlib

import unittest_report
from cli_support import ROOT, SLOW, CliCase, until

EXAMPLE = ROOT / "examples/own-program"


def job(command, env=(), stragglers="", policy="Never", name="own"):
    variables = ", ".join(f"{{name: {key}, value: {json.dumps(value)}}}" for key, value in env)
    return f"""
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {{name: {name}}}
spec:
  replicaSpecs:
    worker:
      replicas: 3
      minReplicas: 1
      restartPolicy: {policy}
      template: {{spec: {{containers: [{{name: trainer, command: {json.dumps(command)}, env: [{variables}]}}]}}}}
{stragglers}"""


class OwnProgramsTest(CliCase):
    def straggling(self):
        return ((self.status("own") or {}).get("status") or {}).get("stragglers", [])

    def log(self, member):
        return self.paceline("logs", "own", member).stdout

    def start_example(self, slow="1", steps="1000000", **more):
        file = self.write(job([str(EXAMPLE / "train.py")], [("SLOW_RANK", slow), ("STEPS", steps)], **more))
        return self.start("run", file, "--output", "json", stdout=(self.folder / "output").open("w"))

    def test_a_slow_member_is_found_by_what_programs_tell_and_stays(self):
        process = self.start_example(stragglers="  stragglers: {action: Replace, lostSeconds: 0.1}\n", policy="OnFailure")
        found = until(self.straggling, 60 * SLOW, "the slow member is found")
        self.assertEqual([(each["kind"], each["role"], each["index"], each["rank"], each["part"]) for each in found],
                         [("Slow", "worker", 1, 1, "compute")])
        self.assertGreater(found[0]["factor"], 1.15)
        self.assertGreater(found[0]["ownMs"], 20)
        until(lambda: [each["action"] for each in self.straggling()] == ["Report"], 10 * SLOW, "it is judged")
        self.assertIn("spec.training", self.straggling()[0]["why"])
        self.assertNotIn("stragglerReplacements", self.status("own")["status"])
        status = self.status("own")
        self.assertGreater(status["step"], 20)
        members = {each["index"]: each for each in status["members"]}
        self.assertGreater(members[1]["computeMs"], members[0]["computeMs"])
        self.assertLess(members[1]["waitMs"], members[0]["waitMs"])
        condition = next(each for each in status["status"]["conditions"] if each["type"] == "Straggling")
        self.assertEqual((condition["status"], condition["reason"]), ("True", "Slow"))
        self.stop(process)
        self.assertNotIn("checkpoint", process.stderr.read())   # the program's are its own
        told = [event for event in map(json.loads, (self.folder / "output").read_text().splitlines()) if event["type"] == "straggler"]
        self.assertEqual([(event["found"], event["index"]) for event in told], [(True, 1)])
        replay = self.paceline("explain", "own", "--stragglers").stdout
        self.assertRegex(replay, r"worker-1 .* yes")
        self.nothing_left()

    def test_the_members_ends_are_the_programs_own(self):
        result = self.ends(0, "run", self.write(job([str(EXAMPLE / "train.py")], [("STEPS", "20")])))
        self.assertIn("Succeeded", result.stdout)
        self.assertEqual(self.status("own")["phase"], "Succeeded")
        self.assertEqual({each["phase"] for each in self.status("own")["members"]}, {"left"})
        self.assertIn("rank 2 has done 20 steps", self.log("worker-2"))
        result = self.ends(1, "run", self.write(job(["sh", "-c", "exit 7"], name="fails")))
        self.assertEqual(self.status("fails")["status"]["fault"]["exitCode"], 7)
        result = self.ends(1, "run", self.write(job(["sh", "-c", "kill -9 $$"], name="killed")))
        self.assertEqual(self.status("killed")["status"]["fault"]["signal"], 9)
        self.nothing_left()

    def test_bad_lines_and_programs_that_tell_nothing_do_no_harm(self):
        program = self.folder / "program.py"
        program.write_text(f"""#!/usr/bin/env python3
import os, socket, sys, time
sys.path.insert(0, {str(EXAMPLE)!r})
from paceline_steps import Steps
rank = int(os.environ["RANK"])
steps = Steps()
for step in range(1, 1000000):
    own = 0.020 if rank == 1 else 0.005
    time.sleep(own)
    if rank == 0:
        for bad in [b"", b"nonsense", bytes(range(256)), b"step=x compute_ms=1", b"step=1 compute_ms=-1", b"x" * 60000]:
            try:
                steps.socket.sendto(bad, steps.address)
            except OSError:
                pass
    if rank != 2:
        steps.tell(step, compute=own, wait=0.020 - own, nobody_knows_this=1)
""")
        program.chmod(0o755)
        process = self.start("run", self.write(job([str(program)])), stdout=(self.folder / "output").open("w"))
        found = until(self.straggling, 60 * SLOW, "the slow member is found")
        self.assertEqual([each["index"] for each in found], [1])
        self.assertEqual([each["phase"] for each in self.status("own")["members"]], ["training"] * 3)
        self.stop(process)
        log = self.log("worker-0")
        self.assertIn("tells of no step", log)
        self.assertIn("nobody_knows_this_ms", log)
        self.assertLess(log.count("tells of no step"), 10)
        self.nothing_left()

    def test_a_program_that_can_not_start_is_refused(self):
        image = self.write(job(["x"]).replace('command: ["x"]', "image: pytorch"))
        self.assertIn("spec.replicaSpecs.worker", self.ends(4, "run", image).stderr)
        self.assertIn("--resume", self.ends(2, "run", self.write(job(["true"])), "--resume").stderr)
        result = self.ends(1, "run", self.write(job([str(pathlib.Path("/no/such/program"))])))
        self.assertIn("/no/such/program", self.log("worker-0") + result.stderr)


    def test_no_step_is_told_of_programs_that_tell_of_none(self):
        process = self.start("run", self.write(job(["sleep", "1000"])))
        until(lambda: (self.status("own") or {}).get("phase") == "Running", 20 * SLOW, "it runs")
        self.stop(process)
        self.assertNotIn("at step", process.stderr.read())
        self.nothing_left()

    def test_a_run_is_suspended_resumed_and_scaled(self):
        process = self.start_example(slow="-1")

        def members(count, phase="Running"):
            status = self.status("own") or {}
            train = [each for each in status.get("members", []) if each["phase"] == "training"]
            return status if status.get("phase") == phase and len(train) == count else None

        first = until(lambda: members(3), 20 * SLOW, "it runs")
        for command in ("suspend", "resume"):
            self.paceline(command, "own")
            until(lambda: members(*((0, "Suspended") if command == "suspend" else (3,))), 20 * SLOW, command)
        pids = {each["pid"] for each in first["members"]}
        again = until(lambda: members(3), 20 * SLOW, "it runs again")
        self.assertTrue(pids.isdisjoint({each["pid"] for each in again["members"]}))
        self.paceline("scale", "own", "worker=2")
        until(lambda: members(2), 20 * SLOW, "it has another size")
        self.stop(process)
        self.nothing_left()


if __name__ == "__main__":
    unittest_report.main("own_programs_test")
