"""Sparse tables as users see them: `paceline run` trains wide-and-deep on click logs, with tables that grow, are bounded, go on with other servers,
and are larger than a worker could hold."""

import json
import math
import pathlib
import signal
import struct
import subprocess
import sys
import unittest

import unittest_report
from cli_support import ENDLESS, PACELINE, ROOT, SANITIZED, SLOW, CliCase, until

WORKER = pathlib.Path(PACELINE).parent / "paceline-worker"
BEST_AUC = 0.796   # of the example's click logs: docs/parameter-servers.md

MODES = {
    "sync": "synchronization: Synchronous",
    "backup": "synchronization: Synchronous, backupWorkers: 1",
    "async": "synchronization: Asynchronous",
    "ssp": "synchronization: BoundedStaleness, parameterServer: {staleness: 2}",
}
SMALL = "[10, 10, 100, 100, 1000, 1000]"


def job(strategy=MODES["sync"], steps=600, workers=1, servers=2, vocabularies=SMALL, exponent=1.3, embedding=4, tables="{}", extra="", evaluator=False,
        evaluation="{everySteps: 1000000}", limit=0, batch=240):
    """`limit`: bytes of memory of its own that each of those who train may have."""
    template = ""
    if limit:
        template = f'template: {{spec: {{containers: [{{command: [prlimit, "--data={limit}", "{WORKER}"]}}]}}}}'
    return f"""
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {{name: clicks}}
spec:
  strategy: {{type: ParameterServer, {strategy}}}
  replicaSpecs:
    chief: {{{template}}}
    worker: {{replicas: {workers}{", " + template if template else ""}}}
    ps: {{replicas: {servers}}}
    {"evaluator: {}" if evaluator else ""}
  training:
    model: {{type: wide-and-deep, embedding: {embedding}, hidden: [32], crosses: [{{fields: [0, 1]}}, {{fields: [2, 3]}}], tables: {tables}}}
    data:
      format: clicks
      clicks: {{samples: 200000, vocabularies: {vocabularies}, exponent: {exponent}}}
      testFraction: 0.05
    optimizer: {{type: Adagrad, learningRate: 0.05}}
    globalBatchSize: {batch}
    steps: {steps}
    evaluation: {evaluation}
{extra}
"""


def header_of(data):
    (length,) = struct.unpack("<Q", data[:8])
    return length, json.loads(data[8:8 + length])


def moments_of(model):
    """Of which step, and with which dense weights, each file of the model is."""
    files = [pathlib.Path(model)] + sorted(pathlib.Path(model).parent.glob("table-*.safetensors"))
    metadata = {file.name: header_of(file.read_bytes())[1]["__metadata__"] for file in files}
    return {name: (said["step"], said["weightsHash"]) for name, said in metadata.items()}


def rows_of(model, table):
    """Weights of a table beside the final model, as bytes by id."""
    data = (pathlib.Path(model).parent / f"table-{table}.safetensors").read_bytes()
    length, header = header_of(data)
    header.pop("__metadata__", None)

    def tensor(name):
        begin, end = header[name]["data_offsets"]
        return data[8 + length + begin:8 + length + end]
    rows = {}
    for chunk in range(len(header) // 2):
        ids = struct.unpack(f"<{header[f'ids/{chunk}']['shape'][0]}q", tensor(f"ids/{chunk}"))
        weights = tensor(f"weights/{chunk}")
        size = len(weights) // len(ids) if ids else 0
        rows.update((row, weights[i * size:(i + 1) * size]) for i, row in enumerate(ids))
    return rows


class SparseTablesTest(CliCase):
    def servers(self, status):
        return [member["server"] for member in status["members"] if "server" in member]

    def test_the_example_comes_near_the_best_auc_there_is(self):
        text, target = (ROOT / "examples/clicks-ps.yaml").read_text(), "0.78"
        if SANITIZED:   # it stops early: how far it comes is asserted in the release build
            target = "0.7"
            for old, new in (("auc: 0.78", f"auc: {target}"), ("everySteps: 1000", "everySteps: 200")):
                self.assertIn(old, text)
                text = text.replace(old, new)
        events = self.events(self.write(text))
        last = events[-1]
        self.assertTrue(last["targetReached"], last)
        self.assertEqual(last["target"], f"auc >= {target}")
        for event in (event for event in events if event["type"] == "evaluation"):
            self.assertTrue(0.5 < event["auc"] < BEST_AUC + 0.01, event)
        servers = self.servers(last)
        self.assertEqual(len(servers), 2)
        for server in servers:
            self.assertGreater(server["rows"], 1000)
            self.assertGreater(server["rowBytes"], server["rows"] * 4)
            self.assertIn(server["hottest"][0]["table"], ("wide", "deep"))
            self.assertGreater(server["hottest"][0]["pulls"], 100)
        described = self.paceline("describe", last["name"])
        self.assertIn("HOTTEST", described.stdout)
        self.assertRegex(described.stdout, r"(wide|deep): (field \d = \d+|id 0x[0-9a-f]{16} \(hashed\)) \(\d")
        self.nothing_left()

    def test_a_target_that_no_model_reaches_is_refused_at_the_start(self):
        text = job(extra="    target: {auc: 0.99}\n")
        result = self.paceline("run", self.write(text), timeout=60 * SLOW)
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr + result.stdout, r"target\.auc 0\.99 is above 0\.\d+, the best that any model can do on this data")
        self.nothing_left()

    def test_every_mode_learns_from_clicks(self):
        for name, strategy in MODES.items():
            with self.subTest(mode=name):
                path = self.write(job(strategy, workers=2))
                last = self.events(path, "--name", name)[-1]
                self.assertEqual((last["phase"], last["step"]), ("Succeeded", 600))
                self.assertGreater(last["testAuc"], 0.68, name)
                self.assertTrue(pathlib.Path(last["model"]).is_file())
        self.nothing_left()

    def test_shared_memory_and_tcp_train_the_same(self):
        ends = []
        for transport in ("SharedMemory", "TCP"):
            path = self.write(job(MODES["sync"] + f", parameterServer: {{transport: {transport}}}", steps=100))
            last = self.events(path, "--name", transport.lower())[-1]
            ends.append((last["loss"], last["testLoss"], last["testAuc"], pathlib.Path(last["model"]).read_bytes()))
        self.assertEqual(ends[0], ends[1])

    def test_it_goes_on_with_another_number_of_servers_to_the_bit(self):
        checkpoint = "  checkpoint: {everySteps: 50}\n"
        whole = self.events(self.write(job(steps=300, servers=1)), "--name", "whole")[-1]
        path = self.write(job(steps=150, servers=2, extra=checkpoint))
        half = self.events(path)[-1]
        self.write(job(steps=300, servers=3, extra=checkpoint))
        last = self.events(path, "--resume")[-1]
        self.assertEqual((half["step"], last["step"]), (150, 300))
        self.assertEqual((last["loss"], last["testLoss"], last["testAuc"]), (whole["loss"], whole["testLoss"], whole["testAuc"]))
        self.assertEqual(pathlib.Path(last["model"]).read_bytes(), pathlib.Path(whole["model"]).read_bytes())
        moments = moments_of(last["model"])
        self.assertEqual(sorted(moments), ["model.safetensors", "table-deep.safetensors", "table-wide.safetensors"])
        self.assertEqual(len(set(moments.values())), 1, moments)
        self.assertEqual(moments["model.safetensors"][0], "300")
        for table in ("wide", "deep"):
            rows = rows_of(last["model"], table)
            self.assertGreater(len(rows), 1000)
            self.assertEqual(rows, rows_of(whole["model"], table))

    def test_a_bound_is_kept_by_evicting_rows(self):
        tables = "{wide: {maxRows: 400, eviction: LeastFrequent}, deep: {maxRows: 300}}"
        last = self.events(self.write(job(tables=tables)), "--name", "whole")[-1]
        for table, bound in (("wide", 400), ("deep", 300)):
            rows = len(rows_of(last["model"], table))
            # Rows of one update don't make place for each other.
            self.assertTrue(bound * 0.9 < rows < 2 * bound, f"{table}: {rows}")
        self.assertGreater(last["testAuc"], 0.6, "what is frequent stays")
        # Servers say it in their heartbeats.
        process = self.start("run", self.write(job(tables=tables, steps=ENDLESS)), "--output", "json")
        status = self.training("clicks", 4)
        evicted = lambda: [server.get("rowsEvicted", 0) for server in self.servers(self.status("clicks") or status)]
        until(lambda: len(evicted()) == 2 and min(evicted()) > 100, 20 * SLOW, "evictions")
        process.send_signal(signal.SIGINT)
        self.outcome(130, process, 60 * SLOW)
        self.nothing_left()

    @unittest.skipIf(SANITIZED, "the sanitizers' own memory is counted, too")
    def test_tables_larger_than_a_workers_memory_limit_train(self):
        limit, table = 320 << 20, 512 << 20
        refused = subprocess.run(["prlimit", f"--data={limit}", sys.executable, "-c", f"bytearray({table})"], capture_output=True, text=True)
        self.assertIn("MemoryError", refused.stderr, "the limit is one")
        # Nearly every value of the last 20 fields comes once: each sample makes 20 rows.
        vocabularies = "[10, 10, 20, 20" + ", 2147483648" * 20 + "]"
        path = self.write(job(steps=240, vocabularies=vocabularies, exponent=0, embedding=64, batch=512, limit=limit))
        last = self.events(path)[-1]
        self.assertEqual((last["phase"], last["step"]), ("Succeeded", 240))
        self.assertTrue(math.isfinite(last["loss"]))
        # Ids and weights alone, without what Adagrad keeps beside them.
        self.assertGreater((pathlib.Path(last["model"]).parent / "table-deep.safetensors").stat().st_size, table)
        self.nothing_left()

    def test_an_evaluator_ranks_held_out_clicks_by_checkpoints(self):
        text = job(MODES["async"], steps=ENDLESS, evaluator=True, extra="  checkpoint: {everySteps: 200}\n")
        process = self.start("run", self.write(text), "--output", "json")
        self.training("clicks", 5)
        until(lambda: self.status("clicks").get("testAuc", 0) > 0.6, 60 * SLOW, "the AUC of a checkpoint")
        process.send_signal(signal.SIGINT)
        self.outcome(130, process, 60 * SLOW)
        self.nothing_left()


if __name__ == "__main__":
    unittest_report.main("sparse_tables_test")
