"""The paceline program as its users see it: whole runs of real processes, what they print, what they leave behind."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

import unittest_report
from cli_support import DIGITS, ENDLESS, PACELINE, ROOT, SLOW, CliCase, job, member_of, until


class CliTest(CliCase):
    # ---- runs that go well

    def test_a_run_trains_and_says_where_everything_is(self):
        result = self.ends(0, "run", self.write(job(steps=300)))
        for word in ("digits  Succeeded", "test accuracy", "bytes exchanged", "model.safetensors", "/logs"):
            self.assertIn(word, result.stdout)
        self.assertNotIn("\x1b", result.stdout, "no escape sequences in a pipe")
        self.nothing_left()

    def test_json_output_is_one_event_per_line(self):
        events = self.events(self.write(job(steps=300)))
        types = [event["type"] for event in events]
        self.assertEqual(types[0], "started")
        self.assertEqual(types[-1], "finished")
        self.assertIn("view", types)
        self.assertIn("evaluation", types)
        last = events[-1]
        self.assertEqual((last["phase"], last["step"], len(last["members"])), ("Succeeded", 300, 2))
        self.assertNotIn("etaSeconds", last, "nothing is left to wait for")
        self.assertNotIn("etaSeconds", self.status("digits"))
        self.assertGreater(last["testAccuracy"], 0.5)
        self.assertGreater(last["bytesExchanged"], 0)
        self.assertTrue(pathlib.Path(last["model"]).is_file())

    def test_same_seed_same_model(self):
        models = []
        for name in ("a", "b"):
            last = self.events(self.write(job(steps=150)), "--name", name)[-1]
            models.append(pathlib.Path(last["model"]).read_bytes())
        self.assertEqual(models[0], models[1])

    def test_target_ends_the_job(self):
        text = job(steps=100000).replace("everySteps: 100", "everySteps: 50") + "    target: {accuracy: 0.8}\n"
        last = self.events(self.write(text))[-1]
        self.assertTrue(last["targetReached"], last)
        self.assertLess(last["step"], 100000)

    def test_no_evaluation_of_a_fast_run_is_missing(self):
        text = job(members=1, steps=3000).replace("everySteps: 100", "everySteps: 1").replace("testFraction: 0.2", "testFraction: 0.005")
        self.assertEqual(self.paceline("run", self.write(text.replace("hidden: [32]", "hidden: [1]"))).returncode, 0)
        rows = [json.loads(line) for line in (self.state / "runs/digits/metrics.jsonl").read_text().splitlines()]
        self.assertEqual([row["step"] for row in rows if row["type"] == "evaluation"], list(range(1, 3001)))

    def test_resume_goes_on_where_the_run_stopped(self):
        process, _ = self.start_endless(extra="  checkpoint: {everySteps: 50}\n")
        until(lambda: self.status("digits")["step"] > 100, 60, "some checkpoints")
        self.stop(process)
        stopped = self.status("digits")
        self.assertEqual(stopped["reason"], "Stopped")
        self.assertIn(f"--resume digits --state-dir {self.state}`", process.stderr.read())
        saved = max(int(path.name.split("-")[1]) for path in (self.state / "runs/digits/checkpoints").glob("step-*"))
        self.assertEqual(saved, stopped["step"])  # what the chief said as it left
        path = self.write(job(steps=saved + 500, extra="  checkpoint: {everySteps: 50}\n"))
        result = self.ends(0, "run", path, "--resume", "--output", "json")
        views = [json.loads(line) for line in result.stdout.splitlines() if '"view"' in line]
        self.assertEqual(json.loads(result.stdout.splitlines()[-1])["step"], saved + 500)
        self.assertTrue(views)
        self.assertRegex(result.stdout, r'"message":"run digits goes on; its newest checkpoint is [^"]*/step-')
        log = self.paceline("logs", "digits").stdout
        self.assertRegex(log, r"(?i)resum")
        resumed = self.status("digits")
        self.assertEqual(resumed["created"], stopped["created"])
        self.assertGreater(resumed["elapsedSeconds"], stopped["elapsedSeconds"])
        self.assertEqual(resumed["firstStepSeconds"], stopped["firstStepSeconds"])
        rows = map(json.loads, (self.state / "runs/digits/metrics.jsonl").read_text().splitlines())
        times = [row["timeSeconds"] for row in rows if row["type"] == "step"]
        self.assertEqual(times, sorted(times))
        self.assertEqual(self.paceline("run", path, "--resume").returncode, 0)   # nothing is left to do
        done = self.status("digits")
        kept = ("created", "step", "loss", "samplesPerSecond", "checkpoint", "model", "device")
        self.assertEqual([done[key] for key in kept], [resumed[key] for key in kept])
        self.assertGreater(done["elapsedSeconds"], resumed["elapsedSeconds"])

    def test_the_checkpoint_that_a_run_goes_on_from_is_known(self):
        self.ends(0, "run", self.write(job(steps=50, extra="  checkpoint: {everySteps: 50}\n")))
        saved = self.status("digits")["checkpoint"]
        self.assertRegex(saved, "/step-000000050$")
        process = self.start("run", self.write(job(steps=ENDLESS)), "--resume")   # which saves none before its end
        until(lambda: self.status("digits")["step"] > 50, 20 * SLOW, "it goes on")
        self.assertEqual(self.status("digits")["checkpoint"], saved)
        self.stop(process)

    def test_a_resumed_run_stands_at_its_checkpoint_until_it_takes_a_step(self):
        self.ends(0, "run", self.write(job(steps=50, extra="  checkpoint: {everySteps: 50}\n")))
        idle = "template: {spec: {containers: [{name: trainer, command: [sleep, '1000']}]}}"
        process = self.start("run", self.write(job(steps=80).replace("chief: {}", f"chief: {{{idle}}}")), "--resume")
        until(lambda: self.status("digits")["phase"] == "Starting" and len(self.status("digits")["members"]) == 2, 20 * SLOW, "the run has begun")
        begun = self.status("digits")
        self.assertEqual((begun["step"], begun["totalSteps"]), (50, 80))
        self.stop(process, seconds=40)
        self.assertIn("stopped by its user at step 50", process.stderr.read())
        self.assertEqual(self.status("digits")["step"], 50)

    def test_state_of_a_failed_run_is_saved_and_told(self):
        path = self.write(job(steps=5, extra="  checkpoint: {everySteps: 5}\n"))
        self.assertEqual(self.paceline("run", path).returncode, 0)
        model = self.state / "runs/digits/model"
        (model / "model.safetensors").unlink()
        (model / "model.safetensors").mkdir()     # in the way of the next one
        self.write(job(steps=8, extra="  checkpoint: {everySteps: 100}\n"))
        result = self.ends(1, "run", path, "--resume", "--output", "json")
        self.assertIn("the final model couldn't be written", result.stderr)
        self.assertIn("--resume digits", result.stderr)
        saved = str(self.state / "runs/digits/checkpoints/step-000000008")
        for state in (json.loads(result.stdout.splitlines()[-1]), self.status("digits")):
            self.assertEqual((state["phase"], state["checkpoint"]), ("Failed", saved))
        self.assertIn(saved, self.paceline("describe", "digits").stdout)
        (model / "model.safetensors").rmdir()
        self.assertEqual(self.paceline("run", path, "--resume").returncode, 0)

    def test_why_a_stopped_run_has_no_checkpoint_is_said(self):
        idle = "template: {spec: {containers: [{name: trainer, command: [sleep, '1000']}]}}"
        text = job(steps=20, extra="  checkpoint: {everySteps: 5}\n")
        process = self.start("run", self.write(text.replace("chief: {}", f"chief: {{{idle}}}").replace("{replicas", f"{{{idle}, replicas")))
        until(lambda: self.status("digits") and len(self.status("digits")["members"]) == 2, 20 * SLOW, "the run has begun")
        self.stop(process, seconds=40)
        self.assertRegex(process.stderr.read(), r"it has no checkpoint to go on from: it had taken no step yet\n")

    def test_why_the_last_save_failed_is_said(self):
        process, _ = self.start_endless()
        checkpoints = self.state / "runs/digits/checkpoints"
        checkpoints.rmdir()
        checkpoints.symlink_to("/proc")   # where nobody makes a file
        self.stop(process)
        self.assertRegex(process.stderr.read(), r"was stopped by its user at step \d+; step \d+ could not be saved: .*/checkpoints/.*; nothing was saved: "
                                                 r"all its steps are lost; it has no checkpoint to go on from\n$")
        self.assertRegex(self.status("digits")["message"], r"; step \d+ could not be saved: ")

    def test_resume_trains_over_nothing(self):
        path = self.write(job(steps=20))
        self.assertEqual(self.paceline("run", path).returncode, 0)
        folder = self.state / "runs/digits"
        before = {file.name: file.read_bytes() for file in (folder / "job.yaml", folder / "status.json", folder / "metrics.jsonl")}
        again = self.ends(4, "run", path, "--resume")
        self.assertRegex(again.stderr, "succeeded and has no checkpoint")
        other = self.ends(4, "run", self.write(job(steps=20, name="other"), "other.yaml"), "--resume", "digits")
        self.assertRegex(other.stderr, r'is of job "digits".*: resume it with its own, as in \S+/runs/digits/job\.yaml')
        self.assertEqual(before, {name: (folder / name).read_bytes() for name in before})

    def test_a_resume_keeps_a_job_file_that_it_can_not_read(self):
        process, _ = self.start_endless(extra="  checkpoint: {everySteps: 50}\n")
        self.stop(process)
        kept = self.state / "runs/digits/job.yaml"
        kept.unlink()
        kept.symlink_to("job.yaml")
        before = self.content("digits")
        result = self.ends(4, "run", self.folder / "job.yaml", "--resume", "digits")
        self.assertRegex(result.stderr, r"/digits/job\.yaml: Too many levels of symbolic links\n$")
        self.assertTrue(kept.is_symlink())
        self.assertEqual(self.content("digits"), before)

    def content(self, run):
        """Every file of a run, but for its lock."""
        folder = self.state / "runs" / run
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "lock"}

    def test_a_resume_that_cannot_work_is_refused_before_anything_is_touched(self):
        checkpoints = "  checkpoint: {everySteps: 50}\n"
        self.assertEqual(self.paceline("run", self.write(job(steps=100, extra=checkpoints))).returncode, 0)
        before = self.content("digits")
        for text, expected in [
                (job(steps=200, extra=checkpoints).replace("[32]", "[64]"), r"step-000000100 was made with another spec\.training\.model;"),
                (job(steps=200, extra=checkpoints).replace("globalBatchSize: 64", "globalBatchSize: 32\n    seed: 2"),
                 r"another spec\.training\.globalBatchSize, spec\.training\.seed;"),
                (job(steps=200, extra=checkpoints).replace(", momentum: 0.9", ""),
                 r"another spec\.training\.optimizer\.momentum; give it what it was made with, as in \S+/runs/digits/job\.yaml"),
                (job(steps=200, extra=checkpoints).replace("testFraction: 0.2", "testFraction: 0.5"),
                 r"another spec\.training\.data\.testFraction;"),
                (job(steps=60, extra=checkpoints), r"spec\.training\.steps 60 is less than the 100 steps that run \"digits\" has taken")]:
            result = self.ends(4, "run", self.write(text), "--resume")
            self.assertRegex(result.stderr, expected)
            self.assertEqual(self.content("digits"), before)
        result = self.paceline("run", self.write(job(steps=120, extra=checkpoints)), "--resume", "--output", "json")
        self.assertEqual(json.loads(result.stdout.splitlines()[-1])["step"], 120, result.stderr)

    def test_a_resume_that_the_members_refuse_leaves_the_run_as_it_was(self):
        epochs = job(steps=1, extra="  checkpoint: {everySteps: 50}\n").replace("    steps: 1\n", "    epochs: 4\n")
        self.assertEqual(self.paceline("run", self.write(epochs)).returncode, 0)
        before = self.content("digits")
        result = self.ends(1, "run", self.write(epochs.replace("epochs: 4", "epochs: 1")), "--resume")
        self.assertRegex(result.stderr, r"has 90 steps already, more than the 23 of this job")
        self.assertNotIn("go on from", result.stderr, "that is what has just failed")
        after = self.content("digits")
        self.assertEqual(json.loads(after["status.json"]), json.loads(before["status.json"]))
        self.assertEqual({name for name in before if before[name] != after.get(name) and not name.startswith("logs/")},
                         {"events.jsonl"})

    def test_a_newest_checkpoint_that_is_passed_over_is_said(self):
        checkpoints = "  checkpoint: {everySteps: 50}\n"
        self.assertEqual(self.paceline("run", self.write(job(steps=100, extra=checkpoints))).returncode, 0)
        state = self.state / "runs/digits/checkpoints/step-000000100/state.safetensors"
        state.write_bytes(state.read_bytes()[:-1])
        result = self.ends(0, "run", self.write(job(steps=150, extra=checkpoints)), "--resume")
        said = r'step-000000100 was passed over, and training goes on from step 50: state\.safetensors: .*\n.* 50 steps lost: it goes on from step 50'
        self.assertRegex(result.stdout, said)
        self.assertIn("passed over step-000000100: state.safetensors: ", self.paceline("logs", "digits").stdout)
        again = self.ends(0, "run", self.write(job(steps=200, extra=checkpoints)), "--resume")
        self.assertNotIn("passed over", again.stdout)
        (self.state / "runs/digits/checkpoints/step-000000200/manifest.json").write_text("x")
        torn = self.ends(0, "run", self.write(job(steps=250, extra=checkpoints)), "--resume")
        self.assertRegex(torn.stdout, r"goes on; its newest checkpoint is \S*/step-000000150\n"
                                      r".*a newer checkpoint is passed over: step-000000200: manifest: not a JSON")

    def test_checkpoints_of_which_none_is_usable_are_not_none(self):
        checkpoints = "  checkpoint: {everySteps: 50}\n"
        self.assertEqual(self.paceline("run", self.write(job(steps=100, extra=checkpoints))).returncode, 0)
        run = self.state / "runs/digits"
        status = json.loads((run / "status.json").read_text())
        (run / "status.json").write_text(json.dumps({**status, "phase": "Failed"}))   # one that may begin anew
        more = self.write(job(steps=150, extra=checkpoints))
        kept = run / "checkpoints"
        whole = self.folder / "whole"
        shutil.copytree(kept, whole)

        def manifests(change):
            return lambda: [change(file) for file in kept.glob("*/manifest.json")]

        def in_its_place(put):
            return lambda: (shutil.rmtree(kept), put())
        for damage, expected in [
                (manifests(lambda file: file.unlink()), r"has its manifest\.json; put it back, or remove them to begin anew"
                                                        r"; step-000000100: it has no manifest\.json; step-000000050: "),
                (manifests(lambda file: file.write_text("{}")), r"is damaged; remove them to begin anew; step-000000100: manifest: "),
                (lambda: (shutil.rmtree(kept / "step-000000100"), (kept / "step-000000050").rename(kept / "step-000000100")),
                 r"step-000000100: manifest: step 50, the folder's name says another; it was saved as step-000000050$"),
                (lambda: [file.write_bytes(file.read_bytes()[:-1]) for file in kept.glob("*/state.safetensors")],
                 r"is damaged; remove them to begin anew; step-000000100: state\.safetensors: "),
                (in_its_place(kept.touch), "there is a file in the place of a folder"),
                (in_its_place(lambda: kept.symlink_to("nowhere")), "is a link that leads nowhere"),
                (in_its_place(lambda: kept.symlink_to("checkpoints")), "Too many levels of symbolic links")]:
            damage()
            before = self.content("digits")
            result = self.ends(4, "run", more, "--resume")
            self.assertRegex(result.stderr, r'^paceline: run "digits" can\'t go on: .*' + expected)
            self.assertEqual(self.content("digits"), before)
            if kept.is_symlink() or kept.is_file():
                kept.unlink()
            else:
                shutil.rmtree(kept)
            shutil.copytree(whole, kept)
        (kept / "step-000000100").rename(kept / ".replaced")
        (kept / ".replaced/manifest.json").write_text("torn")
        result = self.ends(0, "run", more, "--resume")
        self.assertRegex(result.stdout, r"/step-000000050\n.*a newer checkpoint is passed over: \.replaced \(.*: manifest: not a JSON")
        self.assertRegex(self.paceline("logs", "digits").stdout, r"passed over \.replaced \(.*: manifest: not a JSON")
        self.assertTrue((kept / ".replaced/state.safetensors").exists())
        shutil.rmtree(kept)
        before = self.content("digits")
        gone = self.ends(4, "run", self.write(job(steps=200, extra=checkpoints)), "--resume")
        self.assertIn(f'run "digits" had its checkpoint of step 150 in {kept}, where none is now', gone.stderr)
        self.assertEqual(self.content("digits"), before)

    def test_a_global_batch_of_more_samples_than_there_are_is_refused(self):
        result = self.ends(1, "run", self.write(job().replace("globalBatchSize: 64", "globalBatchSize: 2000")))
        self.assertRegex(result.stderr, r"globalBatchSize 2000 is more than the training set's \d+ samples: .*; allowed: at most \d+")
        self.assertEqual((result.stdout + result.stderr).count("globalBatchSize 2000"), 1, "told once, not by its log again")

    def test_a_chosen_name_is_taken_as_it_is_or_refused(self):
        path = self.write(job(steps=20))
        self.assertEqual(self.paceline("run", path, "--name", "mine").returncode, 0)
        taken = self.ends(2, "run", path, "--name", "mine")
        self.assertRegex(taken.stderr, r'there is a run named "mine" in .*; choose another name')
        for name in ("my run", "../mine", "-mine"):
            refused = self.ends(2, "run", path, f"--name={name}")
            self.assertIn("allowed: 1 to 63 letters, digits", refused.stderr)
        self.assertEqual(os.listdir(self.state / "runs"), ["mine"])

    def test_every_transport_trains(self):
        for transport in ("SharedMemory", "TCP"):
            with self.subTest(transport):
                self.ends(0, "run", self.write(job(members=3, transport=transport)), "--output", "json")
        self.nothing_left()

    def test_encrypted_links_train_the_same_model(self):
        models = set()
        for encryption in ("None", "TLS"):
            strategy = f"{{encryption: {encryption}, allReduce: {{transport: TCP}}}}"
            last = self.events(self.write(job(members=3, strategy=strategy)), "--name", encryption.lower())[-1]
            models.add(pathlib.Path(last["model"]).read_bytes())
        self.assertEqual(len(models), 1)

    def test_the_first_example_computes_on_no_reference_kernel(self):
        example = (ROOT / "examples/fashion-allreduce.yaml").read_text().replace("target: {accuracy: 0.90}", "")
        example = re.sub(r"epochs: 4 .*", "steps: 2", example).replace("warmupSteps: 100", "warmupSteps: 1").replace("everyEpochs: 0.5", "everySteps: 2")
        executed = re.compile(r"^(?:onednn|dnnl)_verbose,exec,cpu,(convolution|inner_product),([^,]+)", re.M)
        for instructions in ("AVX2", "AVX512_CORE"):  # at most these; a processor that lacks them uses its own
            with self.subTest(instructions=instructions):
                name = instructions.lower().replace("_", "-")
                process = self.start("run", self.write(example), "--name", name,
                                     environment={"DNNL_VERBOSE": "1", "DNNL_MAX_CPU_ISA": instructions})
                self.outcome(0, process, 120)
                kernels = executed.findall("".join(log.read_text() for log in self.state.glob(f"runs/{name}/logs/*.log")))
                self.assertEqual({kind for kind, _ in kernels}, {"convolution", "inner_product"})
                self.assertEqual([kernel for _, kernel in kernels if kernel.startswith("ref")], [])

    def test_one_member_alone(self):
        self.ends(0, "run", self.write(job(members=1, chief=False)), "--output", "json")

    def test_sixteen_members_make_progress(self):
        last = self.events(self.write(job(members=16, steps=30)), timeout=300)[-1]
        self.assertEqual(len(last["members"]), 16)
        self.nothing_left()

    def test_two_runs_at_once(self):
        path = self.write(job(steps=400))
        processes = [self.start("run", path, "--output", "json") for _ in range(2)]
        outputs = [process.communicate(timeout=240) for process in processes]
        self.assertEqual([process.returncode for process in processes], [0, 0], outputs)
        self.assertEqual({json.loads(out.splitlines()[-1])["name"] for out, _ in outputs}, {"digits", "digits-2"})

    # ---- commands that read runs

    def test_get_describe_logs_top_plot_delete(self):
        self.assertIn("No runs", self.paceline("get").stderr)
        self.paceline("run", self.write(job()))
        listed = self.paceline("get")
        self.assertRegex(listed.stdout, r"(?m)^digits +Succeeded +\d/2 +200/200")
        run = json.loads(self.paceline("get", "digits", "-o", "json").stdout)
        self.assertEqual((run["kind"], run["metadata"]["name"], run["spec"]["training"]["steps"]), ("TrainingJob", "digits", 200))
        self.assertEqual((run["status"]["phase"], run["status"]["progress"]["step"], run["status"]["run"]["job"]), ("Succeeded", 200, "digits"))
        self.assertIn("Events:", self.paceline("describe", "digits").stdout)
        self.assertRegex(self.paceline("explain", "digits").stdout, r"^Run digits: Succeeded \(TrainingFinished\)\n  why: ")
        logs = self.paceline("logs", "digits").stdout
        self.assertIn("chief-0 | ", logs)
        self.assertIn("worker-0 | ", logs)
        for line in logs.splitlines():
            self.assertEqual(len(re.findall(r"(?:chief|worker)-0(?: \||:)", line)), 1, "the member's name, once: " + line)
        for member in ("chief-0", "worker-0"):
            attached = [line for line in logs.splitlines() if line.startswith(member) and "attached" in line]
            self.assertEqual(len(attached), 1, attached)
        alone = self.paceline("logs", "digits", "worker-0").stdout
        self.assertNotIn("chief-0 | ", alone)
        self.assertEqual(self.paceline("logs", "digits", "worker").stdout.count("\n"), alone.count("\n"), "a role's")
        self.assertEqual(self.paceline("logs", "digits", "worker-0", "--since", "1h").stdout, alone)
        self.assertEqual(len(self.paceline("logs", "digits", "worker-0", "--tail", "2").stdout.splitlines()), 2)
        self.assertIn("digits", self.paceline("top", "--once").stdout)
        self.ends(0, "plot", "digits", "--output", self.folder / "plot.svg")
        self.assertIn("<svg", (self.folder / "plot.svg").read_text())
        self.assertEqual(self.paceline("delete", "--finished").stdout, "digits deleted\n")
        self.assertFalse((self.state / "runs/digits").exists())

    def test_commands_on_a_running_run(self):
        process, _ = self.start_endless()
        self.assertIn("Running", self.paceline("top", "--once").stdout)
        self.assertRegex(self.paceline("get").stdout, r"(?m)^digits +Running")
        follower = self.start("logs", "digits", "-f")
        self.stop(process, signal.SIGTERM)
        self.assertEqual(follower.wait(20), 0, "logs -f ends with the run")
        kept = f"kept, since they were stopped and may be resumed: digits; `paceline delete NAME --state-dir {self.state}` deletes them\n"
        self.assertEqual(self.paceline("delete", "--finished").stdout, kept)
        self.assertEqual(self.paceline("delete", "digits").returncode, 0)

    def test_delete_stops_a_run_that_goes_on(self):
        process, _ = self.start_endless(extra="  checkpoint: {everySteps: 50}\n")
        self.assertEqual(self.paceline("logs", "digits", "worker-0", "--tail", "0").stdout, "")
        octal = self.ends(2, "logs", "digits", "worker-0", "--tail", "010")
        self.assertIn('--tail: "010" is no whole number from 0 to 1000000: it begins with a zero', octal.stderr)
        self.ends(0, "delete", "digits")
        _, error = self.outcome(130, process, 20 * SLOW)
        self.assertRegex(error, r"was stopped by its user at step \d+, and is deleted\n$")
        self.assertFalse((self.state / "runs" / "digits").exists())
        self.nothing_left()

    def test_delete_of_a_run_whose_owner_stands_still_is_refused(self):
        process, _ = self.start_endless()
        with self.standing_still(process):
            self.assertIn(f"kill -CONT {process.pid}", self.ends(4, "delete", "digits").stderr)
        self.stop(process)
        self.assertNotIn("is deleted", process.stderr.read())
        self.assertTrue((self.state / "runs/digits").exists())

    def test_folder_in_the_place_of_a_data_file_is_named(self):
        path = self.write(job().replace(str(DIGITS), str(self.folder)))
        for code, command in ((0, "validate"), (2, "run")):
            self.assertIn(f"spec.training.data: {self.folder} is a folder; inputs and labels take files", self.ends(code, command, path).stderr)

    def test_unknown_names_say_what_there_is(self):
        for command in (["get", "x"], ["describe", "x"], ["logs", "x"], ["top", "x"], ["delete", "x"], ["plot", "x"]):
            result = self.ends(3, *command)
            self.assertIn("no run named", result.stderr)
        self.paceline("run", self.write(job(steps=20)))
        result = self.ends(3, "logs", "digits", "worker-7")
        self.assertIn("worker-0", result.stderr)

    # ---- bad input

    def test_validate_prints_positions_and_exits_with_2(self):
        bad = self.write(job().replace("learningRate", "learningRat"))
        result = self.ends(2, "validate", bad)
        self.assertRegex(result.stderr, rf"{re.escape(str(bad))}:\d+:\d+: error: spec.training.optimizer.learningRat: .*learningRate")
        for example in (ROOT / "examples").glob("*.yaml"):
            self.assertEqual(self.paceline("validate", example).returncode, 0, example)
        self.assertEqual(self.paceline("validate", "-", stdin=job()).returncode, 0)

    def test_output_that_a_full_disk_does_not_take_is_an_error(self):
        good = self.write(job())
        with open("/dev/full", "w") as full:
            result = subprocess.run([PACELINE, "validate", good], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertIn("could not be written whole", result.stderr)
        reader, writer = os.pipe()
        os.close(reader)   # a reader that has gone wants no more
        with open(writer, "w") as gone:
            result = subprocess.run([PACELINE, "validate", good], stdout=gone, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(result.stderr, "")

    def test_the_jobs_of_the_documentation_are_valid(self):
        pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
        jobs = [(page.name, text) for page in pages for text in re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.M | re.S)
                if "kind: TrainingJob" in text]
        self.assertGreaterEqual(len(jobs), 3)
        for page, text in jobs:
            result = self.paceline("validate", "-", stdin=text)
            self.assertEqual(result.returncode, 0, f"{page}: {result.stderr}")

    def test_a_file_that_is_not_there_is_the_same_to_every_command(self):
        good, bad, none = self.write(job(), "good.yaml"), self.write("kind: Pod", "bad.yaml"), self.folder / "none.yaml"
        for command in ("run", "validate", "explain"):
            result = self.ends(3, command, none)
            self.assertIn("none.yaml", result.stderr)
        self.assertEqual(self.paceline("validate", good, none).returncode, 3)
        for order in ([none, bad, good], [bad, good, none]):
            self.assertEqual(self.paceline("validate", *order).returncode, 2, "errors in a file come first")

    def test_a_bad_file_makes_no_run(self):
        self.assertEqual(self.paceline("run", self.write("kind: Pod")).returncode, 2)
        self.assertEqual(self.paceline("run", self.folder / "none.yaml").returncode, 3)
        self.assertFalse((self.state / "runs").exists())

    def test_bad_command_lines_exit_with_2(self):
        for arguments in ([], ["fly"], ["run"], ["run", "a", "--output", "xml"], ["get", "--bogus"]):
            self.assertEqual(self.paceline(*arguments).returncode, 2, arguments)
        self.assertIn('no command "fly"; the commands are run, ', self.paceline("fly").stderr)
        self.assertIn("paceline run --help", self.paceline("run").stderr)
        for question in ("--help", "--version"):
            result = self.paceline("delte", question)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn('no command "delte"; did you mean delete?', result.stderr)
        for arguments, meant in [(["rnu", "job.yaml"], "did you mean run?"), (["delte"], "did you mean delete?"),
                                 (["get", "--state-dri", "/x"], "no option --state-dri; did you mean --state-dir?"),
                                 (["--state-dri=/x", "get"], "no option --state-dri; did you mean --state-dir?"),
                                 (["run", "--resum"], "did you mean --resume?"),
                                 (["run", "job.yaml", "--otput=json"], "no option --otput; did you mean --output?")]:
            result = self.ends(2, *arguments)
            self.assertIn(meant, result.stderr)
        for arguments in (["get", "--zebra"], ["zebra"]):
            self.assertNotIn("did you mean", self.paceline(*arguments).stderr, "nothing is near")
        self.assertIn("Usage", self.paceline().stderr)

    def test_empty_values_are_refused(self):
        for option, *arguments in (("--state-dir", "delete", "--finished", "--state-dir", ""), ("--state-dir=", "--state-dir=", "get"),
                                   ("FILE", "run", ""), ("FILE", "validate", ""), ("NAME", "delete", ""),
                                   ("--kubeconfig", "get", "--cluster", "--kubeconfig", ""),
                                   ("--namespace", "delete", "--cluster", "-n", "", "a"), ("--output", "plot", "-o", ""),
                                   ("--output", "simulate", "stragglers", "-o", ""), ("--filename", "apply", "-f", "")):
            with self.subTest(arguments):
                result = self.paceline(*arguments)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertIn(f"{option}: it is empty", result.stderr)

    def test_missing_data_is_named(self):
        result = self.ends(3, "run", self.write(job().replace(str(DIGITS), "/nowhere/digits.csv")))
        self.assertIn("/nowhere/digits.csv", result.stderr)
        self.assertFalse((self.state / "runs").exists(), "nothing was begun")
        checked = self.ends(0, "validate", self.folder / "job.yaml")
        self.assertIn("warning", checked.stderr)

    def test_files_with_another_separator_train_and_held_out_files_are_told(self):
        data = self.folder / "data.csv"
        data.write_text("".join(f"{i % 7};{i % 5};{i % 4}\n" for i in range(200)))
        text = job(steps=20).replace(f"inputs: {DIGITS}", f"inputs: [{data}, {data}]").replace("classes: 10", "classes: 4")
        wrong = self.ends(1, "run", self.write(text))
        self.assertIn("separator", wrong.stderr)
        told = self.ends(0, "run", self.write(text.replace("format: csv", "format: csv, separator: semicolon")), "--name", "right")
        self.assertIn("warning", told.stderr)
        self.assertIn(str(data), told.stderr)

    def test_a_state_folder_that_cannot_be_written(self):
        blocked = self.folder / "blocked"
        blocked.write_text("a file, not a folder")
        result = subprocess.run([PACELINE, "--state-dir", blocked, "run", self.write(job())], capture_output=True, text=True, timeout=60)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("blocked", result.stderr)

    # ---- members that die or freeze, and the end of the command itself

    def kill_worker(self, number):
        process, status = self.start_endless(members=3)
        victim = member_of(status, "worker-1")
        begin = time.monotonic()
        os.kill(victim["pid"], number)
        _, error = process.communicate(timeout=30 * SLOW)
        seconds = time.monotonic() - begin
        self.assertEqual(process.returncode, 1)
        self.assertIn("worker-1", error)
        self.assertIn(str(victim["pid"]), error)
        self.assertIn("step", error)
        self.assertEqual(self.status("digits")["phase"], "Failed")
        self.nothing_left()
        return seconds, error

    def test_a_killed_worker_is_named_within_two_seconds(self):
        def kill():
            seconds, error = self.kill_worker(signal.SIGKILL)
            self.assertRegex(error, r"(?i)signal 9|SIGKILL")
            return seconds
        self.within(2.0, kill)

    def test_a_frozen_worker_is_named_within_four_seconds(self):
        def freeze():
            seconds, error = self.kill_worker(signal.SIGSTOP)
            self.assertRegex(error, r"(?i)frozen|silent|heartbeat")
            self.assertRegex(error, r"no heartbeat for .*; over the last minute \d+\.\d threads ran or waited for .*, and .* \d+ processor")
            return seconds
        self.within(4, freeze)   # the verdict after 3 s: a pause of two is no loss; then the others' orderly end

    def test_a_failure_is_told_once_with_lines_of_its_own_session(self):
        first, _ = self.start_endless(extra="  checkpoint: {everySteps: 50}\n")
        self.stop(first)
        stopped = self.status("digits")
        logs = {path: path.stat().st_size for path in (self.state / "runs/digits/logs").iterdir()}
        second = self.start("run", self.folder / "job.yaml", "--resume")
        status = until(lambda: (lambda s: s if s and s["phase"] == "Running" and s["step"] > stopped["step"] else None)(self.status("digits")),
                       20 * SLOW, "it goes on")
        os.kill(member_of(status, "worker-0")["pid"], signal.SIGKILL)
        out, error = self.outcome(1, second, 30 * SLOW)
        self.assertEqual((out + error).count("was killed by signal 9"), 1, out + error)
        self.assertEqual((out + error).count("last lines of"), 1, error)
        log = re.search(r"last lines of (.*):\n", error)
        shown = error[log.end():].split("paceline: ")[0].splitlines()
        own = pathlib.Path(log[1]).read_bytes()[logs[pathlib.Path(log[1])]:].decode().splitlines()
        self.assertTrue(shown)
        self.assertEqual(shown, own[-len(shown):], "nothing of the session before")
        self.assertIn("go on from its newest checkpoint", error)

    def test_whoever_is_killed_the_others_save_what_was_learnt(self):
        for name in ("chief-0", "worker-0"):
            with self.subTest(name):
                process, _ = self.start_endless()
                status = until(lambda: (lambda s: s if s and s["phase"] == "Running" and s["step"] > 100 else None)(self.status("digits")),
                               20 * SLOW, "it trains")
                os.kill(member_of(status, name)["pid"], signal.SIGKILL)
                _, error = self.outcome(1, process, 30 * SLOW)
                self.assertIn("go on from its newest checkpoint", error)
                saved = [int(path.name.split("-")[1]) for path in (self.state / "runs/digits/checkpoints").iterdir()]
                self.assertGreaterEqual(max(saved), status["step"])
                for command in ("explain", "describe"):
                    self.assertIn("it goes on from its newest checkpoint by: paceline run", self.paceline(command, "digits").stdout)
                self.assertEqual(self.paceline("delete", "digits").returncode, 0)

    def test_ctrl_c_stops_in_order(self):
        process, _ = self.start_endless(members=3)
        process.send_signal(signal.SIGINT)
        out, _ = self.outcome(130, process, 20 * SLOW)
        self.assertIn("stopping", out)
        self.assertRegex(out, r"(?m)^digits  Stopped$")
        status = self.status("digits")
        self.assertEqual((status["phase"], status["reason"]), ("Stopped", "Stopped"))
        self.assertRegex(self.paceline("get").stdout, r"(?m)^digits +Stopped")
        self.nothing_left()

    def test_a_second_ctrl_c_stops_frozen_members_at_once(self):
        process = self.stopping_with_frozen_members(signal.SIGINT)
        self.stop_at_once(process)
        _, errors = self.outcome(130, process, 10 * SLOW)
        status = self.status("digits")
        self.assertEqual((status["phase"], status["reason"]), ("Stopped", "Stopped"))
        self.assertIn(f'run "digits" was {status["message"]}; ', errors)
        self.nothing_left()

    def test_two_signals_together_are_one_request(self):
        process, _ = self.start_endless(extra="  checkpoint: {everySteps: 100000000}\n")
        with self.standing_still(process):   # it takes both at once then, as from timeout(1)
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGINT)
        self.outcome(130, process, 20 * SLOW)
        status = self.status("digits")
        self.assertEqual(status["checkpoint"], f"{self.state}/runs/digits/checkpoints/step-{status['step']:09}")

    def test_kill_9_of_the_command_leaves_nothing(self):
        before = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
        temporary = self.folder / "tmp"   # the run's own: other tests use the system's at the same time
        temporary.mkdir()
        process, _ = self.start_endless(members=3, environment={"TMPDIR": str(temporary)})
        process.kill()
        process.communicate()
        self.nothing_left()
        if before:
            self.assertLessEqual(set(os.listdir("/dev/shm")), before)
        self.assertEqual(list(temporary.iterdir()), [])
        self.assertRegex(self.paceline("get").stdout, r"(?m)^digits +Failed")
        self.assertIn("OwnerLost", self.paceline("get", "digits", "-o", "json").stdout)

    def test_a_reader_that_goes_away_does_not_end_the_training(self):
        process = self.start("run", self.write(job(steps=400)))
        process.stdout.close()
        process.stderr.close()
        self.assertIn(process.wait(60 * SLOW), (0, 4))
        self.assertEqual(self.status("digits")["phase"], "Succeeded")

    # ---- help

    def test_every_command_has_help_with_an_example(self):
        top = self.paceline("--help")
        documented = (ROOT / "docs/cli.md").read_text()
        self.assertEqual(top.returncode, 0)
        for command in ("run", "validate", "explain", "apply", "get", "describe", "logs", "top", "events", "suspend", "resume", "scale", "delete",
                        "plot", "generate", "simulate", "completion"):
            result = self.ends(0, command, "--help")
            self.assertIn("paceline " + command, result.stdout)
            for option in re.findall(r"(?m)^ .*?(--[a-z-]+)", result.stdout.split("Options:")[1].split("Example")[0]):
                if option in ("--cluster", "--context", "--namespace", "--all-namespaces", "--kubeconfig"):   # the same for all
                    self.assertRegex(documented, rf"(?m)^\| `[^`]*{option}\b")
                elif option != "--help":
                    self.assertRegex(documented, rf"`{command} [^`]*{option}\b", "docs/cli.md lists every option")
        for code in (0, 1, 2, 3, 4, 130):
            self.assertRegex(top.stdout, rf"\b{code} [a-z]")
            self.assertIn(f"\n| {code} | ", documented)

    def test_the_cluster_is_meant_only_where_it_is_said(self):
        environment = {**os.environ, "KUBECONFIG": str(self.folder / "no-such-config"), "HOME": str(self.folder)}
        environment.pop("KUBERNETES_SERVICE_HOST", None)

        def asked(*words, program=PACELINE):
            state = [] if program.endswith("kubectl-paceline") else ["--state-dir", self.state]
            return subprocess.run([program, *state, *map(str, words)], capture_output=True, text=True, timeout=60, env=environment,
                                  stdin=subprocess.DEVNULL)
        self.assertIn("No runs in", asked("get").stderr)
        plugin = str(pathlib.Path(PACELINE).parent / "kubectl-paceline")
        for result in (asked("get", "--cluster"), asked("get", "-n", "a"), asked("describe", "x", "--context", "c"), asked("logs", "x", "-n", "a"),
                       asked("top", "x", "-n", "a"), asked("delete", "x", "-n", "a"), asked("explain", "x", "-n", "a"), asked("events"),
                       asked("suspend", "x", "--cluster"), asked("resume", "x", "-n", "a"), asked("scale", "x", "worker=1", "-n", "a"),
                       asked("apply", "-f", self.write(job())), asked("get", program=plugin)):
            self.assertEqual((result.returncode, result.stdout), (3, ""), result.stderr)
            self.assertIn("no cluster to talk to", result.stderr)
        self.assertIn("kubectl paceline: ", result.stderr)
        self.assertNotIn("of this machine", result.stderr)
        self.assertIn("`paceline describe RUN` tells what happened to a run of this machine", asked("events", "x").stderr)
        self.assertNotIn("of this machine", asked("events", "x", "--cluster").stderr)
        self.assertIn("no run named", asked("explain", "digits").stderr)
        for words, code in ((("logs", "-c", "fetch"), 2), (("logs", "--since", "soon"), 2), (("explain", "digits"), 3),
                            (("delete", "x", "--cascade", "orphan"), 2), (("get", "-w"), 2),
                            (("get", "x", "-A"), 2), (("get", "Not_A_Name", "--cluster"), 2), (("scale", "x", "worker"), 2),
                            (("delete", "x", "-n", "a", "--timeout", "soon"), 2), (("delete", "-n", "a"), 2)):
            self.assertEqual(asked(*words).returncode, code, words)
        self.assertIn("--watch is for jobs on a cluster", asked("get", "-w").stderr)
        self.assertNotIn("paceline run", asked("--help", program=plugin).stdout)
        (self.folder / ".kube").mkdir()
        (self.folder / ".kube/config").touch()
        for words in (("describe", "x"), ("suspend", "x"), ("resume", "x"), ("scale", "x", "worker=1")):
            self.assertIn("--cluster asks the cluster", asked(*words).stderr)

    def test_a_run_for_programs_in_every_format(self):
        self.paceline("run", self.write(job(steps=20)))
        self.assertEqual(self.paceline("get", "-o", "name").stdout, "digits\n")
        self.assertRegex(self.paceline("get", "-o", "wide").stdout, r"AGE +REASON +QUEUE +CHECKPOINT\n")
        self.assertIn("phase: Succeeded\n", self.paceline("get", "digits", "-o", "yaml").stdout)
        self.assertEqual(self.paceline("logs", "digits", "worker/0").stdout, self.paceline("logs", "digits", "worker-0").stdout)

    def test_completion_scripts_are_valid_shell(self):
        script = self.paceline("completion", "bash").stdout
        self.assertEqual(subprocess.run(["bash", "-n"], input=script, text=True).returncode, 0)
        for shell in ("zsh", "fish"):
            self.assertIn("paceline", self.paceline("completion", shell).stdout)

    def test_a_device_that_is_none_is_refused_before_anything_starts(self):
        path = self.write(job(steps=20))
        own = self.write(path.read_text().replace("worker: {replicas", "worker: {template: {spec: {containers: [{env: [{name: PACELINE_DEVICE, "
                                                                       "value: tpu}]}]}}, replicas"), "own.yaml")
        for file, environment, words in ((path, {"PACELINE_DEVICE": "gpu"}, 'PACELINE_DEVICE is "gpu"; it must be auto, cpu, cuda, or cuda:N with N'),
                                         (path, {"PACELINE_DEVICE": "cuda:01"}, 'PACELINE_DEVICE is "cuda:01"; it must be'),
                                         (path, {"PACELINE_CUDA_GRAPHS": "no"}, 'PACELINE_CUDA_GRAPHS is "no"; it must be on or off'),
                                         (own, {}, '[0].env[0].value: not a value of PACELINE_DEVICE: found "tpu"; allowed: auto, cpu, cuda, or cuda:N')):
            for command in ("run", "explain") if environment else ("run", "explain", "validate"):
                process = self.start(command, file, environment=environment)
                output, errors = process.communicate(timeout=60 * SLOW)
                self.assertIn(words, errors)
                self.assertEqual((process.returncode, output), (2, ""), command)
        reference = self.write(own.read_text().replace("value: tpu", 'value: "$(WHERE)"'), "reference.yaml")   # there is no cluster to look it up
        self.assertEqual(self.paceline("validate", reference).returncode, 0)
        refused = self.ends(2, "run", reference)
        self.assertIn('reference.yaml: env: PACELINE_DEVICE is "$(WHERE)"; it must be', refused.stderr)
        self.assertEqual(self.paceline("get", "-o", "name").stdout, "")

    def test_ignored_field_of_a_local_run_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "job.yaml"
            file.write_text(job(extra="  runPolicy: {backoffLimit: 1, cleanPodPolicy: All}\n"))
            result = self.paceline("explain", file)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(re.findall(r"note: (\S+) is not acted on", result.stderr), ["spec.runPolicy.cleanPodPolicy"])
        self.assertIn("create pod", result.stdout)

    def completed(self, *words):
        """What bash offers for the last of `words`."""
        script = self.paceline("completion", "bash").stdout + (
            'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _paceline; printf "%s\\n" "${COMPREPLY[@]}"')
        line = ["paceline", "--state-dir", str(self.state), *words]
        result = subprocess.run(["bash", "-c", script, "bash", *line], capture_output=True, text=True, timeout=60, cwd=self.folder,
                                env={**os.environ, "PATH": f"{pathlib.Path(PACELINE).parent}:{os.environ['PATH']}"})
        self.assertEqual(result.stderr, "")
        return result.stdout.split()

    def test_completion_knows_commands_runs_members_and_values(self):
        self.paceline("run", self.write(job(steps=20)))
        (self.folder / "a folder").mkdir()
        for words, expected in [
                (["des"], ["describe"]),
                (["run", "--out"], ["--output"]),
                (["run", "--output", ""], ["auto", "plain", "json"]),
                (["run", "--output", "=", "p"], ["plain"]),
                (["run", "--log-level", "w"], ["warning"]),
                (["run", "--log-level=w"], ["--log-level=warning"]),  # as zsh splits
                (["run", "--resume", ""], ["digits"]),
                (["run", "--name", ""], []),
                (["run", "job"], ["job.yaml"]),
                (["run", "--output", "json", "job"], ["job.yaml"]),
                (["get", "-o", ""], ["table", "wide", "json", "yaml", "name"]),
                (["get", "dig"], ["digits"]),
                (["logs", ""], ["digits"]),
                (["logs", "digits", ""], ["chief-0", "worker-0"]),
                (["logs", "--tail", "5", "digits", "w"], ["worker-0"]),
                (["logs", "none", ""], []),
                (["logs", "digits", "chief-0", ""], []),
                (["--state-dir", "a"], ["a", "folder"]),
                (["completion", ""], ["bash", "zsh", "fish"])]:
            self.assertEqual(self.completed(*words), expected, words)
        fish = self.paceline("completion", "fish").stdout
        self.assertIn("'auto plain json'", fish)
        self.assertIn("__paceline_members", fish)

    # ---- programs of different versions

    def test_programs_of_another_version_are_named(self):
        folder = pathlib.Path(PACELINE).parent
        for name, expected in [("paceline-worker", r"paceline-worker is built with Paceline [0-9.]+, the command that starts it is 9\.9\.9"),
                               ("paceline-pod", "paceline-pod and paceline are of different versions; install Paceline whole")]:
            with self.subTest(name):
                own = self.folder / name
                own.mkdir()
                for program in {"paceline", "paceline-pod", "paceline-worker"} - {name}:
                    shutil.copy2(folder / program, own / program)
                (own / name).write_text(f'#!/bin/sh\nPACELINE_VERSION=9.9.9 exec {folder}/{name} "$@"\n')
                (own / name).chmod(0o755)
                result = subprocess.run([own / "paceline", "--state-dir", self.state, "run", self.write(job())], capture_output=True,
                                        text=True, timeout=60)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertRegex(result.stderr, expected)

    def test_explain_of_a_job_with_programs_of_its_own(self):
        file = ROOT / "tests/unit/controller/api/good/own_program.yaml"
        result = self.paceline("explain", file)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stderr)
        self.assertRegex(result.stdout, r"(?s)pods that run their templates' own programs\n.*a cluster does with it.*`paceline run` starts its commands")
        self.assertIn("MASTER_ADDR=", result.stdout)

    def test_explain_does_nothing(self):
        result = self.ends(0, "explain", ROOT / "examples/digits-allreduce.yaml")
        self.assertIn("worker-2", result.stdout)
        self.assertIn("64 samples, 16 for each member", result.stdout)
        self.assertRegex(result.stdout, r"\n  computes on (a GPU where there is one that can be used, .*|processors.*) \(PACELINE_DEVICE is not set\)\n")
        self.assertFalse(self.state.exists())


if __name__ == "__main__":
    unittest_report.main("cli_integration_test")
