"""Dashboards and alerts without a cluster: Prometheus reads them, alerts fire and clear when they should, and names are those of the documentation."""

import pathlib
import re
import subprocess
import tempfile
import unittest

import unittest_report
import yaml
from monitoring_case import ALERT_TESTS, ALERTS, DOCS, REASON, dashboards, documented_metrics, expand, metrics_of, queries

SECONDS = 60


def alerts():
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


class MonitoringFilesTest(unittest.TestCase):
    def promtool(self, *arguments):
        result = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    @unittest.skipIf(REASON, REASON)
    def test_alerts_fire_and_clear(self):
        self.promtool("check", "rules", ALERTS)
        self.promtool("test", "rules", ALERT_TESTS)

    def test_each_alert_has_a_test_in_which_it_fires_and_then_clears(self):
        expected = {}
        for each in yaml.safe_load(ALERT_TESTS.read_text())["tests"]:
            for case in each["promql_expr_test"]:
                name = re.search('alertname="([A-Za-z]+)"', case["expr"]).group(1)
                expected.setdefault(name, []).append(bool(case.get("exp_samples")))
        self.assertEqual(set(expected), {alert["alert"] for alert in alerts()})
        for name, fires in expected.items():
            self.assertEqual((fires[0], fires[1], fires[-1]), (False, True, False), name)

    def test_each_alert_says_what_to_do_here_and_in_the_documentation(self):
        sections = re.findall("^#### (.*)$", DOCS.read_text(), re.MULTILINE)
        self.assertEqual(sections, [alert["alert"] for alert in alerts()])
        for alert in alerts():
            self.assertLessEqual({"summary", "description"}, set(alert["annotations"]), alert["alert"])
            self.assertIn(alert["labels"]["severity"], ("warning", "critical"), alert["alert"])

    def test_every_metric_that_is_asked_for_is_documented(self):
        documented = documented_metrics()
        self.assertGreater(len(documented), 50)   # else the table is not read as it is written
        asked = [alert["expr"] for alert in alerts()]
        asked += [query for dashboard in dashboards().values() for _, _, query in queries(dashboard)]
        for query in asked:
            self.assertGreater(len(metrics_of(query)), 0, query)
            self.assertLessEqual(metrics_of(query), set(documented), query)

    def test_every_metric_of_jobs_and_members_is_on_a_dashboard(self):
        shown = set().union(*(metrics_of(query) for dashboard in dashboards().values() for _, _, query in queries(dashboard)))
        for name in documented_metrics():
            if name.startswith(("paceline_job_", "paceline_member_")):
                with self.subTest(name):
                    self.assertIn(name, shown)

    def test_dashboards_are_apart_and_ask_the_prometheus_that_is_chosen(self):
        self.assertEqual(len({dashboard["uid"] for dashboard in dashboards().values()}), len(dashboards()))
        for name, dashboard in dashboards().items():
            with self.subTest(name):
                ids = [panel["id"] for panel in dashboard["panels"]]
                self.assertEqual(len(set(ids)), len(ids))
                self.assertIn("datasource", [variable["name"] for variable in dashboard["templating"]["list"]])
                sources = {target["datasource"]["uid"] for panel in dashboard["panels"] for target in panel.get("targets", [])}
                self.assertEqual(sources, {"${datasource}"})
                places = [tuple(panel["gridPos"][key] for key in "xy") for panel in dashboard["panels"]]
                self.assertEqual(len(set(places)), len(places))

    @unittest.skipIf(REASON, REASON)
    def test_prometheus_reads_every_query_of_every_panel(self):
        rules = [{"record": f"query:{index}", "expr": expand(query, job_namespace="a", job_name="b")} for index, query in
                 enumerate(query for dashboard in dashboards().values() for _, _, query in queries(dashboard))]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rules.yaml"
            path.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
            self.promtool("check", "rules", path)

    def test_names_follow_prometheus(self):
        """Base units, and `_total` for counters alone: the kinds stand in the same table."""
        kinds = dict(re.findall(r"^\| `([a-z_]+)` \| (counter|gauge|histogram) \|", DOCS.read_text(), re.MULTILINE))
        self.assertEqual(set(kinds), set(documented_metrics()))
        for name, kind in kinds.items():
            with self.subTest(name):
                self.assertEqual(name.endswith("_total"), kind == "counter")
                self.assertNotRegex(name, "_(ms|milliseconds|minutes|mib|kb|mb|megabytes|mhz|percent)(_|$)")


if __name__ == "__main__":
    unittest_report.main("cluster_monitoring_files_test")
