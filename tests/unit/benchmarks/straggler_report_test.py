"""benchmarks/spread.py and benchmarks/straggler_report.py: what is made of measured lines."""

import unittest

import spread
import straggler_report as report
import unittest_report


def line(mode, measured_ms, simulated_ms, rate=1.0, simulated_rate=1.0, dropped=0.0):
    def side(ms, gradients):
        return dict(stepMs=ms, gradientsPerMs=gradients, dropped=dropped, waiting=0.1, meanStaleness=0.0, maxStaleness=0)
    return dict(mode=mode, slowWorkers=0, batch=1.0, measured=side(measured_ms, rate), simulated=side(simulated_ms, simulated_rate))


class SpreadTest(unittest.TestCase):
    def test_spread_of_odd_even_and_single_series(self):
        self.assertEqual(spread.spread([3, 1, 2]), dict(min=1, median=2, max=3))
        self.assertEqual(spread.spread([4, 1, 2, 3]), dict(min=1, median=2.5, max=4))
        self.assertEqual(spread.spread([7]), dict(min=7, median=7, max=7))

    def test_ratios_are_of_what_was_taken_together(self):
        # Both were slowed down in the second round: the ratio of the medians would say 1.1, that of the maxima 1.15.
        self.assertEqual(spread.ratios([11, 23, 11], [10, 20, 10]), [1.1, 1.15, 1.1])
        with self.assertRaises(ValueError):
            spread.ratios([1, 2], [1])

    def test_text(self):
        self.assertEqual(spread.text(dict(min=0.984, median=1.005, max=1.2), 2), "0.98/1.00/1.20")


class StragglerReportTest(unittest.TestCase):
    def test_a_modes_rounds_become_a_row(self):
        row = report.mode_row("tcp", [line("7 + 1 backups", 22, 20), line("7 + 1 backups", 33, 32), line("7 + 1 backups", 41, 40)])
        self.assertEqual((row["mode"], row["transport"], row["batch"]), ("7 + 1 backups", "tcp", 1.0))
        self.assertEqual(row["stepMs"]["measured"], dict(min=22, median=33, max=41))
        self.assertEqual(row["stepMs"]["simulated"], dict(min=20, median=32, max=40))
        self.assertEqual(row["stepMs"]["ratio"], dict(min=41 / 40, median=33 / 32, max=1.1))
        self.assertNotIn("ratio", row["dropped"])   # nothing was simulated to be dropped

    def test_slow_runs_are_held_against_the_clean_ones_of_their_round(self):
        pairs = [(line("6 + 2 backups", 20, 20), line("6 + 2 backups", 21, 20)), (line("6 + 2 backups", 40, 20), line("6 + 2 backups", 40, 22))]
        row = report.slow_row("shm", 0.1, pairs)
        self.assertEqual(row["measured"]["ratio"], dict(min=1.0, median=1.025, max=1.05))
        self.assertEqual(row["simulated"]["ratio"], dict(min=1.0, median=1.05, max=1.1))
        self.assertEqual(row["measured"]["slowMs"], dict(min=21, median=30.5, max=40))
        table = report.slow_table([row], 1.02)
        self.assertIn("1.000/1.025/1.050", table)
        self.assertTrue(table.endswith("missed"), table)
        self.assertTrue(report.slow_table([row], 1.03).endswith("met"))

    def test_table_compares_with_the_synchronous_mode_of_the_same_transport(self):
        rows = [report.mode_row(*each) for each in (("shm", [line("synchronous", 20, 20, rate=0.5)]),
                                                    ("shm", [line("asynchronous", 10, 10, rate=0.75, dropped=0.125)]),
                                                    ("tcp", [line("synchronous", 40, 20, rate=0.25)]),
                                                    ("tcp", [line("asynchronous", 10, 10, rate=0.75)]))]
        lines = report.mode_table(rows).split("\n")
        self.assertEqual(len(lines), 5)
        self.assertEqual(len({len(text) for text in lines}), 1, "columns of equal width")
        self.assertEqual(lines[2].split()[-6:], ["12.5", "%", "12.5", "%", "0.0", "0.0"])
        self.assertEqual([text.split()[-8] for text in lines[1:]], ["1.00", "1.50", "1.00", "3.00"])


if __name__ == "__main__":
    unittest_report.main("benchmarks_straggler_report_test")
