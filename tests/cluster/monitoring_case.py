"""Dashboards, alerts and their documentation as the tests of monitoring see them."""

import json
import re
import shutil

from chart_case import CHART, ROOT

REASON = "" if shutil.which("promtool") and shutil.which("prometheus") else "Prometheus is not installed: scripts/setup --cluster"
ALERTS = CHART / "files/alerts.yaml"
ALERT_TESTS = ROOT / "tests/cluster/alerts.yaml"
DOCS = ROOT / "docs/metrics.md"


def dashboards():
    """File name -> dashboard."""
    return {path.name: json.loads(path.read_text()) for path in sorted((CHART / "dashboards").glob("*.json"))}


def queries(dashboard):
    """(row, panel, query) of every target, with Grafana's own variables filled in."""
    row = ""
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            row = panel["title"]
        for target in panel.get("targets", []):
            yield row, panel["title"], target["expr"].replace("$__rate_interval", "1m")


def expand(query, **variables):
    for name, value in variables.items():
        query = query.replace(f"${name}", value)
    return query


def documented_metrics():
    """Name -> labels, of the table in docs/metrics.md, which a test compares with the code."""
    table = DOCS.read_text().split("<!-- metrics: begin -->", 1)[1].split("<!-- metrics: end -->", 1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("| `")]
    return {cells[0].strip("`"): set(re.findall("`([a-z_]+)`", cells[2])) for cells in rows}


def metrics_of(query):
    """Names of metrics in a query; those of a histogram without what Prometheus adds."""
    names = re.findall(r"\b((?:paceline|controller_runtime|workqueue|rest_client|leader_election)_[a-z_]+)", query)
    return {re.sub("_(bucket|sum|count)$", "", name) for name in names}
