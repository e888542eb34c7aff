"""The chart on a real cluster: installed, asked, upgraded under a running job, and uninstalled; and what its ServiceAccount may do."""

import base64
import json
import os
import pathlib
import shutil
import socket
import ssl
import tempfile

import unittest_report
from chart_case import CHART, documented_rights, run_helm
from cluster_case import ClusterCase, needs_cluster
from machine import cluster, processes

HOME, ANSWER_SECONDS = "paceline-system", 30
ACCOUNT = f"system:serviceaccount:{HOME}:paceline"
VALUES = ("image.repository=paceline/controller", "image.tag=dev", "image.pullPolicy=Never", "config.trainer.image=paceline/runtime:dev")
LEASE = ("coordination.k8s.io", "leases")


def members(name, **spec):
    """A job of two members that trains until it is stopped, and leaves a processor to everybody else."""
    replica = {"template": {"spec": {"containers": [{"name": "trainer", "resources": {"limits": {"cpu": "200m"}}}]}}}
    return {"apiVersion": "paceline.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name},
            "spec": {"replicaSpecs": {"chief": replica, "worker": {"replicas": 1, **replica}}, **spec,
                     "training": {"model": {"type": "mlp", "hidden": [128], "classes": 10}, "optimizer": {"learningRate": 0.01},
                                  "data": {"format": "csv", "train": {"inputs": "data/digits.csv.gz"}, "normalize": {"scale": 0.0625}},
                                  "globalBatchSize": 64, "steps": 1_000_000_000}}}


@needs_cluster
class ChartTest(ClusterCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cluster.load_product(cls.layout, os.environ["PACELINE_BINARY_DIR"])

    def setUp(self):
        super().setUp()
        if self.run_kubectl("get", "namespace", HOME).returncode != 0:
            self.kubectl("create", "namespace", HOME)
            self.kubectl("label", "namespace", HOME, "pod-security.kubernetes.io/enforce=restricted")
            self.helm("install", "paceline", self.earlier_chart(), "--wait", "--timeout=120s", *self.settings())

    def earlier_chart(self):
        """The chart, but for a definition that lacks something."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        chart = pathlib.Path(shutil.copytree(CHART, f"{folder.name}/paceline"))
        definition = chart / "files/trainingjobs.yaml"
        lines = [line for line in definition.read_text().splitlines(keepends=True) if "jsonPath: .status.progress.step" not in line]
        definition.write_text("".join(lines))
        return chart

    def columns(self):
        definition = self.get("customresourcedefinition", "trainingjobs.paceline.dev")
        return [column["name"] for column in definition["spec"]["versions"][0]["additionalPrinterColumns"]]

    def settings(self, *more):
        return [word for setting in (*VALUES, *more) for word in ("--set", setting)]

    def helm(self, *arguments, namespace=HOME):
        result = run_helm(*arguments, "--namespace", namespace, environment=dict(os.environ, **cluster.client_environment(self.layout)))
        pods = "" if result.returncode == 0 else self.run_kubectl("describe", "pods", "-n", namespace).stdout[-3000:]
        self.assertEqual(result.returncode, 0, f"helm {' '.join(map(str, arguments))}: {result.stderr}{result.stdout}{pods}")
        return result.stdout

    def rules(self, namespace, account=ACCOUNT):
        """What an account may do in a namespace, as the API server says: (group, resource, verb) -> names, empty for all."""
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": namespace}}
        answer = json.loads(self.kubectl("create", "-f", "-", "-o", "json", "--validate=false", f"--as={account}", text=json.dumps(review)))
        self.assertFalse(answer["status"]["incomplete"])
        return {(group, resource, verb): tuple(rule.get("resourceNames") or ()) for rule in answer["status"]["resourceRules"]
                for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]}

    def controller_pods(self):
        return self.get("pods", "-n", HOME, "-l", "app.kubernetes.io/component=controller")["items"]

    def leader(self):
        return self.get("lease", "paceline-controller", "-n", HOME)["spec"].get("holderIdentity", "").split("_")[0]

    def test_1_installed_under_the_strictest_standard_it_answers(self):
        pods = self.controller_pods()
        self.assertEqual(len(pods), 2)
        self.assertEqual({pod["spec"]["nodeName"] for pod in pods}, {"node-1", "node-2"})
        processes.wait_until("a leader", 60, lambda: self.leader() in [pod["metadata"]["name"] for pod in pods])
        self.assertIn("Phase:          Succeeded", self.helm("test", "paceline", "--timeout", "90s"))
        budget = self.get("poddisruptionbudget", "paceline", "-n", HOME)
        self.assertEqual(budget["status"]["disruptionsAllowed"], 1)

    def test_2_the_account_may_do_what_the_table_says_and_no_more(self):
        everybody = set(self.rules(self.namespace, "system:serviceaccount:default:nobody"))
        elsewhere, at_home = self.rules(self.namespace), self.rules(HOME)
        lease = {right for right in documented_rights() if right[:2] == LEASE}
        self.assertEqual(set(elsewhere) - everybody, documented_rights() - lease)
        self.assertEqual(set(at_home) - everybody, documented_rights())
        self.assertEqual({verb: names for (*what, verb), names in at_home.items() if tuple(what) == LEASE},
                         {"create": (), "get": ("paceline-controller",), "patch": ("paceline-controller",)})

    def test_3_people_may_do_with_jobs_what_they_may_do_with_pods(self):
        for role in ("view", "edit", "admin"):
            self.kubectl("create", "rolebinding", role, f"--clusterrole={role}", f"--user={role}er")

        def may(user, verb, part=""):
            return self.run_kubectl("auth", "can-i", verb, "trainingjobs.paceline.dev", f"--subresource={part}", f"--as={user}").returncode == 0
        processes.wait_until("the roles to be put together", 30, lambda: may("viewer", "list"))
        for user, writes in (("viewer", False), ("editer", True), ("adminer", True)):
            self.assertTrue(may(user, "watch"), user)
            self.assertEqual(may(user, "create"), writes, user)
            self.assertEqual(may(user, "patch", "scale"), writes, user)
            self.assertFalse(may(user, "patch", "status"), user)
        self.assertFalse(may("stranger", "list"))

    def test_4_an_upgrade_replaces_the_controller_and_leaves_a_running_job_alone(self):
        self.apply(members("steady"))
        self.addCleanup(self.kubectl, "delete", "trainingjob", "steady", "--wait=false")
        self.kubectl("wait", "trainingjob/steady", "--for=condition=Running", "--timeout=80s")
        processes.wait_until("progress", 60, lambda: self.step() > 0)
        self.assertNotIn("Step", self.columns())
        before = self.uids("steady"), [pod["metadata"]["uid"] for pod in self.controller_pods()]
        self.helm("upgrade", "paceline", CHART, "--wait", "--timeout=150s",
                  *self.settings("config.workers=9", "config.health.tls.enabled=true", "config.dashboard.address=0.0.0.0:8090"))
        reached = self.step()
        self.assertIn("Step", self.columns())
        # helm waits for the new ones to be ready, not for the old ones to be gone.
        processes.wait_until("the old ones to be gone", 60, lambda: not {pod["metadata"]["uid"] for pod in self.controller_pods()} & set(before[1]))
        pods = self.controller_pods()
        processes.wait_until("a leader of the new ones", 60, lambda: self.leader() in [pod["metadata"]["name"] for pod in pods])
        processes.wait_until("progress that the new leader reports", 90, lambda: self.step() > reached)
        self.assertEqual(self.uids("steady"), before[0])
        environment = self.get("pod", "steady-worker-0-0")["spec"]["containers"][0]["env"]
        authority = self.get("secret", "paceline-authority", "--namespace=paceline-system")["data"]["tls.crt"]
        self.assertIn({"name": "PACELINE_AUTHORITY", "value": base64.b64decode(authority).decode()}, environment)
        self.assertEqual(self.get("trainingjob", "steady")["status"].get("restarts", {}).get("total", 0), 0)
        self.assertIn("Phase:          Succeeded", self.helm("test", "paceline", "--timeout", "90s"))
        for pod in pods:
            self.check_tls(pod["status"]["podIP"], base64.b64decode(authority).decode())
        for port, path in (("http", "readyz"), ("dashboard", "")):   # as people reach it by way of the API server
            self.kubectl("get", "--raw", f"/api/v1/namespaces/{HOME}/services/https:paceline:{port}/proxy/{path}")

    def check_tls(self, address, authority):
        """Both ports of a controller show a certificate of its authority, for members' name and for the Service's."""
        for port, path in ((8080, "/metrics"), (8090, "/")):
            for name in ("paceline-coordinator", f"paceline.{HOME}.svc"):
                with socket.create_connection((address, port), timeout=ANSWER_SECONDS) as plain, \
                        ssl.create_default_context(cadata=authority).wrap_socket(plain, server_hostname=name) as tls:
                    tls.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
                    self.assertEqual(tls.recv(12), b"HTTP/1.1 200", (port, name))

    def test_5_uninstalled_it_leaves_the_jobs(self):
        self.apply(members("kept", runPolicy={"suspend": True}))
        self.helm("uninstall", "paceline", "--wait", "--timeout=90s")
        self.assertEqual(self.get("trainingjob", "kept")["spec"]["runPolicy"], {"suspend": True})
        for kind in ("clusterrole", "clusterrolebinding"):
            self.assertNotEqual(self.run_kubectl("get", kind, "paceline").returncode, 0, kind)
        self.helm("install", "paceline", CHART, "--wait", "--timeout=120s", *self.settings())
        self.kubectl("wait", "trainingjob/kept", "--for=condition=Suspended", "--timeout=80s")
        self.assertEqual(self.uids("kept"), {})

    def test_6_for_one_namespace_it_needs_nothing_else(self):
        self.helm("install", "own-paceline", CHART, "--wait", "--timeout=120s", namespace=self.namespace,
                  *self.settings(f"config.namespace={self.namespace}", "crds.install=false", "rbac.userRoles=false", "replicas=1"))
        account = f"system:serviceaccount:{self.namespace}:own-paceline"
        everybody = set(self.rules("default", "system:serviceaccount:default:nobody"))
        self.assertEqual(set(self.rules("default", account)) - everybody, set())
        self.assertEqual(set(self.rules(self.namespace, account)) - everybody, documented_rights() - {("", "nodes", "get")})
        self.helm("uninstall", "own-paceline", "--wait", namespace=self.namespace)

    def step(self):
        return self.get("trainingjob", "steady").get("status", {}).get("progress", {}).get("step", 0)

    def uids(self, job):
        pods = self.get("pods", "-l", f"paceline.dev/job-name={job}")["items"]
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}


if __name__ == "__main__":
    unittest_report.main("cluster_chart_test")
