"""The chart as its tests see it: helm, what it renders, and the table of rights in docs/kubernetes.md."""

import pathlib
import re
import subprocess

import yaml

from machine import parts

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "charts/paceline"
HELM_SECONDS = 180
IMAGE = "registry.example.com/paceline/controller"


def run_helm(*arguments, environment=None, seconds=HELM_SECONDS):
    """The finished process, whatever its status."""
    return subprocess.run([parts.program("helm"), *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=seconds, env=environment)


def template(*arguments, release="paceline", namespace="paceline-system", image=IMAGE):
    """What would be installed: the finished process of `helm template`."""
    return run_helm("template", release, CHART, "--namespace", namespace, "--kube-version", parts.KUBERNETES[1:],
                    *(["--set", f"image.repository={image}"] if image else []), *arguments)


class Objects(list):
    """What the chart renders."""

    def __init__(self, text):
        super().__init__(value for value in yaml.safe_load_all(text) if value)

    def of_kind(self, kind):
        return [value for value in self if value["kind"] == kind]

    def one(self, kind, name=None):
        found = [value for value in self.of_kind(kind) if name is None or value["metadata"]["name"] == name]
        if len(found) != 1:
            raise AssertionError(f"{len(found)} of {kind} {name or ''}, not 1; there are {[(v['kind'], v['metadata']['name']) for v in self]}")
        return found[0]

    def container(self):
        return self.one("Deployment")["spec"]["template"]["spec"]["containers"][0]

    def config(self):
        return yaml.safe_load(next(value for value in self.of_kind("ConfigMap") if "controller.yaml" in value["data"])["data"]["controller.yaml"])


def rights(role):
    """(group, resource, verb) of a Role or ClusterRole."""
    return {(group, resource, verb) for rule in role["rules"] for group in rule["apiGroups"] for resource in rule["resources"]
            for verb in rule["verbs"]}


def documented_rights(dashboard=False):
    """The same from the table in docs/kubernetes.md; `dashboard`: with those that only the dashboard needs."""
    section = (ROOT / "docs/kubernetes.md").read_text().split("## Rights", 1)[1].split("\n## ", 1)[0]
    found, group, resource = set(), "", ""
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("| `") and not line.startswith("| |") or len(cells) != 4:
            continue
        if not dashboard and "`config.dashboard.address`" in cells[3]:
            continue
        if cells[0]:
            group, resource = (names[0] for names in (re.findall(r"`([^`]*)`", cell) for cell in cells[:2]))
        found |= {("" if group == "core" else group, resource, verb) for verb in re.findall(r"`([a-z]+)`", cells[2])}
    return found
