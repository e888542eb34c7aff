"""Whose checkpoints are in a checkpoint.location: a run takes no others for its own."""

import os
import shutil

import unittest_report
from cli_support import CliCase, job


class CheckpointPlacesTest(CliCase):
    def test_a_resume_with_another_location_goes_on_once_the_checkpoints_are_there(self):
        def placed(place, steps):
            return self.write(job(steps=steps, extra=f"  checkpoint: {{everySteps: 50, keep: 1, location: {self.folder}/{place}}}\n"))

        def steps_in(place):
            return sorted(path.name for path in (self.folder / place).glob("step-*"))
        self.ends(0, "run", placed("old", 100))
        self.ends(0, "run", placed("others", 50), "--name", "other")
        before = self.status("digits")
        empty = self.ends(4, "run", placed("new", 150), "--resume", "digits")
        self.assertRegex(empty.stderr, rf'run "digits" has step 100 in {self.folder}/old, and .* names {self.folder}/new, where none is; '
                                       rf"copy the folder \(cp -r {self.folder}/old/\. {self.folder}/new\) or set")
        self.assertFalse((self.folder / "new").exists())
        taken = self.ends(4, "run", placed("others", 150), "--resume", "digits")
        self.assertIn('where the newest is step 50, of run "other"', taken.stderr)
        self.assertEqual(steps_in("others"), ["step-000000050"])
        self.assertEqual(self.status("digits"), before)

        shutil.copytree(self.folder / "old", self.folder / "new")
        self.ends(0, "run", placed("new", 150), "--resume", "digits")
        self.assertEqual((steps_in("old"), steps_in("new")), (["step-000000100"], ["step-000000150"]))
        back = self.ends(4, "run", placed("old", 200), "--resume", "digits")
        self.assertIn(f'run "digits" has step 150 in {self.folder}/new', back.stderr)
        (self.folder / "new").rename(self.folder / "moved")
        moved = self.ends(0, "run", placed("moved", 200), "--resume", "digits")
        self.assertIn(f"goes on; its newest checkpoint is {self.folder}/moved/step-000000150", moved.stdout)

    def test_a_run_that_never_began_is_not_to_go_on_from_the_checkpoints_of_another(self):
        location = f"  checkpoint: {{everySteps: 50, location: {self.folder}/shared}}\n"
        self.assertEqual(self.paceline("run", self.write(job(steps=50, extra=location))).returncode, 0)
        before = sorted(os.listdir(f"{self.folder}/shared"))
        for policy in ("Never", "OnFailure"):   # another pod in a refused member's place would go on from them
            other = job(steps=100, extra=location, name="other").replace("chief: {}", f"chief: {{restartPolicy: {policy}}}")
            result = self.ends(4, "run", self.write(other))
            self.assertRegex(result.stderr, "holds checkpoints of an earlier training, step-000000050 the newest")
            explained = self.ends(0, "explain", self.write(other))
            self.assertIn("`run` without --resume would refuse the job: " + result.stderr.removeprefix("paceline: "), explained.stdout)
            self.assertRegex(result.stderr, rf'are of run "digits", which `paceline run \S+/job\.yaml --resume digits --state-dir {self.state}` goes on')
            self.assertNotIn("--resume other", result.stderr)
            self.assertEqual(sorted(os.listdir(f"{self.folder}/shared")), before)
            self.assertFalse((self.state / "runs/other").exists())
        deleted = self.ends(0, "delete", "digits")
        self.assertEqual(deleted.stdout, f'run "digits" leaves 1 checkpoint in {self.folder}/shared\ndigits deleted\n')
        self.assertEqual(sorted(os.listdir(f"{self.folder}/shared")), before)
        nobodys = self.ends(4, "run", self.write(job(steps=100, extra=location)))
        self.assertRegex(nobodys.stderr, rf"no run that is still there made them: `paceline run \S+ --resume --state-dir {self.state}` makes a new run")
        changed = self.ends(4, "run", self.write(job(steps=100, extra=location).replace("[32]", "[64]")), "--resume")
        self.assertIn("was made with another model", changed.stderr)
        self.assertFalse((self.state / "runs/digits").exists())
        taken = self.ends(0, "run", self.write(job(steps=100, extra=location)), "--resume")
        self.assertIn(f"{self.folder}/shared/step-000000050", taken.stdout)
        self.assertEqual(self.status("digits")["step"], 100)
        self.assertEqual(sorted(os.listdir(f"{self.folder}/shared"))[-1], "step-000000100")

    def test_location_that_cannot_be_written_is_refused_before_anything_begins(self):
        text = job(steps=100, extra="  checkpoint: {everySteps: 50, location: /proc/paceline}\n")
        refused = self.ends(4, "run", self.write(text.replace("chief: {}", "chief: {restartPolicy: OnFailure}")))
        self.assertRegex(refused.stderr, r"^paceline: no checkpoints can be written in /proc/paceline: .*; .*spec\.checkpoint\.location\n$")
        self.assertFalse((self.state / "runs/digits").exists())


if __name__ == "__main__":
    unittest_report.main("checkpoint_places_test")
