"""`paceline simulate` as users see it: a table, JSON and charts of what stragglers cost in each mode, by one command."""

import json
import re
import xml.etree.ElementTree

import unittest_report
from cli_support import ROOT, SLOW, CliCase

# E[max] of so many draws of LogNormal(3, 0.1), in ms.
SLOWEST = {10: 23.47, 100: 25.86, 1000: 27.75}


class SimulateTest(CliCase):
    def simulate(self, *arguments):
        result = self.ends(0, "simulate", *arguments, timeout=60 * SLOW)
        return result.stdout

    def texts_of(self, picture):
        """What can be read in an SVG file, which is well-formed XML."""
        root = xml.etree.ElementTree.parse(picture).getroot()
        self.assertTrue(root.tag.endswith("}svg"), root.tag)
        return ["".join(text.itertext()) for text in root.iter() if text.tag.endswith("}text")]

    def test_stragglers_in_numbers_and_charts(self):
        picture = self.folder / "stragglers.svg"
        arguments = ("stragglers", "--steps", "20", "--json", "-o", picture)
        output = self.simulate(*arguments)
        self.assertEqual(self.simulate(*arguments), output, "a seed repeats")
        cases = {(case["workers"], case["sigma"]): case for case in json.loads(output)["cases"]}
        self.assertEqual(sorted(cases), [(workers, sigma) for workers in (10, 100, 1000) for sigma in (0.1, 0.3, 0.6)])
        for workers, slowest in SLOWEST.items():
            self.assertLess(abs(cases[workers, 0.1]["slowestMs"] / slowest - 1), 0.01)
        hundred = cases[100, 0.1]
        self.assertEqual(max(hundred["backups"], key=lambda point: point["onPaper"])["backups"], 4)
        self.assertEqual([mode["mode"] for mode in hundred["modes"]], ["synchronous", "96 + 4 backups", "first 96 of 100", "bounded, staleness 1",
                                                                       "bounded, staleness 4", "asynchronous"])
        for case in cases.values():
            step = {mode["mode"]: mode["stepMs"] for mode in case["modes"]}
            self.assertLessEqual(step["asynchronous"], step["bounded, staleness 1"])
            self.assertLess(step["bounded, staleness 1"], step["synchronous"])
        texts = self.texts_of(picture)
        for workers in SLOWEST:
            self.assertIn(f"Time of a step, {workers} workers", texts)
            self.assertEqual(texts.count(f"{workers} workers, on paper"), 3, "once for each sigma")

    def test_stragglers_as_a_table(self):
        picture = self.folder / "one.svg"
        lines = self.simulate("stragglers", "--workers", "10", "--sigma", "0.6", "--steps", "50", "-o", picture).splitlines()
        self.assertEqual(lines[0], "A gradient takes LogNormal(3, sigma) ms; seed 1, 50 steps")
        self.assertRegex(lines[2], r"^10 workers, sigma 0\.60: the slowest of 10 takes 5\d\.\d\d ms on average; best on paper are 7 \+ 3 backups$")
        header, *table = (re.split("  +", line.strip()) for line in lines[3:10])
        self.assertEqual(header, ["MODE", "STEP MS", "GRADIENTS/MS", "OF SYNC", "DROPPED", "WAITING", "STALENESS", "MAX", "BATCH"])
        rows = {mode: cells for mode, *cells in table}
        self.assertEqual(list(rows), ["synchronous", "7 + 3 backups", "first 7 of 10", "bounded, staleness 1", "bounded, staleness 4", "asynchronous"])
        self.assertEqual((rows["synchronous"][2], rows["first 7 of 10"][-1], rows["7 + 3 backups"][-1]), ("1.00", "70.0 %", "100.0 %"))
        self.assertEqual(lines[10:], [str(picture)])
        self.assertIn("Time of a step, 10 workers", self.texts_of(picture))

    def test_time_to_accuracy_of_a_job(self):
        picture = self.folder / "modes.svg"
        output = self.simulate("training", ROOT / "examples/digits-allreduce.yaml", "--workers", "4", "--sigma", "0.6", "--repeats", "1", "--json",
                               "-o", picture)
        (case,) = json.loads(output)["cases"]
        names = ["synchronous", "3 + 1 backups", "first 3 of 4", "bounded, staleness 4", "asynchronous", "asynchronous, lambda 0.5"]
        self.assertEqual([mode["mode"] for mode in case["modes"]], names)
        self.assertEqual(case["target"], "accuracy 0.97")
        for mode in case["modes"]:
            (run,) = mode["runs"]
            self.assertTrue(run["reached"], mode["mode"])
            self.assertGreaterEqual(run["evaluations"][-1]["accuracy"], 0.97)
            self.assertEqual(mode["seconds"], run["evaluations"][-1]["seconds"])
        texts = self.texts_of(picture)
        for name in names:
            self.assertIn(name, texts)

    def test_the_servers_of_a_job_compute_no_gradients(self):
        output = self.simulate("training", ROOT / "examples/digits-ps-backup.yaml", "--repeats", "1", "--json")
        (case,) = json.loads(output)["cases"]
        self.assertEqual(case["workers"], 5, "a chief and four workers, beside their server")

    def test_impossible_argument_is_refused_with_a_reason(self):
        for arguments, words in ((("stragglers", "--sigma", "0.1,much"), '--sigma 0.1,much: "much" is no number from 0 to 3'),
                                 (("stragglers", "--workers", "010"), '--workers 010: "010" is no whole number from 1 to 10000: it begins with a zero'),
                                 (("stragglers", "--staleness", "0x1"), '--staleness 0x1: "0x1" is no whole number from 0 to 1000000'),
                                 (("stragglers", "--repeats", "2"), "--repeats is for simulate training alone"),
                                 (("stragglers", "--steps", "010"), '--steps: "010" is no whole number from 1 to 1000000: it begins with a zero'),
                                 (("stragglers", "--slow", "0x1"), '--slow: "0x1" is no whole number from 0 to 10000: it begins with a zero'),
                                 (("stragglers", "--mu", "nan"), '--mu: "nan" is no number from -10 to 20'),
                                 (("training", "job.yaml", "--lambda", "-nan"), '--lambda: "-nan" is no number from 0 to'),
                                 (("stragglers", "--seed", "-1"), '--seed: "-1" is no whole number from 0 to 18446744073709551615'),
                                 (("stragglers", "job.yaml"), "simulate stragglers takes no file: job.yaml"),
                                 (("stragglers", "--workers", "10,4", "--slow", "4"), "--slow is 4 of 4 workers; allowed: 0 to 3, or more --workers"),
                                 (("training", ROOT / "examples/digits-allreduce.yaml", "--workers", "2", "--backups", "2"),
                                  "--backups is 2 of 2 workers; allowed: 0 to 1, or more --workers"),
                                 (("training",), "simulate training needs the file of a TrainingJob"),
                                 (("training", ROOT / "examples/clicks-ps.yaml"), "wide-and-deep has rows on servers, which the simulation lacks")):
            with self.subTest(arguments):
                result = self.paceline("simulate", *arguments)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertIn(words, result.stderr)


if __name__ == "__main__":
    unittest_report.main("simulate_test")
