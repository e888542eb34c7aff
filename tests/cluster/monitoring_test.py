"""A real Prometheus beside two jobs on the real cluster: every panel of every dashboard has something to show, and the series of a deleted job go."""

import json
import pathlib
import re
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.parse
import urllib.request

import unittest_report
import yaml
from cluster_case import needs_cluster
from job_case import CONTROLLERS, HOME, JobCase, endless
from machine import processes
from monitoring_case import ALERTS, REASON, dashboards, expand, queries

READY_SECONDS, SERIES_SECONDS, ANSWER_SECONDS = 30, 90, 10
NOT_HERE = re.compile("paceline_member_gpu_|paceline_job_test_auc_|paceline_job_failed_")   # no GPU, no model that gives one score, no failure


class Prometheus:
    """One that asks these addresses each second, and goes with the test."""

    def __init__(self, case, targets):
        folder = tempfile.TemporaryDirectory()
        case.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        config = self.folder / "prometheus.yml"
        config.write_text(yaml.safe_dump({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}, "rule_files": [str(ALERTS)],
            # The labels of targets are those that the ServiceMonitor gives them.
            "scrape_configs": [{"job_name": "paceline", "static_configs": [{"targets": targets, "labels": {"namespace": HOME}}]}]}))
        self.log = self.folder / "log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(["prometheus", f"--config.file={config}", f"--storage.tsdb.path={self.folder}/data",
                                             "--web.listen-address=127.0.0.1:0"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        case.addCleanup(self.end)
        found = processes.wait_until("the port of Prometheus", READY_SECONDS,
                                     lambda: re.search(r'msg="Listening on" address=(\S+)', self.log.read_text()), lambda: processes.tail(self.log))
        self.url = f"http://{found.group(1)}"
        processes.wait_until("Prometheus", READY_SECONDS, self.is_ready, lambda: processes.tail(self.log))

    def end(self):
        self.process.terminate()
        self.process.wait(READY_SECONDS)

    def is_ready(self):
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=ANSWER_SECONDS):
                return True
        except urllib.error.URLError:
            return False

    def get(self, path, **parameters):
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=ANSWER_SECONDS) as answer:
            return json.load(answer)["data"]

    def query(self, query):
        """Series: (labels, value) of each."""
        return [(each["metric"], float(each["value"][1])) for each in self.get("query", query=query)["result"]]


@needs_cluster
@unittest.skipIf(REASON, REASON)
class MonitoringTest(JobCase):
    def test_every_panel_has_series_during_a_run_and_those_of_a_deleted_job_go(self):
        trains = {"steps": 100_000_000, "evaluation": {"everySteps": 100}}
        self.apply(endless("ring", training=trains, checkpoint={"everySeconds": 5}),
                   endless("served", servers=1, training=trains, checkpoint={"everySteps": 1000}, strategy={"type": "ParameterServer"}))
        pods = json.loads(self.in_system("get", "pods", "-l", CONTROLLERS, "-o", "json").stdout)["items"]
        prometheus = Prometheus(self, [f"{pod['status']['podIP']}:8080" for pod in pods])
        for name in ("ring", "served"):
            self.wait_for(name, "Running")
        asked = {(file, row, title, query) for file, dashboard in dashboards().items() for row, title, query in queries(dashboard)
                 if not NOT_HERE.search(query)}
        missing = set(asked)

        def all_have_series():
            for each in list(missing):
                if any(prometheus.query(expand(each[3], job_namespace=self.namespace, job_name=name)) for name in ("ring", "served")):
                    missing.remove(each)
            return not missing
        processes.wait_until("series of every panel", SERIES_SECONDS, all_have_series, lambda: "\n".join(map(str, sorted(missing))) + self.job_story())
        self.assertEqual(prometheus.query("sum(leader_election_master_status)"), [({}, 1)])
        self.assertEqual(prometheus.query('sum(paceline_jobs{phase="Running"})'), [({}, 2)])
        self.assertEqual(prometheus.query('max(paceline_job_target_steps{job_name="ring"})'), [({}, 100_000_000)])
        processes.wait_until("the step of a checkpoint", SERIES_SECONDS,
                             lambda: prometheus.query('max(paceline_job_checkpoint_step{job_name="ring"})')[0][1] > 0, self.job_story)
        self.assert_rules_are_well(prometheus)
        self.assert_page_is_well(pods)

        self.kubectl("delete", "tj", "ring", "--wait=true")
        processes.wait_until("the end of its series", SERIES_SECONDS, lambda: not prometheus.query('{job_name="ring"}'))
        self.assertNotEqual(prometheus.query('{job_name="served"}'), [])

    def assert_rules_are_well(self, prometheus):
        rules = processes.wait_until("the rules", READY_SECONDS, lambda: [
            rule for group in prometheus.get("rules")["groups"] for rule in group["rules"] if rule["health"] != "unknown"])
        self.assertEqual({rule["health"] for rule in rules}, {"ok"}, rules)
        self.assertNotIn("firing", [rule["state"] for rule in rules])

    def assert_page_is_well(self, pods):
        """Names of metrics, and the text's form, as Prometheus' own check wants them."""
        for pod in pods:
            with urllib.request.urlopen(f"http://{pod['status']['podIP']}:8080/metrics", timeout=ANSWER_SECONDS) as answer:
                page = answer.read().decode()
            self.assertEqual("paceline_job_step{" in page, pod["metadata"]["name"] == self.leader())
            checked = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True, timeout=ANSWER_SECONDS)
            self.assertEqual((checked.returncode, checked.stderr), (0, ""), checked.stdout)


if __name__ == "__main__":
    unittest_report.main("cluster_monitoring_test")
