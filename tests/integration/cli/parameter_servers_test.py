"""Parameter servers as users see them: `paceline run` with real servers, workers and an evaluator, in every mode, and what becomes of a run that loses
one."""

import contextlib
import json
import math
import os
import pathlib
import random
import signal
import time

import cli_support
import unittest_report
from cli_support import ENDLESS, ROOT, SANITIZED, SLOW, CliCase, member_of, tensors_of, until

MODES = {
    "sync": "synchronization: Synchronous",
    "backup": "synchronization: Synchronous, backupWorkers: 1",
    "drop": "synchronization: Synchronous, parameterServer: {gradientsPerStep: 2}",
    "async": "synchronization: Asynchronous",
    "dc": "synchronization: Asynchronous, parameterServer: {delayCompensation: 0.5}",
    "ssp": "synchronization: BoundedStaleness, parameterServer: {staleness: 2}",
}


def job(strategy, steps=400, workers=2, servers=2, evaluator="", extra="", transport="Auto", every=100):
    """A chief and `workers` workers; no servers: all-reduce."""
    kind = "ParameterServer" if servers else "AllReduce"
    if "parameterServer" not in strategy and servers:
        strategy += f", parameterServer: {{transport: {transport}}}"
    roles = [f"ps: {{replicas: {servers}}}"] if servers else []
    roles += [f"evaluator: {evaluator}"] if evaluator else []
    return cli_support.job(members=workers + 1, steps=steps, extra=extra, strategy=f"{{type: {kind}, {strategy}}}", roles="\n    ".join(roles),
                           momentum=0.5, batch=60, every=every)


class ParameterServersTest(CliCase):
    def run_to_the_end(self, text, name="digits", *options):
        return self.events(self.write(text), "--name", name, *options)

    def pid_of(self, status, role, index=0):
        return member_of(status, f"{role}-{index}")["pid"]

    def difference(self, a, b):
        a, b = tensors_of(a), tensors_of(b)
        self.assertEqual(a.keys(), b.keys())
        worst = 0.0
        for name in a:
            self.assertEqual(len(a[name]), len(b[name]))
            for x, y in zip(a[name], b[name]):
                self.assertTrue(math.isfinite(x) and math.isfinite(y), name)
                worst = max(worst, abs(x - y))
        return worst

    def test_the_examples_reach_their_target(self):
        for path in sorted((ROOT / "examples").glob("digits-ps-*.yaml")):
            with self.subTest(example=path.stem):
                last = self.events(path)[-1]
                self.assertTrue(last["targetReached"], last)
        self.nothing_left()

    def test_every_mode_learns_the_digits(self):
        for name, strategy in MODES.items():
            with self.subTest(mode=name):
                last = self.run_to_the_end(job(strategy, steps=600), name)[-1]
                self.assertEqual((last["phase"], last["step"]), ("Succeeded", 600))
                self.assertGreater(last["testAccuracy"], 0.9, name)
                self.assertTrue(pathlib.Path(last["model"]).is_file())
        self.nothing_left()

    def test_which_gradients_count_is_said_and_what_it_costs(self):
        steps = 400
        for mode, samples, words in (("drop", 40, "40 of 60 samples (67 %)"), ("backup", 60, "all 60 samples")):
            with self.subTest(mode=mode):
                result = self.ends(0, "run", self.write(job(MODES[mode], steps=steps)), "--name", mode, timeout=300)
                step = f"each step counts the first 2 of 3 gradients: {words}"
                self.assertEqual(result.stdout.splitlines()[1], step, "ahead of everything")
                status = self.status(mode)
                self.assertEqual(status["gradients"], {"counted": 2, "workers": 3, "samples": samples, "batch": 60})
                self.assertEqual(status["samples"], steps * samples, "those that count")
                told = [m["staleness"] for m in status["members"] if "staleness" in m]
                self.assertEqual(len(told), 3)
                applied, dropped = (sum(worker.get(key, 0) for worker in told) for key in ("applied", "dropped"))
                self.assertEqual(applied, 2 * steps)
                expected = f"{step}; none came too late\n"
                if dropped > 0:
                    expected = f"{step}; {dropped:,} of {applied + dropped:,} gradients ("
                self.assertIn(expected, result.stdout)
                self.assertIn(expected, self.paceline("describe", mode).stdout)
                self.assertNotIn("staleness   ", result.stdout, "synchronous: none")
        everybody = self.ends(0, "run", self.write(job(MODES["sync"])), "--name", "everybody", timeout=300)
        self.assertNotIn("gradients", everybody.stdout)

    def test_the_staleness_of_every_gradient_is_shown(self):
        path = self.write(job(MODES["async"], steps=400))
        result = self.ends(0, "run", path, timeout=300)
        told = [m["staleness"] for m in self.status("digits")["members"] if "staleness" in m]
        total = sum(worker["applied"] for worker in told)
        self.assertEqual(total, 3 * 400, "every unit once")
        self.assertEqual(sum(sum(worker["histogram"]) for worker in told), total)
        fresh = sum(worker["histogram"][0] for worker in told)
        self.assertLess(fresh, total, "nobody waits, and others update meanwhile")
        spread = rf"((<|>)?\d+ %, |[\d+-]+: )+(<|>)?\d+ % of {total:,} gradients; mean \d+\.\d\d, most {max(w['max'] for w in told)}\n"
        self.assertRegex(result.stdout, r"staleness +" + spread)
        self.assertRegex(self.paceline("describe").stdout, r"staleness +" + spread)
        self.assertRegex(self.paceline("top", "--once").stdout, rf"\nstaleness of {total:,} gradients:  .* %\n")

    def test_synchronous_is_all_reduce(self):
        expected = self.run_to_the_end(job("synchronization: Synchronous", servers=0), "ring")[-1]
        for name, servers, transport in (("one", 1, "SharedMemory"), ("three", 3, "SharedMemory"), ("tcp", 2, "TCP")):
            with self.subTest(servers=servers, transport=transport):
                last = self.run_to_the_end(job("synchronization: Synchronous", servers=servers, transport=transport), name)[-1]
                self.assertLess(self.difference(last["model"], expected["model"]), 1e-4)
                self.assertAlmostEqual(last["loss"], expected["loss"], places=4)

    def test_synchronous_is_all_reduce_whatever_the_model_and_however_many_train_it(self):
        for seed in range(4):
            draw = random.Random(seed)
            layers = [draw.randint(1, 70) for _ in range(draw.randint(0, 3))]
            batch, workers, servers = draw.randint(5, 61), draw.randint(0, 3), draw.randint(1, 4)
            with self.subTest(seed=seed, layers=layers, batch=batch, workers=workers, servers=servers):
                def trained(servers):
                    transport = draw.choice(("SharedMemory", "TCP"))
                    text = job(MODES["sync"], steps=25, workers=workers, servers=servers, transport=transport)
                    text = text.replace("hidden: [32]", f"hidden: {layers}")
                    text = text.replace("globalBatchSize: 60", f"globalBatchSize: {batch}\n    seed: {seed + 1}")
                    return self.run_to_the_end(text, f"random-{seed}-{servers}")[-1]
                expected, last = trained(0), trained(servers)
                self.assertEqual((last["step"], expected["step"]), (25, 25))
                self.assertLess(self.difference(last["model"], expected["model"]), 1e-4)

    def end_by(self, role, index, kill, mode="sync"):
        """How long the run lasts once a member of it is killed or frozen, and what it says then."""
        self.state = self.folder / f"state-{len(list(self.folder.glob('state*')))}"
        process = self.start("run", self.write(job(MODES[mode], steps=ENDLESS)), "--output", "json")
        status = self.training("digits", 5)
        began = time.monotonic()
        os.kill(self.pid_of(status, role, index), kill)
        out, errors = process.communicate(timeout=60 * SLOW)
        took = time.monotonic() - began
        self.assertEqual(process.returncode, 1, errors)
        self.assertIn(f"{role}-{index}", errors.splitlines()[0], errors)
        self.assertEqual(self.status("digits")["phase"], "Failed")
        told = [event["path"] for event in map(json.loads, out.splitlines()) if event["type"] == "checkpoint" and "error" not in event]
        saved = sorted(map(str, (self.state / "runs/digits/checkpoints").glob("step-*")))
        self.assertEqual(told[-1:], saved[-1:], "the last one, too, is told, and once")
        self.assertEqual(len(told), len(set(told)))
        self.nothing_left()
        return took, errors

    def test_a_killed_server_ends_the_job_and_is_named(self):
        for mode in ("sync", "async"):
            for index in (0, 1):
                with self.subTest(mode=mode, index=index):
                    def experiment():
                        took, errors = self.end_by("ps", index, signal.SIGKILL, mode)
                        self.assertIn("SIGKILL", errors)
                        return took
                    self.within(2.0, experiment)

    def test_a_frozen_server_ends_the_job_and_is_named(self):
        def experiment():
            took, errors = self.end_by("ps", 1, signal.SIGSTOP)
            self.assertRegex(errors, "stopped answering")
            return took
        self.within(3.5, experiment)   # the verdict within 2 s, then the end of one that does not listen

    def test_a_chief_that_alone_is_asked_to_stop_ends_the_job_and_is_named(self):
        for mode in ("sync", "async"):
            with self.subTest(mode=mode):
                _, errors = self.end_by("chief", 0, signal.SIGTERM, mode)
                self.assertRegex(errors, "asked to stop")
                self.assertTrue(list((self.state / "runs/digits/checkpoints").glob("step-*")))

    def test_a_server_that_alone_is_asked_to_stop_ends_the_job_which_is_saved(self):
        _, errors = self.end_by("ps", 0, signal.SIGTERM)
        self.assertRegex(errors, "asked to stop")
        newest = max((self.state / "runs/digits/checkpoints").glob("step-*"))
        self.assertEqual(self.status("digits")["checkpoint"], str(newest), "the result names what was saved last")

    def test_a_worker_that_synchronous_training_needs_ends_it_and_what_was_done_is_saved(self):
        def experiment():
            took, errors = self.end_by("worker", 1, signal.SIGKILL)
            self.assertIn("SIGKILL", errors)
            self.assertTrue(list((self.state / "runs/digits/checkpoints").glob("step-*")))
            return took
        self.within(2.0, experiment)

    def interrupt(self, process, run):
        """Ctrl-C; the status, and the tensors of the checkpoint that it left."""
        process.send_signal(signal.SIGINT)
        self.outcome(130, process, 30 * SLOW)
        stopped = self.status(run)
        newest = max((self.state / "runs" / run / "checkpoints").glob("step-*"))
        self.assertEqual(int(newest.name.split("-")[1]), stopped["step"], "what the chief said as it left")
        return stopped, tensors_of(newest / "state.safetensors")

    def test_training_goes_on_without_a_lost_worker_in_the_modes_that_spare_one(self):
        for mode in ("async", "ssp", "backup"):
            for kill in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
                with self.subTest(mode=mode, signal=kill.name):
                    run = f"{mode}-{kill.name.lower()}"
                    process = self.start("run", self.write(job(MODES[mode], steps=ENDLESS)), "--name", run)
                    lost = self.training(run, 5)
                    os.kill(self.pid_of(lost, "worker", 1), kill)
                    is_lost = lambda: member_of(self.status(run), "worker-1")["phase"] == "lost"
                    until(is_lost, 20 * SLOW, "the others go on without it")
                    before = self.status(run)["step"]
                    until(lambda: self.status(run)["step"] > before + 100, 60 * SLOW, "steps without it")
                    _, state = self.interrupt(process, run)
                    if "progress/units" in state:   # else every unit of the steps is in the weights, and no other
                        updates, parts, below, *missing = state["progress/units"]
                        self.assertEqual(parts, 2 if mode == "backup" else 3)
                        if mode == "async":
                            self.assertEqual(updates, below - len(missing), "each unit once")
        self.nothing_left()

    def lose_a_worker(self, name, text):
        """Runs a job that loses worker 1 in its midst: its last line, or None if it was over before."""
        process = self.start("run", self.write(text), "--name", name, "--output", "json")
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid_of(self.training(name, 5), "worker", 1), signal.SIGKILL)
        output, errors = self.outcome(0, process, 120 * SLOW)
        phase = member_of(self.status(name), "worker-1")["phase"]
        if phase in ("left", "gone"):
            return None
        self.assertEqual(phase, "lost", errors)
        return json.loads(output.splitlines()[-1])

    def test_each_unit_counts_once_although_a_worker_is_lost(self):
        """With so small a learning rate gradients hardly depend on what was applied before: the weights are a sum over all units, the same in every order
        and mode, and one unit more or less is seen in how far they have come."""
        def slow_job(strategy, steps, rate="0.00005", **options):
            text = job(strategy, steps=steps, every=steps, **options)
            for old, new in (("hidden: [32]", "hidden: [4096]"), ("globalBatchSize: 60", "globalBatchSize: 1200"), ("0.1, momentum: 0.5", rate)):
                self.assertIn(old, text)
                text = text.replace(old, new)
            return text

        def flat(last):
            tensors = tensors_of(last["model"])
            return [value for name in sorted(tensors) for value in tensors[name]]

        begin = flat(self.run_to_the_end(slow_job("synchronization: Synchronous", 1, rate="1e-30", servers=0), "begin")[-1])
        ways = {}

        def way(steps):
            """What as many steps change, without servers."""
            if steps not in ways:
                whole = flat(self.run_to_the_end(slow_job("synchronization: Synchronous", steps, servers=0), f"whole-{steps}")[-1])
                ways[steps] = [b - a for a, b in zip(begin, whole)]
            return ways[steps]

        for mode in ("async", "ssp", "backup"):
            with self.subTest(mode=mode):
                # Under a sanitizer each step takes longer, and how much depends on the machine: as many steps as the loss needs.
                for steps in (60, 300, 1500) if SANITIZED else (150, 750, 3750):
                    last = self.lose_a_worker(f"{mode}-{steps}", slow_job(MODES[mode], steps))
                    if last is not None:
                        break
                self.assertIsNotNone(last, f"{steps} steps were over before a worker could be killed")
                self.assertEqual(last["step"], steps)
                length = sum(x * x for x in way(steps))
                self.assertGreater(length, 0)
                gone = sum((b - a) * x for a, b, x in zip(begin, flat(last), way(steps))) / length
                one_unit = 1 / (3 * steps)
                self.assertLess(abs(gone - 1), one_unit / 2, f"{gone} of the way, of which a unit is {one_unit}")
        self.nothing_left()

    def test_resume_on_another_number_of_servers(self):
        checkpoint = "  checkpoint: {everySteps: 50}\n"
        path = self.write(job(MODES["sync"], steps=ENDLESS, servers=2, extra=checkpoint, every=0).replace("    evaluation: {everySteps: 0}\n", ""))
        process = self.start("run", path)
        self.training("digits", 5)
        until(lambda: self.status("digits")["step"] > 100, 60, "some checkpoints")
        stopped, _ = self.interrupt(process, "digits")
        steps = stopped["step"] + 500
        self.write(job(MODES["sync"], steps=steps, servers=3, extra=checkpoint))
        result = self.ends(0, "run", path, "--resume", "--output", "json", timeout=300)
        last = json.loads(result.stdout.splitlines()[-1])
        self.assertEqual(last["step"], steps)
        self.assertRegex(result.stdout, r'"message":"run digits goes on; its newest checkpoint is [^"]*/step-')
        # What a run that nobody interrupted ends with.
        whole = self.run_to_the_end(job(MODES["sync"], steps=steps, servers=1), "whole")[-1]
        self.assertEqual(self.difference(last["model"], whole["model"]), 0, "to the bit")

    def test_a_checkpoint_of_servers_goes_on_with_all_reduce(self):
        checkpoint = "  checkpoint: {everySteps: 100}\n"
        path = self.write(job(MODES["sync"], steps=200, extra=checkpoint))
        self.assertEqual(self.paceline("run", path).returncode, 0)
        self.write(job(MODES["sync"], steps=400, servers=0, extra=checkpoint))
        last = self.events(path, "--resume")[-1]
        whole = self.run_to_the_end(job(MODES["sync"], steps=400, servers=0), "whole")[-1]
        self.assertLess(self.difference(last["model"], whole["model"]), 1e-4)

    def test_an_all_reduce_checkpoint_goes_on_with_servers(self):
        checkpoint = "  checkpoint: {everySteps: 100}\n"
        path = self.write(job("synchronization: Synchronous", steps=200, servers=0, extra=checkpoint))
        self.assertEqual(self.paceline("run", path).returncode, 0)
        self.write(job(MODES["async"], steps=600, servers=2, extra=checkpoint))
        last = self.events(path, "--resume")[-1]
        self.assertEqual(last["step"], 600)
        self.assertGreater(last["testAccuracy"], 0.9)

    def test_an_evaluator_evaluates_checkpoints_and_its_death_touches_nothing(self):
        text = job(MODES["async"], steps=ENDLESS, workers=1, servers=1, evaluator="{}", extra="  checkpoint: {everySteps: 200}\n",
                   every=10_000_000)   # else the chief does
        path = self.write(text)
        process = self.start("run", path, "--output", "json")
        status = self.training("digits", 4)
        until(lambda: self.status("digits").get("testAccuracy", 0) > 0, 60 * SLOW, "an evaluation of a checkpoint")
        os.kill(self.pid_of(status, "evaluator"), signal.SIGKILL)
        step = self.status("digits")["step"]
        until(lambda: self.status("digits")["step"] > step + 500 // SLOW, 60 * SLOW, "the training goes on")
        process.send_signal(signal.SIGINT)
        output, _ = self.outcome(130, process, 30 * SLOW)
        events = [json.loads(line) for line in output.splitlines()]
        self.assertIn("evaluator-0", {event.get("evaluator") for event in events if event["type"] == "evaluation"})
        notes = [event["message"] for event in events if event["type"] == "note" and event["message"].startswith("evaluator-0")]
        self.assertEqual(len(notes), 1, notes)
        self.assertRegex(notes[0], r" was killed by signal 9 \(SIGKILL\); it is not started again, and the job goes on$")
        self.nothing_left()

    def test_an_evaluator_evaluates_what_is_saved_last(self):
        # Of the last step's checkpoint the chief's own evaluation is the one that is told: it is `evaluator-0`'s log that says who looked.
        for name, servers, strategy in (("all-reduce", 0, "synchronization: Synchronous"), ("servers", 1, MODES["sync"])):
            text = job(strategy, steps=10000, workers=1, servers=servers, evaluator="{}", extra="  checkpoint: {everySteps: 5000}\n",
                       every=10_000)
            self.run_to_the_end(text, name)
            log = next((self.state / f"runs/{name}/logs").glob("*evaluator-0*")).read_text()
            self.assertRegex(log, r"step-000010000: loss \d+\.\d+, accuracy ", name)
        self.nothing_left()

    def test_an_evaluator_that_evaluated_nothing_is_told_of(self):
        idle = '{restartPolicy: Never, template: {spec: {containers: [{command: ["true"]}]}}}'
        text = job(MODES["sync"], steps=50, workers=1, servers=1, evaluator=idle, extra="  checkpoint: {everySteps: 200}\n")
        result = self.ends(0, "run", self.write(text))
        self.assertIn(f"the evaluator has evaluated no checkpoint: `paceline logs digits evaluator-0 --state-dir {self.state}` says", result.stdout)


if __name__ == "__main__":
    unittest_report.main("parameter_servers_test")
