"""What restartPolicy, backoffLimit and suspend mean in a local run: the same as on a cluster."""

import json
import os
import signal
import time

import unittest_report
from cli_support import ENDLESS, SLOW, CliCase, job, member_of, processes_with, until


class RestartsTest(CliCase):
    def restarting(self, steps, limit=6, **roles):
        """A ring of a chief and two workers whose members are replaced."""
        text = job(members=3, steps=steps, extra=f"  checkpoint: {{everySteps: 50}}\n  runPolicy: {{backoffLimit: {limit}}}\n", **roles)
        return self.write(text.replace("chief: {}", "chief: {restartPolicy: OnFailure}").replace("replicas: 2}", "replicas: 2, restartPolicy: OnFailure}"))

    def members_train(self, after=0, number=0, **pods):
        """The run's status once its members have taken steps beyond `after`, in pods that end in `number`; `pods`: in others."""
        def look():
            status = self.status("digits")
            ready = status and status["phase"] == "Running" and status["step"] > after
            numbers = {f"{m['role']}_{m['index']}": int(m.get("pod", "none-0").rsplit("-", 1)[1]) for m in status["members"]} if ready else {}
            wanted = {**dict.fromkeys(numbers, number), **pods}
            return status if ready and numbers == wanted and all(m.get("pid") and m["rank"] >= 0 for m in status["members"]) else None
        return until(look, 40 * SLOW, f"{pods or 'all'} train")

    def in_attempt(self, number, after=0):
        return self.members_train(after, number)

    def events_of(self, code, process):
        output, _ = self.outcome(code, process, 120 * SLOW)
        return [json.loads(line) for line in output.splitlines() if line.startswith("{")]

    def check_it_went_on(self, lost):
        """The others keep their processes, and every step counts once."""
        steps = 60000
        process = self.start("run", self.restarting(steps), "--output", "json")
        before = self.members_train(after=200)
        os.kill(member_of(before, lost)["pid"], signal.SIGKILL)
        after = self.members_train(after=before["step"], **{lost.replace("-", "_"): 1})
        pids = {name: member_of(before, name)["pid"] for name in ("chief-0", "worker-0", "worker-1")}
        for name, pid in pids.items():
            (self.assertNotEqual if name == lost else self.assertEqual)(member_of(after, name)["pid"], pid, name)
        events = self.events_of(0, process)
        self.assertEqual((events[-1]["phase"], events[-1]["step"]), ("Succeeded", steps))
        views = [event["members"] for event in events if event["type"] == "view"]
        everybody = ["chief-0", "worker-0", "worker-1"]
        self.assertEqual(views, [everybody, [name for name in everybody if name != lost], everybody])
        self.assertEqual(len([e for e in events if e["type"] == "note" and e["message"].startswith(f"{lost} (")]), 1)
        lines = [json.loads(line) for line in (self.state / "runs/digits/metrics.jsonl").read_text().splitlines()]
        told = [line["step"] for line in lines if line.get("type") == "step"]
        self.assertEqual(told, sorted(set(told)), "no step is told twice, and none after a later one")
        newcomer = (self.state / f"runs/digits/logs/digits-{lost}-1.log").read_text()
        self.assertRegex(newcomer, r"caught up with step \d+", "it had the state before it joined")
        times = [line["timeSeconds"] for line in lines if line.get("type") == "step"]
        self.assertEqual(times, sorted(times), "time goes on, whoever is rank 0")
        self.nothing_left()

    def test_a_lost_worker_is_replaced_while_the_others_go_on(self):
        self.check_it_went_on("worker-1")

    def test_a_lost_chief_is_replaced_while_the_others_go_on(self):
        self.check_it_went_on("chief-0")

    def test_restarts_before_the_window_do_not_count(self):
        file = self.restarting(ENDLESS, limit=1)
        file.write_text(file.read_text().replace("backoffLimit: 1", "backoffLimit: 1, restartWindowSeconds: 3"))
        process = self.start("run", file)
        status = self.members_train(after=200)
        for number in (1, 2):
            killed = time.time()
            os.kill(member_of(status, "worker-1")["pid"], signal.SIGKILL)
            status = self.members_train(after=status["step"], worker_1=number)
            restarts = status["status"]["restarts"]
            self.assertEqual((restarts["total"], len(restarts["recent"])), (number, 1), "those before the window are forgotten")
            until(lambda: time.time() > killed + 5, 10, "the restart lies before the window")   # noqa: B023
            status = self.status("digits")
        for name in ("worker-0", "worker-1"):
            os.kill(member_of(status, name)["pid"], signal.SIGKILL)
        self.outcome(1, process, 60 * SLOW)
        status = self.status("digits")
        self.assertEqual((status["phase"], status["reason"], status["status"]["restarts"]["total"]), ("Failed", "BackoffLimitExceeded", 3))
        self.nothing_left()

    def test_members_that_wait_for_others_are_told_of(self):
        file = self.restarting(ENDLESS)
        file.write_text(file.read_text().replace("replicas: 2, ", "replicas: 2, minReplicas: 2, "))
        process = self.start("run", file, "--output", "json")
        status = self.members_train(after=200)
        for number in (1, 2):   # the second time another one comes after a back-off
            for name in ("worker-0", "worker-1"):
                os.kill(member_of(status, name)["pid"], signal.SIGKILL)
            status = self.members_train(after=status["step"], worker_0=number, worker_1=number)
        events = [json.loads(line) for line in (self.state / "runs/digits/events.jsonl").read_text().splitlines()]
        self.assertIn("TooFewMembers", [event["reason"] for event in events])
        self.assertEqual(status["reason"], "MembersTrain")
        process.send_signal(signal.SIGINT)
        output, _ = self.outcome(130, process, 60 * SLOW)
        notes = [each["message"] for each in map(json.loads, output.splitlines()) if each["type"] == "note"]
        self.assertTrue([note for note in notes if "minReplicas" in note], notes)
        self.nothing_left()

    def test_a_scope_of_the_whole_job_starts_all_members_again(self):
        file = self.restarting(ENDLESS)
        file.write_text(file.read_text().replace("replicas: 2, restartPolicy: OnFailure", "replicas: 2, restartPolicy: OnFailure, restartScope: Job"))
        process = self.start("run", file)
        before = self.members_train(after=200)
        os.kill(member_of(before, "worker-1")["pid"], signal.SIGKILL)
        after = self.in_attempt(1, after=100)
        for name in ("chief-0", "worker-0", "worker-1"):
            self.assertNotEqual(member_of(after, name)["pid"], member_of(before, name)["pid"], name)
        counted = after["status"]["restarts"]["byCause"]
        self.assertEqual([(each["role"], each["cause"], each["count"]) for each in counted], [("worker", "Killed", 1)])
        # The chief's scope is still its own: it is replaced alone.
        os.kill(member_of(after, "chief-0")["pid"], signal.SIGKILL)
        last = self.members_train(after["step"], number=1, chief_0=2)
        self.assertEqual(member_of(last, "worker-0")["pid"], member_of(after, "worker-0")["pid"])
        self.stop(process)
        self.nothing_left()

    def test_a_member_that_is_asked_to_end_leaves_and_is_replaced(self):
        process = self.start("run", self.restarting(ENDLESS))
        before = self.members_train(after=200)
        os.kill(member_of(before, "worker-0")["pid"], signal.SIGTERM)
        self.members_train(after=before["step"], worker_0=1)
        self.stop(process)
        self.nothing_left()

    def test_scale_changes_the_size_of_a_run_while_it_trains(self):
        text = job(members=2, steps=ENDLESS).replace("replicas: 1}", "replicas: 1, minReplicas: 1, maxReplicas: 3}")
        process = self.start("run", self.write(text))
        before = {name: member_of(self.members_train(after=200), name)["pid"] for name in ("chief-0", "worker-0")}

        def trains_with(members):
            def look():
                status = self.status("digits")
                names = [f"{m['role']}-{m['index']}" for m in status["members"] if m.get("pid") and m["rank"] >= 0]
                return status if status["phase"] == "Running" and names == members else None
            status = until(look, 40 * SLOW, f"{members} train")
            until(lambda: self.status("digits")["step"] > status["step"], 20 * SLOW, "more steps")
            self.assertEqual({name: member_of(status, name)["pid"] for name in before}, before, "nobody else starts again")
        self.assertEqual(self.ends(0, "scale", "digits", "worker=3").stdout, "digits scaled: worker from 1 to 3\n")
        trains_with(["chief-0", "worker-0", "worker-1", "worker-2"])
        chief = (self.state / "runs/digits/logs/digits-chief-0-0.log").read_text()
        # Two newcomers may come in two views.
        self.assertRegex(chief, r"view \d+: rank 0 of 4, .*, (2|3) links were there before", "newcomers are linked ahead of their view")
        self.assertEqual(self.ends(0, "scale", "digits", "worker=3").stdout, "digits has that many already\n")
        self.ends(0, "scale", "digits", "worker=1")
        trains_with(["chief-0", "worker-0"])
        self.ends(0, "scale", "digits", "worker=2")
        trains_with(["chief-0", "worker-0", "worker-1"])
        for refused in ("worker=4", "worker=0", "ps=1", "worker"):
            self.assertEqual(self.ends(2, "scale", "digits", refused).stdout, "", refused)
        self.assertEqual(self.ends(2, "scale", "digits", "worker=2", "worker=3").stdout, "")
        self.ends(3, "scale", "nobody", "worker=2")
        self.stop(process)
        self.ends(4, "scale", "digits", "worker=2")
        path = self.write(text.replace(f"steps: {ENDLESS}", f"steps: {self.status('digits')['step']}"))
        self.assertIn(f"run digits goes on with 1 worker, as {path} says; it had 2", self.ends(0, "run", path, "--resume").stdout)
        self.nothing_left()

    def test_a_member_that_stands_by_takes_a_lost_ones_place(self):
        text = job(members=2, steps=ENDLESS).replace("replicas: 1}", "replicas: 1, standby: 1, restartPolicy: OnFailure}")
        text = text.replace("chief: {}", "chief: {restartPolicy: OnFailure}")
        process = self.start("run", self.write(text))

        def spare_of(status, number=0):
            """The worker that stands by, whichever it is, while all others train; its pod has this number."""
            if not status or status["phase"] != "Running" or not all(m.get("pid") for m in status["members"]):
                return None
            spare = [m for m in status["members"] if m["phase"] == "standby" and m["pod"].endswith(f"-{number}")]
            return spare[0] if len(spare) == 1 and sum(m["rank"] >= 0 for m in status["members"]) == 2 else None
        spare = until(lambda: spare_of(self.status("digits")), 40 * SLOW, "two train, and a worker stands by")
        before = self.status("digits")
        lost = f"worker-{1 - spare['index']}"
        os.kill(member_of(before, lost)["pid"], signal.SIGKILL)
        until(lambda: spare_of(self.status("digits"), number=1), 40 * SLOW, "another worker stands by")
        after = self.status("digits")
        self.assertEqual(member_of(after, lost)["phase"], "standby")
        for name in ("chief-0", f"worker-{spare['index']}"):
            self.assertEqual(member_of(after, name)["pid"], member_of(before, name)["pid"], "nobody starts again")
            self.assertGreaterEqual(member_of(after, name)["rank"], 0, name)
        until(lambda: self.status("digits")["step"] > after["step"], 20 * SLOW, "more steps")
        os.kill(member_of(after, "chief-0")["pid"], signal.SIGKILL)

        def chief_leads():
            chief = member_of(self.status("digits"), "chief-0")
            return chief.get("pid") and chief["rank"] == 0 and chief["pod"].endswith("-1")
        until(chief_leads, 40 * SLOW, "the chief is back")
        self.stop(process)
        self.nothing_left()

    def test_a_pause_of_two_seconds_is_no_loss(self):
        process = self.start("run", self.restarting(ENDLESS))
        before = self.members_train(after=200)
        frozen = member_of(before, "worker-0")["pid"]
        os.kill(frozen, signal.SIGSTOP)
        begin = time.monotonic()
        until(lambda: time.monotonic() - begin > 2, 10 * SLOW, "two seconds pass")
        os.kill(frozen, signal.SIGCONT)
        after = self.members_train(after=before["step"])
        self.assertEqual(member_of(after, "worker-0")["pid"], frozen)
        self.assertEqual(after["restarts"]["total"] if "restarts" in after else 0, 0)
        self.stop(process)
        self.nothing_left()

    def test_all_members_lost_at_once_go_on_from_the_newest_checkpoint(self):
        process = self.start("run", self.restarting(ENDLESS))
        before = self.members_train(after=500)
        for member in before["members"]:
            os.kill(member["pid"], signal.SIGKILL)
        self.members_train(chief_0=1, worker_0=1, worker_1=1)
        logs = "".join(path.read_text() for path in (self.state / "runs/digits/logs").glob("*-1.log"))
        self.assertRegex(logs, r"resumes from step-0*[1-9]")
        self.stop(process)
        self.nothing_left()

    def test_servers_start_again_from_the_newest_checkpoint(self):
        steps = 6000
        text = job(members=3, steps=steps, strategy="{type: ParameterServer}", roles="ps: {replicas: 1, restartPolicy: OnFailure}",
                   extra="  checkpoint: {everySteps: 50}\n")
        process = self.start("run", self.write(text.replace("replicas: 2}", "replicas: 2, restartPolicy: OnFailure}")), "--output", "json")
        self.kill_member(until(lambda: (lambda s: s if s and s["phase"] == "Running" and s["step"] > 200 else None)(self.status("digits")),
                               40 * SLOW, "it trains"))
        events = self.events_of(0, process)
        self.assertEqual((events[-1]["phase"], events[-1]["step"]), ("Succeeded", steps))
        self.assertEqual(len([e for e in events if e["type"] == "note" and "attempt 1" in e["message"]]), 1)
        self.assertEqual({m["pod"] for m in events[-1]["members"]},
                         {"digits-chief-0-1", "digits-worker-0-1", "digits-worker-1-1", "digits-ps-0-1"})
        self.assertRegex((self.state / "runs/digits/logs/digits-chief-0-1.log").read_text(), r"resumes from step-0*[1-9]")
        self.nothing_left()

    def kill_member(self, status):
        os.kill(member_of(status, "worker-1")["pid"], signal.SIGKILL)

    def test_a_run_fails_when_its_restarts_are_used_up(self):
        process = self.start("run", self.restarting(ENDLESS, limit=1))
        self.kill_member(self.members_train(after=100))
        before = self.members_train(after=200, worker_1=1)
        self.kill_member(before)
        self.assertEqual(process.wait(60 * SLOW), 1)
        status = self.status("digits")
        self.assertEqual((status["phase"], status["reason"]), ("Failed", "BackoffLimitExceeded"))
        self.assertGreaterEqual(status["step"], before["step"])
        if not status["checkpoint"]:
            self.assertIn("it begins anew by: paceline run ", self.paceline("explain", "digits").stdout)
        self.nothing_left()

    def test_a_run_is_suspended_and_resumed(self):
        process = self.start("run", self.write(job(steps=ENDLESS, extra="  runPolicy: {suspend: true}\n")))
        until(lambda: (self.status("digits") or {}).get("phase") == "Suspended", 20 * SLOW, "it begins suspended")
        self.assertEqual(self.paceline("resume", "digits").returncode, 0)
        before = self.in_attempt(0)
        for again in (False, True):
            self.assertEqual(self.paceline("suspend", "digits").stdout, "digits " + ("is suspended already\n" if again else "suspended\n"))
        until(lambda: self.status("digits")["phase"] == "Suspended", 20 * SLOW, "it is suspended")
        until(lambda: not processes_with(str(self.state / "runs/digits/pods")), 20 * SLOW, "its members have left")
        self.assertIsNone(process.poll())
        self.assertEqual(self.paceline("resume", "digits").stdout, "digits resumed\n")
        self.in_attempt(1, after=before["step"])
        self.stop(process)
        ended = self.paceline("suspend", "digits")
        self.assertEqual((ended.returncode, ended.stdout), (4, ""))
        self.assertIn("--resume digits", ended.stderr)
        self.nothing_left()

    def test_a_suspension_that_can_not_save_says_what_it_costs(self):
        process = self.start("run", self.write(job(steps=ENDLESS, extra="  checkpoint: {everySteps: 1000}\n")), "--output", "json")
        saved = until(lambda: sorted((self.state / "runs/digits/checkpoints").glob("step-*")), 40 * SLOW, "a checkpoint")
        folder = saved[0].parent
        os.rename(folder, folder.with_name("kept"))
        folder.write_text("a file, where no checkpoint can be written")


        def saves_fail():
            conditions = self.status("digits")["status"].get("conditions", [])
            return [each for each in conditions if each["type"] == "CheckpointFailed" and each["status"] == "True"]
        until(saves_fail, 40 * SLOW, "a save fails")
        self.assertRegex(self.ends(0, "explain", "digits").stdout, r"its newest checkpoint is of step \d+, \d+ steps behind, since saves fail \(")
        self.assertRegex(self.paceline("get").stdout, r"(?m)^digits +Running, saves fail ")
        suspended = self.ends(4, "suspend", "digits")   # what it says may be followed by more, once the owner knows more
        self.assertEqual(suspended.stdout, "digits suspended\n")
        self.assertIn("could not be saved", suspended.stderr)

        def settled():
            status = self.status("digits")["status"]
            return status if f"step {status['progress']['step']} could not be saved" in status["message"] else None
        status = until(settled, 20 * SLOW, "what the last save was")
        step = status["progress"]["step"]
        self.assertEqual(status["phase"], "Suspended")
        self.assertIn(status["message"], self.ends(0, "explain", "digits").stdout)
        process.send_signal(signal.SIGINT)
        output, _ = self.outcome(130, process, 60 * SLOW)
        events = [json.loads(line) for line in output.splitlines()]
        self.assertIn(step, [each["step"] for each in events if each["type"] == "checkpoint" and each.get("error")])
        notes = [each["message"] for each in events if each["type"] == "note"]
        self.assertTrue([note for note in notes if note.startswith(status["message"]) and "paceline resume digits" in note], notes)
        self.nothing_left()


if __name__ == "__main__":
    unittest_report.main("restarts_test")
