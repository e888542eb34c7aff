"""benchmarks/gpu_training: what is asked for and made of measurements, the order of samples, and a peer that answers, fails, ends or takes too long."""

import importlib.machinery
import importlib.util
import pathlib
import tempfile
import types
import unittest

import gpu_training_report as report
import sample_order
import unittest_report

PATH = pathlib.Path(__file__).resolve().parents[3] / "benchmarks/gpu_training"


def program():
    loader = importlib.machinery.SourceFileLoader("gpu_training", str(PATH))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


gpu_training = program()


class SampleOrderTest(unittest.TestCase):
    # The same numbers stand in ledger_test.cc (PeersKnowTheOrder).
    def test_the_order_is_the_ledgers(self):
        for seed, samples, expected in ((1, 7, [0, 5, 2, 6, 3, 0]), (7, 97, [17, 67, 40, 80, 32, 12]),
                                        (12345678901234567890, 60000, [44403, 28047, 8414, 33922, 48907, 3330])):
            positions = (0, 1, 2, samples - 1, samples, 5 * samples + 3)
            self.assertEqual([sample_order.sample_at(seed, samples, position) for position in positions], expected)

    def test_a_batch_may_span_epochs(self):
        for samples in (1, 2, 5, 16, 97):
            taken = [sample for step in range(3 * samples) for sample in sample_order.samples_of(3, samples, 5, step)]
            for epoch in range(15):
                self.assertEqual(sorted(taken[epoch * samples:(epoch + 1) * samples]), list(range(samples)))


class ReportTest(unittest.TestCase):
    def test_sizes(self):
        self.assertEqual(report.parameters(report.SIZES["124m"]), 124_475_904)   # 124,439,808 of GPT-2's, and 47 rows of 768
        self.assertEqual(report.parameters(report.SIZES["350m"]), 354_871_296)
        size = report.SIZES["124m"]
        self.assertEqual(report.flops_per_token(size), 6 * (124_475_904 - 1024 * 768) + 12 * 12 * 768 * 1024)

    def test_gpus_by_name(self):
        self.assertEqual(report.gpu_limits("NVIDIA H200")["copies"], 4.3e12)
        self.assertEqual(report.gpu_limits("NVIDIA H100 80GB HBM3")["peak"], 989e12)
        self.assertIsNone(report.gpu_limits("emulated"))

    def test_schedule(self):
        rates = [report.learning_rate(report.SIZES["124m"], step, 200, 20) for step in range(200)]
        self.assertAlmostEqual(rates[0], 0.0006 / 20)
        self.assertAlmostEqual(rates[19], 0.0006)
        self.assertAlmostEqual(rates[20], 0.0006)
        self.assertAlmostEqual(rates[199], 0.00006)
        self.assertEqual(rates[20:], sorted(rates[20:], reverse=True))

    def test_jobs(self):
        text = report.job(report.SIZES["350m"], "/t.bin", 16, 25, workers=4, micro=2, warmup=3, checkpoint_every=5)
        for part in ("layers: 24, heads: 16, width: 1024, blockSize: 1024, vocabularySize: 50304", "inputs: /t.bin", "worker: {replicas: 4}",
                     "beta2: 0.95", "weightDecay: 0.1", "clipNorm: 1.0", "warmupSteps: 3", "globalBatchSize: 16", "microBatchSize: 2", "steps: 25",
                     "precision: BF16", "everySteps: 5"):
            self.assertIn(part, text)
        self.assertIn("learningRate: 1e-30", report.job(report.SIZES["124m"], "/t.bin", 1, 1, frozen=True))

    def test_rates_leave_out_the_first_steps(self):
        records = [{"type": "memberStep"}] + [{"type": "step", "step": step, "timeSeconds": time, "loss": 1.0}
                                              for step, time in ((1, 5.0), (2, 6.0), (3, 6.5), (4, 7.0))]
        self.assertEqual(report.rate_of(records, 100, 1), 200)
        with self.assertRaisesRegex(ValueError, "4 steps are too few to leave out 3"):
            report.rate_of(records, 100, 3)

    def test_parts_are_means_over_members(self):
        def row(step, value):
            return {"type": "memberStep", "step": step, **{part + "Ms": value for part in ("input", "compute", "wait", "transfer", "update", "step")}}
        self.assertEqual(report.parts_of([row(1, 100), row(2, 1), row(2, 3)], 1)["compute"], 2)

    def test_parity(self):
        told = report.parity([4.0, 3.03], [4.0, 3.0])
        self.assertAlmostEqual(told["difference"], 0.01)
        self.assertAlmostEqual(told["differenceOfLastTen"], 7.03 / 7 - 1)
        self.assertAlmostEqual(told["largestDifference"], 0.01)
        with self.assertRaises(ValueError):
            report.parity([1.0], [1.0, 2.0])

    def case(self, ours, eager, compiled, losses):
        size, limits = report.SIZES["124m"], report.gpu_limits("NVIDIA H200")
        sides = {name: report.side(rates, 32, size, limits, 1000) for name, rates in (("paceline", ours), ("eager", eager), ("compile", compiled))}
        return {"parameters": report.parameters(size), "flopsPerToken": report.flops_per_token(size), "sides": sides, "ratios": report.ratios(sides),
                "parity": report.parity(*losses)}

    def test_met_and_missed_targets_are_named(self):
        good = "\n".join(report.case_lines("124m", self.case([600e3] * 3, [300e3] * 3, [500e3] * 3, ([3.0], [3.001]))))
        self.assertIn("MFU 51.9 % (target 0.5: met)", good)
        self.assertIn("of eager   2.00/2.00/2.00  target 1.3: met", good)
        self.assertIn("of compile 1.20/1.20/1.20  target 1: met", good)
        self.assertIn("target 0.005: met", good)
        bad = "\n".join(report.case_lines("124m", self.case([300e3, 290e3], [300e3] * 2, [500e3] * 2, ([3.1], [3.0]))))
        self.assertEqual(bad.count("MISSED"), 4)

    def test_a_checkpoint_stalls_for_what_the_steps_behind_it_take_longer(self):
        held_up = {21: 30, 22: 8}   # milliseconds
        records, at = [], 0.0
        for step in range(1, 41):
            at += (10 + held_up.get(step, 0)) / 1e3
            records.append({"type": "step", "step": step, "timeSeconds": at})
        median, stalls = report.stalls_of(records, [10, 20], 5)
        self.assertAlmostEqual(median, 10)
        self.assertAlmostEqual(stalls[0], 0)
        self.assertAlmostEqual(stalls[1], 38)

    def test_runs(self):
        lines = "\n".join(report.run_lines({"startSeconds": [1.0, 4.0, 2.0], "checkpoint": {"bytes": 1.5e9, "stallMs": [60.0, 70.0], "stepMs": 14.6},
                                            "exchange": [{"members": 1, "tokensPerSecond": 1000.0, "partsMs": {"compute": 2.0}},
                                                         {"members": 2, "tokensPerSecond": 900.0, "partsMs": {"compute": 2.0}}],
                                            "notMeasured": ["compile: out of memory"]}))
        self.assertIn("start to first step  1.00/2.00/4.00 s  target 3: met", lines)
        self.assertIn("1,500 MB  60.0/65.0/70.0 ms beside steps of 14.6 ms  target 50: MISSED", lines)
        self.assertIn("2 members on one GPU  900 tokens/s", lines)
        self.assertIn("not measured: compile: out of memory", lines)

    def test_kernels_beside_their_limits(self):
        kernels = [{"name": "copy", "bytes": 4.3e6, "operations": 0, "microseconds": [1, 2, 3]},
                   {"name": "product", "bytes": 0, "operations": 790e6, "microseconds": [1, 4, 5]}]
        rows = report.with_limits(kernels, report.gpu_limits("H200"))
        self.assertEqual([(round(row["limitMicroseconds"], 6), round(row["ofLimit"], 6)) for row in rows], [(1, 0.5), (1, 0.25)])
        self.assertIn("50%", report.kernel_lines(rows)[1])


class PeerTest(unittest.TestCase):
    """A peer without PyTorch: a script that says what PyTorch's process would."""

    def peer(self, body, seconds=60):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        script = pathlib.Path(folder.name) / "python"
        script.write_text(f"#!/bin/sh\n{body}\n")
        script.chmod(0o755)
        peer = gpu_training.Peer(types.SimpleNamespace(python=str(script)), gpu_training.Clock(seconds), {"size": 1})
        self.addCleanup(peer.close)
        return peer

    def test_questions_are_answered(self):
        peer = self.peer('echo \'{"torch": "2.11", "parameters": 5}\'; read line; echo "{\\"got\\": $line}"; cat > /dev/null')
        self.assertEqual(peer.says, {"torch": "2.11", "parameters": 5})
        self.assertEqual(peer.ask("rate", do="rate", batch=8), {"got": {"do": "rate", "batch": 8}})

    def test_error_of_the_peer_is_named(self):
        peer = self.peer('echo {}; read line; echo \'{"error": "OutOfMemoryError: 80 GB"}\'; cat > /dev/null')
        with self.assertRaisesRegex(gpu_training.NotMeasured, "^compile: OutOfMemoryError: 80 GB$"):
            peer.ask("compile", do="rate")

    def test_one_that_ends_is_named(self):
        with self.assertRaisesRegex(gpu_training.NotMeasured, "PyTorch's start: its process ended"):
            self.peer("exit 3")
        peer = self.peer("echo {}; read line")
        with self.assertRaisesRegex(gpu_training.NotMeasured, "losses: its process ended"):
            peer.ask("losses", do="losses")

    def test_one_that_takes_too_long_is_ended(self):
        peer = self.peer("echo {}; while read line; do :; done")
        peer.clock, peer.LEAST_SECONDS = gpu_training.Clock(0), 0.01
        with self.assertRaisesRegex(gpu_training.NotMeasured, "rate: no time left"):
            peer.ask("rate", do="rate")


class ClockTest(unittest.TestCase):
    def test_measurement_without_time_is_not_begun(self):
        clock = gpu_training.Clock(-1)
        with self.assertRaisesRegex(gpu_training.NotMeasured, "members: no time left"):
            clock.need(5, "members")
        gpu_training.Clock(1000).need(5, "members")


class TokensTest(unittest.TestCase):
    def test_they_are_the_same_every_time_and_of_the_vocabulary(self):
        with tempfile.TemporaryDirectory() as folder:
            one, other = pathlib.Path(folder) / "one", pathlib.Path(folder) / "other"
            for path in (one, other):
                gpu_training.write_tokens(path, 10_000, 50257)
            self.assertEqual(one.read_bytes(), other.read_bytes())
            tokens = memoryview(one.read_bytes()).cast("H")
            self.assertLess(max(tokens), 50257)
            self.assertGreater(sum((a * 31 + 7) % 50257 == b for a, b in zip(tokens, tokens[1:])), 4500)


if __name__ == "__main__":
    unittest_report.main("benchmarks_gpu_training_test")
