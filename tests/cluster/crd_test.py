"""crds/trainingjobs.yaml on a real API server: it and the parser (paceline validate) take the same files, and what kubectl makes of the resource.

The API server's verdict is that of a server-side dry run with fieldValidation=Strict, which is what kubectl apply asks for by default.
"""

import http.client
import json
import os
import pathlib
import re
import subprocess

import yaml

import unittest_report
from cluster_case import ROOT, ClusterCase, needs_cluster
from machine import api

CASES = ROOT / "tests/unit/controller/api"
PACELINE = pathlib.Path(os.environ.get("PACELINE_BINARY_DIR", ROOT / "build/release")) / "bin/paceline"
SECONDS = 60

# What the parser refuses and the API server takes, and why it can't be otherwise.
YAML = "the API server's YAML is another: "
FORGOTTEN = "the API server takes null for absent; in a file it is a value that somebody forgot"
NO_ROOM = "the definition has no room for the rule: the controller refuses such a job, in its status"
EXCEPTIONS = {
    "two_documents.yaml": YAML + "it reads the first document (kubectl makes objects of all)",
    "second_document_is_text.yaml": YAML + "it reads the first document",
    "utf16.yaml": YAML + "it reads UTF-16, too",
    "merge_key.yaml": YAML + "it merges keys",
    "own_tag.yaml": YAML + "it passes over tags",
    "yaml_tag.yaml": YAML + "it knows tags",
    "overlap_yes.yaml": YAML + "yes is a truth value",
    "replicas_octal.yaml": YAML + "010 is octal",
    "steps_underscore.yaml": YAML + "1_000 is a number",
    "steps_exponent.yaml": "in JSON 1e3 and 1000 are the same number",
    "replicas_null.yaml": FORGOTTEN,
    "preflight_null.yaml": FORGOTTEN,
    "env_device.yaml": NO_ROOM,
    "env_cuda_graphs.yaml": NO_ROOM,
    "drop_rate_gpus.yaml": NO_ROOM,
    "encryption_gpus.yaml": NO_ROOM,
    "labels_count.yaml": "what may be a text or a list has no type, and no rule can count it",
}


def rules_of(schema, path=""):
    """(pattern of the field that it complains about, what it says), of every CEL rule that judges an object by itself."""
    for rule in schema.get("x-kubernetes-validations", ()):
        if "oldSelf" not in rule["rule"]:   # those that judge an edit: test_edits
            yield path + re.escape(rule.get("fieldPath", "")), rule["message"]
    for name, part in schema.get("properties", {}).items():
        yield from rules_of(part, path + re.escape(f".{name}" if path else name))
    for part, key in ((schema.get("items"), r"\[\d+\]"), (schema.get("additionalProperties"), r"\[[^]]+\]")):
        if isinstance(part, dict):
            yield from rules_of(part, path + key)


def job_of(name, **spec):
    """The least job that is right, with other parts of its spec."""
    training = {"model": {"type": "mlp", "classes": 10}, "data": {"format": "csv", "train": {"inputs": "a.csv"}},
                "optimizer": {"learningRate": 0.1}, "globalBatchSize": 64, "steps": 10}
    return {"apiVersion": "paceline.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name},
            "spec": {"replicaSpecs": {"worker": {"replicas": 2}}, "training": training, **spec}}


@needs_cluster
class ResourceCase(ClusterCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        case = cls("run_kubectl")
        case.namespace = "default"
        case.define_jobs()


class ParityTest(ResourceCase):
    def setUp(self):
        super().setUp()
        client = api.Api(self.layout)
        self.connection = http.client.HTTPSConnection(client.host, client.port, timeout=SECONDS, context=client.context)
        self.addCleanup(self.connection.close)

    def ask_server(self, file, namespace="default"):
        """(accepted, what it says)"""
        path = f"/apis/paceline.dev/v1alpha1/namespaces/{namespace}/trainingjobs?dryRun=All&fieldValidation=Strict"
        kind = "application/json" if file.suffix == ".json" else "application/yaml"
        self.connection.request("POST", path, body=file.read_bytes(), headers={"Content-Type": kind})
        response = self.connection.getresponse()
        text = response.read().decode(errors="replace")
        self.assertIn(response.status, (201, 400, 422), f"{file.name}: {text}")
        return response.status == 201, text

    @staticmethod
    def ask_parser(files):
        """Those that it accepts."""
        done = subprocess.run([PACELINE, "validate", *files], capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False)
        return {file for file in files if f"{file}: valid:" in done.stdout}

    def verdicts_differ(self, files):
        accepted = self.ask_parser(files)
        problems = {}
        for file in files:
            by_server, text = self.ask_server(file)
            if by_server != (file in accepted):
                problems[file.name] = f"the parser {'accepts' if file in accepted else 'refuses'} it; the API server: {text}"
        return problems

    def test_valid_job_is_accepted_by_both(self):
        files = [*sorted(ROOT.glob("examples/**/*.yaml")), *sorted(CASES.glob("good/*.yaml"))]
        self.assertGreater(len(files), 10)
        self.assertEqual(self.ask_parser(files), set(files))
        self.assertEqual(self.verdicts_differ(files), {})

    def test_invalid_job_is_refused_by_both(self):
        files = sorted(f for f in (CASES / "bad").iterdir() if f.suffix != ".expected")
        self.assertGreater(len(files), 180)
        self.assertEqual(self.ask_parser(files), set())
        problems = self.verdicts_differ(files)
        self.assertEqual({name: text for name, text in problems.items() if name not in EXCEPTIONS}, {})
        self.assertEqual(sorted(problems), sorted(EXCEPTIONS), "an exception that is none any more goes from the table")

    def test_every_rule_has_a_bad_file_that_breaks_it_alone(self):
        """One that nothing breaks may be wrong, or unknown to the parser, and both tests above would not notice."""
        said = []
        for file in sorted(f for f in (CASES / "bad").iterdir() if f.suffix != ".expected"):
            causes = json.loads(self.ask_server(file)[1]).get("details", {}).get("causes", ())
            said += [(cause["field"], cause["message"]) for cause in causes if len(causes) == 1]
        definition = yaml.safe_load((ROOT / "crds/trainingjobs.yaml").read_text())
        rules = list(rules_of(definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]))
        self.assertGreater(len(rules), 100)
        self.assertEqual([rule for rule in rules if not any(re.fullmatch(rule[0], field) and message.endswith(rule[1]) for field, message in said)], [])


class KubectlTest(ResourceCase):
    def put(self, job, status=None):
        self.apply(job)
        if status:
            self.kubectl("patch", "tj", job["metadata"]["name"], "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))

    def refused(self, *arguments, **keywords):
        """What kubectl says."""
        result = self.run_kubectl(*arguments, **keywords)
        self.assertNotEqual(result.returncode, 0, f"{arguments}: {result.stdout}")
        return result.stderr

    def edit(self, name, *path_and_value, dry=True):
        """A merge patch of one field, as arguments for kubectl."""
        *path, value = path_and_value
        for part in reversed(path):
            value = {part: value}
        return ["patch", "tj", name, "--type=merge", "-p", json.dumps(value), *(["--dry-run=server"] if dry else [])]

    def test_columns(self):
        self.put(job_of("x", runPolicy={"schedulingPolicy": {"queue": "team-a"}}),
                 {"phase": "Running", "ready": "3/4", "progress": {"step": 17}, "restarts": {"total": 2}, "lastCheckpoint": "/c/step-9",
                  "lastCheckpointStep": 9, "stragglers": [{"pod": "x-worker-1-0", "reason": "throttled"}]})
        names, values = (line.split() for line in self.kubectl("get", "tj", "-o", "wide").splitlines())
        self.assertEqual(names, ["NAME", "PHASE", "READY", "STEP", "RESTARTS", "STRAGGLERS", "CHECKPOINT", "QUEUE", "AGE"])
        self.assertEqual(values[:-1], ["x", "Running", "3/4", "17", "2", "x-worker-1-0", "9", "team-a"])
        self.assertEqual(self.kubectl("get", "tj").split()[:6], ["NAME", "PHASE", "READY", "STEP", "RESTARTS", "AGE"])

    def test_conditions_can_be_waited_for(self):
        self.put(job_of("x"), {"conditions": [{"type": "Succeeded", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}]})
        self.kubectl("wait", "--for=condition=Succeeded", "tj/x", "--timeout=10s")

    def test_explain(self):
        self.assertIn("replicaSpecs\t<map[string]Object> -required-", self.kubectl("explain", "tj.spec"))
        rate = self.kubectl("explain", "tj.spec.training.optimizer.learningRate")
        self.assertIn("<number>", rate)
        self.assertIn("The rate after the warm-up.", rate)
        self.assertIn("phase\t<string>", self.kubectl("explain", "tj.status"))

    def test_scale(self):
        self.put(job_of("x", replicaSpecs={"worker": {"minReplicas": 1, "maxReplicas": 4}}), {"replicas": 1})
        scale = json.loads(self.kubectl("get", "--raw", f"/apis/paceline.dev/v1alpha1/namespaces/{self.namespace}/trainingjobs/x/scale"))
        self.assertEqual((scale["spec"]["replicas"], scale["status"]["replicas"]), (1, 1))
        self.kubectl("scale", "tj/x", "--replicas=4")
        self.assertEqual(self.get("tj", "x")["spec"]["replicaSpecs"]["worker"]["replicas"], 4)
        self.assertIn("minReplicas and maxReplicas", self.refused("scale", "tj/x", "--replicas=5"))
        self.put(job_of("open", replicaSpecs={"worker": {"replicas": 3, "minReplicas": 1}}), {"replicas": 3})
        self.kubectl("scale", "tj/open", "--replicas=1")
        self.kubectl("scale", "tj/open", "--replicas=3")
        self.apply(job_of("fixed"))
        self.assertIn("without both not at all", self.refused("scale", "tj/fixed", "--replicas=3"))

    def test_status_and_spec_are_written_apart(self):
        self.put({**job_of("x"), "status": {"phase": "Succeeded"}}, {"phase": "Running"})
        self.assertEqual(self.get("tj", "x")["status"], {"phase": "Running"})
        self.kubectl(*self.edit("x", "status", "phase", "Failed", dry=False))
        self.kubectl("patch", "tj", "x", "--subresource=status", "--type=merge", "-p", '{"spec": {"runPolicy": {"suspend": true}}}')
        job = self.get("tj", "x")
        self.assertEqual(job["status"], {"phase": "Running"})
        self.assertNotIn("runPolicy", job["spec"])
        self.assertEqual(job["metadata"]["generation"], 1)

    # The same table as tests/unit/controller/api/edit_test.cc has for the parser's side.
    def test_edits(self):
        template = {"spec": {"containers": [{"name": "trainer", "image": "a"}], "volumes": []}}
        self.put(job_of("x", replicaSpecs={"chief": {}, "worker": {"replicas": 3, "minReplicas": 2, "maxReplicas": 5, "template": template}},
                        checkpoint={"everySteps": 10}, runPolicy={"backoffLimit": 3, "schedulingPolicy": {"queue": "q"}}))
        worker, policy, training = ["spec", "replicaSpecs", "worker"], ["spec", "runPolicy"], ["spec", "training"]
        other = {"spec": {**template["spec"], "volumes": [{"name": "v", "emptyDir": {}}]}}
        for edit in ([*policy, "suspend", True], [*policy, "activeDeadlineSeconds", 9], [*policy, "ttlSecondsAfterFinished", 9],
                     [*policy, "cleanPodPolicy", "All"], [*policy, "backoffLimit", 0], [*policy, "restartWindowSeconds", 3600],
                     [*policy, "schedulingPolicy", "minAvailable", 4],
                     [*worker, "replicas", 2], [*worker, "replicas", 5], ["metadata", "labels", {"a": "b"}],
                     ["spec", {"runPolicy": {"suspend": True, "schedulingPolicy": {"queue": "r"}}, "replicaSpecs": {"worker": {"template": other}}}]):
            self.kubectl(*self.edit("x", *edit))
        for field, edit in (("replicas", [*worker, "replicas", 6]), ("replicas", [*worker, "replicas", 1]), ("maxReplicas", [*worker, "maxReplicas", 6]),
                            ("maxReplicas", [*worker, "maxReplicas", None]), ("restartPolicy", [*worker, "restartPolicy", "Always"]),
                            ("restartScope", ["spec", "replicaSpecs", "worker", {"restartPolicy": "Always", "restartScope": "Job"}]),
                            ("replicas", ["spec", "replicaSpecs", "chief", "replicas", 0]), ("replicaSpecs", ["spec", "replicaSpecs", "chief", None]),
                            ("replicaSpecs", [*worker, "template", other]), ("replicaSpecs", [*worker, "template", None]),
                            ("runPolicy.managedBy", [*policy, "managedBy", "a/b"]),
                            ("runPolicy.schedulingPolicy.queue", [*policy, "schedulingPolicy", "queue", "r"]),
                            ("runPolicy.schedulingPolicy.priorityClass", [*policy, "schedulingPolicy", "priorityClass", "p"]),
                            ("spec.strategy", ["spec", "strategy", {"type": "AllReduce"}]), ("spec.checkpoint", ["spec", "checkpoint", "everySteps", 20]),
                            ("spec.checkpoint", ["spec", "checkpoint", None]), ("spec.training.model", [*training, "model", "hidden", [64]]),
                            ("spec.training.data", [*training, "data", "train", "inputs", ["a.csv", "b.csv"]]),
                            ("spec.training.steps", [*training, "steps", 20]),
                            ("spec.training.optimizer", [*training, "optimizer", "learningRate", 0.2])):
            with self.subTest(edit=edit):
                said = self.refused(*self.edit("x", *edit))
                self.assertIn("Forbidden", said)
                self.assertIn(field, said)
                self.assertRegex(said, "make a new job|not suspended|minReplicas and maxReplicas")

    def test_an_unknown_field_is_refused(self):
        self.assertIn('unknown field "spec.runPolicy.suspnd"', self.refused("apply", "-f", "-", text=json.dumps(job_of("x", runPolicy={"suspnd": True}))))


if __name__ == "__main__":
    unittest_report.main("cluster_crd_test")
