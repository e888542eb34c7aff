"""The chart without a cluster: what helm renders for several values, what it refuses, and that nothing that is said twice drifts."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import unittest_report
import yaml
from chart_case import CHART, IMAGE, ROOT, Objects, documented_rights, rights, run_helm, template
from machine import image, parts

REASON = "" if parts.program("helm").exists() else "helm is not built here: scripts/setup --cluster"
CRD = ROOT / "crds/trainingjobs.yaml"


def values_of(text):
    return yaml.safe_load(text)


@unittest.skipIf(REASON, REASON)
class TemplatesTest(unittest.TestCase):
    def render(self, *arguments, **keywords):
        result = template(*arguments, **keywords)
        self.assertEqual(result.returncode, 0, result.stderr)
        return Objects(result.stdout)

    def assert_refused(self, words, *arguments, **keywords):
        result = template(*arguments, **keywords)
        self.assertNotEqual(result.returncode, 0, arguments)
        self.assertRegex(result.stderr, words)

    def test_lint(self):
        result = run_helm("lint", "--strict", CHART, "--set", f"image.repository={IMAGE}")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_default_installation_has_these_objects(self):
        found = sorted((value["kind"], value["metadata"]["name"]) for value in self.render())
        self.assertEqual(found, [
            ("ClusterRole", "paceline"), ("ClusterRole", "paceline-trainingjobs-edit"), ("ClusterRole", "paceline-trainingjobs-view"),
            ("ClusterRoleBinding", "paceline"), ("ConfigMap", "paceline"), ("CustomResourceDefinition", "trainingjobs.paceline.dev"),
            ("Deployment", "paceline"), ("Pod", "paceline-ready"), ("PodDisruptionBudget", "paceline"), ("Role", "paceline-lease"),
            ("RoleBinding", "paceline-lease"), ("Service", "paceline"), ("ServiceAccount", "paceline")])

    def test_pods_have_no_rights_on_their_node(self):
        objects = self.render()
        for spec in (objects.one("Deployment")["spec"]["template"]["spec"], objects.one("Pod")["spec"]):
            self.assertEqual({key: spec["securityContext"][key] for key in ("runAsNonRoot", "seccompProfile")},
                             {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}})
            self.assertEqual(spec["securityContext"]["runAsUser"], image.NON_ROOT)
            self.assertFalse({"hostNetwork", "hostPID", "hostIPC"} & set(spec))
            for container in spec["containers"]:
                self.assertEqual(container["securityContext"], {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                                                "capabilities": {"drop": ["ALL"]}})
                self.assertIn("memory", container["resources"]["limits"])
        chosen = self.render("--set", "runAsUser=null")
        for spec in (chosen.one("Deployment")["spec"]["template"]["spec"], chosen.one("Pod")["spec"]):
            self.assertEqual(spec["securityContext"], {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}})
        self.assertFalse(objects.one("Pod")["spec"]["automountServiceAccountToken"])
        self.assertFalse(objects.one("ServiceAccount")["automountServiceAccountToken"])

    def test_two_replicas_are_apart_and_replaced_one_by_one(self):
        objects = self.render()
        deployment = objects.one("Deployment")["spec"]
        self.assertEqual(deployment["replicas"], 2)
        self.assertEqual(deployment["strategy"]["rollingUpdate"], {"maxSurge": 1, "maxUnavailable": 0})
        labels = deployment["template"]["metadata"]["labels"]
        apart = deployment["template"]["spec"]["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]
        selectors = [deployment["selector"], apart["podAffinityTerm"]["labelSelector"],
                     deployment["template"]["spec"]["topologySpreadConstraints"][0]["labelSelector"],
                     objects.one("PodDisruptionBudget")["spec"]["selector"], {"matchLabels": objects.one("Service")["spec"]["selector"]}]
        for selector in selectors:
            self.assertEqual(selector, {"matchLabels": labels})
        self.assertNotEqual(objects.one("Pod")["metadata"]["labels"], labels)   # the Service must not lead to the test's pod
        self.assertGreater(deployment["template"]["spec"]["terminationGracePeriodSeconds"], 10)   # kDrainTimeout

    def test_ports_follow_the_addresses(self):
        objects = self.render("--set", "config.health.address=[::]:9090,config.coordinator.listen=0.0.0.0:7171")
        self.assertEqual([(p["name"], p["containerPort"]) for p in objects.container()["ports"]], [("http", 9090), ("coordinator", 7171)])
        self.assertEqual([(p["name"], p["port"], p["targetPort"]) for p in objects.one("Service")["spec"]["ports"]],
                         [("coordinator", 7171, "coordinator"), ("http", 9090, "http")])
        self.assertEqual(objects.config()["coordinator"], {"address": "paceline.paceline-system.svc:7171", "listen": "0.0.0.0:7171",
                                                           "memberLogLevel": "info",
                                                           "tls": {"enabled": True, "secret": "paceline-authority"}})
        self.assertEqual(objects.one("Pod")["spec"]["containers"][0]["args"], ["--ask-ready", "http://paceline.paceline-system.svc:9090"])

    def test_pods_are_replaced_when_the_configuration_changes(self):
        def checksum(*arguments):
            return self.render(*arguments).one("Deployment")["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
        self.assertEqual(checksum(), checksum("--set", "service.annotations.a=b"))
        self.assertNotEqual(checksum(), checksum("--set", "config.workers=9"))

    def test_the_image(self):
        self.assertEqual(self.render().container()["image"], f"{IMAGE}:{image.version()}")
        self.assertEqual(self.render("--set", "image.tag=dev,image.pullPolicy=Never", image="localhost:5000/c").container()["image"],
                         "localhost:5000/c:dev")
        digest = "sha256:" + "0" * 64
        self.assertEqual(self.render("--set", f"image.tag=dev,image.digest={digest}").container()["image"], f"{IMAGE}@{digest}")
        self.assert_refused("image.repository: say where the controller's image lies", image="")

    def test_one_namespace_needs_nothing_of_the_whole_cluster(self):
        objects = self.render("--set", "config.namespace=team-a,crds.install=false,rbac.userRoles=false")
        self.assertEqual({value["kind"] for value in objects if not value["metadata"].get("namespace")}, set())
        role, binding = objects.one("Role", "paceline"), objects.one("RoleBinding", "paceline")
        self.assertEqual((role["metadata"]["namespace"], binding["metadata"]["namespace"]), ("team-a", "team-a"))
        self.assertEqual(binding["roleRef"], {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "paceline"})
        self.assertEqual(binding["subjects"], [{"kind": "ServiceAccount", "name": "paceline", "namespace": "paceline-system"}])
        self.assertEqual(rights(role) | {("", "nodes", "get")}, rights(self.render().one("ClusterRole", "paceline")))
        self.assertEqual(objects.config()["namespace"], "team-a")
        self.assertEqual(objects.one("Role", "paceline-lease")["metadata"]["namespace"], "paceline-system")

    def test_members_and_controller_talk_tls(self):
        def mounts(objects):
            return {mount["name"]: mount["mountPath"] for mount in objects.container()["volumeMounts"]}
        own = self.render()
        self.assertEqual(mounts(own), {"config": "/etc/paceline", "tmp": "/tmp"})
        self.assertEqual([role["metadata"]["name"] for role in own.of_kind("Role")], ["paceline-lease"])
        elsewhere = self.render("--set", "config.namespace=team-a,config.coordinator.tls.secret=mine").one("Role", "paceline-authority")
        self.assertEqual(elsewhere["metadata"]["namespace"], "paceline-system")
        self.assertEqual([(rule["verbs"], rule.get("resourceNames")) for rule in elsewhere["rules"]], [(["create"], None), (["get"], ["mine"])])
        theirs = self.render("--set", "tlsSecret=certificate")
        self.assertEqual(mounts(theirs), {"config": "/etc/paceline", "tls": "/etc/paceline-tls"})
        self.assertIn({"name": "tls", "secret": {"secretName": "certificate"}}, theirs.one("Deployment")["spec"]["template"]["spec"]["volumes"])
        self.assertEqual(theirs.config()["coordinator"]["tls"], {"enabled": True, "certificateFile": "/etc/paceline-tls/tls.crt",
                                                                 "keyFile": "/etc/paceline-tls/tls.key", "authorityFile": "/etc/paceline-tls/ca.crt"})
        without = self.render("--set", "config.coordinator.tls.enabled=false")
        self.assertEqual(mounts(without), {"config": "/etc/paceline"})
        self.assertEqual(without.config()["coordinator"]["tls"], {"enabled": False})
        self.assertEqual(without.config()["health"]["tls"], {"enabled": False})

    def test_people_and_prometheus_talk_tls(self):
        def schemes(objects):
            container, ports = objects.container(), {port["name"]: port["appProtocol"] for port in objects.one("Service")["spec"]["ports"]}
            probes = {container[probe]["httpGet"]["scheme"] for probe in ("livenessProbe", "readinessProbe")}
            return ports.get("http"), ports.get("dashboard"), probes, objects.one("Pod")["spec"]["containers"][0]["args"][1].split(":")[0]

        def monitor(*arguments):
            objects = self.render("--set", "serviceMonitor.enabled=true,config.health.tls.enabled=true", *arguments)
            endpoint, = objects.one("ServiceMonitor")["spec"]["endpoints"]
            self.assertEqual(endpoint["scheme"], "https")
            return endpoint["tlsConfig"]
        dashboard = "config.dashboard.address=0.0.0.0:8090"
        self.assertEqual(schemes(self.render("--set", dashboard)), ("http", "https", {"HTTP"}, "http"))
        self.assertEqual(schemes(self.render("--set", f"{dashboard},config.dashboard.tls.enabled=false")), ("http", "http", {"HTTP"}, "http"))
        self.assertEqual(schemes(self.render("--set", "config.health.tls.enabled=true")), ("https", None, {"HTTPS"}, "https"))
        self.assertEqual(monitor(), {"serverName": "paceline-coordinator", "ca": {"secret": {"name": "paceline-authority", "key": "tls.crt"}}})
        self.assertEqual(monitor("--set", "tlsSecret=mine"), {"serverName": "paceline-coordinator", "ca": {"secret": {"name": "mine", "key": "ca.crt"}}})
        self.assertEqual(monitor("--set", "serviceMonitor.tlsConfig.insecureSkipVerify=true"), {"insecureSkipVerify": True})
        for port in ("config.health.tls.enabled=true", dashboard):   # each needs the authority
            objects = self.render("--set", f"config.coordinator.tls.enabled=false,{port}")
            self.assertIn("tmp", [mount["name"] for mount in objects.container()["volumeMounts"]], port)
            self.assertEqual(objects.config()["coordinator"]["tls"], {"enabled": False, "secret": "paceline-authority"}, port)
        theirs = self.render("--set", f"{dashboard},dashboardTlsSecret=page,config.coordinator.tls.enabled=false")
        self.assertEqual([mount["name"] for mount in theirs.container()["volumeMounts"]], ["config", "dashboard-tls"])
        self.assertEqual(theirs.config()["dashboard"]["tls"], {"enabled": True, "certificateFile": "/etc/paceline-dashboard-tls/tls.crt",
                                                               "keyFile": "/etc/paceline-dashboard-tls/tls.key"})

    def test_without_an_election_there_is_one_replica_and_no_lease(self):
        self.assert_refused("set replicas=1, or leave the election on", "--set", "config.leaderElection.enabled=false")
        objects = self.render("--set", "config.leaderElection.enabled=false,replicas=1")
        self.assertEqual(objects.one("Deployment")["spec"]["strategy"], {"type": "Recreate"})
        self.assertEqual(objects.of_kind("Role") + objects.of_kind("PodDisruptionBudget"), [])
        self.assertFalse(objects.config()["leaderElection"]["enabled"])

    def test_the_lease_may_be_touched_by_its_name_only(self):
        objects = self.render("--set", "config.leaderElection.name=mine,config.leaderElection.namespace=locks")
        role = objects.one("Role", "paceline-lease")
        self.assertEqual(role["metadata"]["namespace"], "locks")
        self.assertEqual([(rule["verbs"], rule.get("resourceNames")) for rule in role["rules"]], [(["create"], None), (["get", "patch"], ["mine"])])
        self.assertEqual({key: objects.config()["leaderElection"][key] for key in ("name", "namespace")}, {"name": "mine", "namespace": "locks"})

    def test_another_release_has_other_names(self):
        names = {release: {(v["kind"], v["metadata"]["name"]) for v in self.render("--set", "crds.install=false", release=release)}
                 for release in ("paceline", "second")}
        self.assertEqual(names["paceline"] & names["second"], set())
        self.assertEqual(self.render(release="second").config()["leaderElection"]["name"], "second-paceline-controller")

    def test_options(self):
        self.assertEqual(self.render().of_kind("ServiceMonitor") + self.render().of_kind("NetworkPolicy"), [])
        objects = self.render("--set", "serviceMonitor.enabled=true,networkPolicy.enabled=true",
                              "--set-json", 'networkPolicy.metricsFrom=[{"namespaceSelector":{}}]')
        monitor, policy, service = objects.one("ServiceMonitor"), objects.one("NetworkPolicy"), objects.one("Service")
        self.assertLessEqual(monitor["spec"]["selector"]["matchLabels"].items(), service["metadata"]["labels"].items())
        self.assertIn(monitor["spec"]["endpoints"][0]["port"], [port["name"] for port in service["spec"]["ports"]])
        self.assertEqual([rule["ports"] for rule in policy["spec"]["ingress"]], [[{"port": "coordinator"}], [{"port": "http"}]])
        test = policy["spec"]["ingress"][1]["from"][0]["podSelector"]["matchLabels"]
        self.assertLessEqual(test.items(), objects.one("Pod")["metadata"]["labels"].items())
        self.assertNotIn("dashboard", [port["name"] for port in service["spec"]["ports"]])
        shown = self.render("--set", "config.dashboard.address=0.0.0.0:8090,networkPolicy.enabled=true",
                            "--set-json", 'networkPolicy.dashboardFrom=[{"namespaceSelector":{}}]')
        self.assertEqual(shown.config()["dashboard"], {"address": "0.0.0.0:8090", "tls": {"enabled": True}})
        self.assertIn({"name": "dashboard", "containerPort": 8090}, shown.container()["ports"])
        self.assertIn(("dashboard", 8090), [(port["name"], port["port"]) for port in shown.one("Service")["spec"]["ports"]])
        self.assertEqual(shown.one("NetworkPolicy")["spec"]["ingress"][-1], {"ports": [{"port": "dashboard"}], "from": [{"namespaceSelector": {}}]})
        bare = self.render("--set", "rbac.create=false,rbac.userRoles=false,serviceAccount.create=false,serviceAccount.name=ours")
        self.assertFalse({"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "ServiceAccount"} & {v["kind"] for v in bare})
        self.assertEqual(bare.one("Deployment")["spec"]["template"]["spec"]["serviceAccountName"], "ours")
        self.assert_refused("serviceAccount.name: say which", "--set", "serviceAccount.create=false")

    def test_traces_go_where_the_values_say(self):
        def variables(*arguments):
            return {each["name"]: each.get("value", each.get("valueFrom")) for each in self.render(*arguments).container()["env"]
                    if each["name"].startswith("OTEL")}
        self.assertEqual(variables(), {})
        self.assertEqual(variables("--set", "tracing.endpoint=http://collector.otel:4318,tracing.headersSecret=receiver"), {
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector.otel:4318", "OTEL_SERVICE_NAME": "paceline",
            "OTEL_EXPORTER_OTLP_HEADERS": {"secretKeyRef": {"name": "receiver", "key": "headers"}}})

    def test_the_history_has_a_volume(self):
        def volume(objects):
            return next((each for each in objects.one("Deployment")["spec"]["template"]["spec"]["volumes"] if each["name"] == "history"), None)
        shown = ("--set", "config.dashboard.address=0.0.0.0:8090,history.enabled=true")
        self.assertIsNone(volume(self.render()))
        self.assertNotIn("history", self.render("--set", "config.dashboard.address=0.0.0.0:8090").config()["dashboard"])
        self.assert_refused("set config.dashboard.address", "--set", "history.enabled=true,replicas=1")
        for values in ("history.size=1Gi", "history.volume.persistentVolumeClaim.claimName=ours"):
            self.assert_refused("a ReadWriteOnce claim is for one pod", *shown, "--set", values)
        for size, most in (("1Gi", 930), ("1G", 866), ("1.5Gi", 1396), ("282Mi", 256), ("2T", 65536)):
            claim = (*shown, "--set", f"replicas=1,history.size={size}", "--set")
            self.render(*claim, f"config.dashboard.history.megabytes={most}")
            if most < 65536:
                self.assert_refused(f"a claim of {size} has no room", *claim, f"config.dashboard.history.megabytes={most + 1}")
        one = self.render(*shown, "--set", "replicas=1,history.size=3Gi,history.storageClassName=fast,config.dashboard.history.days=7")
        self.assertEqual(one.config()["dashboard"]["history"], {"path": "/history/jobs.db", "megabytes": 256, "days": 7})
        self.assertIn({"name": "history", "mountPath": "/history"}, one.container()["volumeMounts"])
        self.assertEqual(volume(one), {"name": "history", "persistentVolumeClaim": {"claimName": "paceline-history"}})
        claim = one.one("PersistentVolumeClaim")
        self.assertEqual(claim["spec"], {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "resources": {"requests": {"storage": "3Gi"}}})
        self.assertEqual(claim["metadata"]["annotations"], {"helm.sh/resource-policy": "keep"})
        deployment = one.one("Deployment")["spec"]
        self.assertEqual(deployment["strategy"], {"type": "Recreate"})   # the new pod may be on another node
        self.assertEqual(deployment["template"]["spec"]["securityContext"]["fsGroup"], image.NON_ROOT)
        for values in ("history.accessMode=ReadWriteMany", "history.volume.persistentVolumeClaim.claimName=ours,history.accessMode=ReadWriteMany"):
            several = self.render(*shown, "--set", values)
            self.assertEqual(several.one("Deployment")["spec"]["strategy"]["type"], "RollingUpdate", values)
        self.assertEqual((volume(several)["persistentVolumeClaim"], several.of_kind("PersistentVolumeClaim")), ({"claimName": "ours"}, []))
        passing = self.render(*shown, "--set-json", 'history.volume={"emptyDir":{"sizeLimit":"1Gi"}}')
        self.assertEqual(volume(passing), {"name": "history", "emptyDir": {"sizeLimit": "1Gi"}})

    def test_alerts_and_dashboards(self):
        self.assertEqual(self.render().of_kind("PrometheusRule"), [])
        objects = self.render("--set", "prometheusRule.enabled=true,prometheusRule.labels.release=mine,dashboards.enabled=true",
                              "--set", "prometheusRule.runbookUrl=https://docs.example.com/metrics.html,dashboards.namespace=grafana")
        rule = objects.one("PrometheusRule")
        self.assertEqual(rule["metadata"]["labels"]["release"], "mine")
        ours = values_of((CHART / "files/alerts.yaml").read_text())
        for group in ours["groups"]:
            for alert in group["rules"]:
                alert["annotations"]["runbook_url"] = f"https://docs.example.com/metrics.html#{alert['alert'].lower()}"
        self.assertEqual(rule["spec"], ours)
        bare = self.render("--set", "prometheusRule.enabled=true").one("PrometheusRule")
        self.assertEqual(bare["spec"], values_of((CHART / "files/alerts.yaml").read_text()))
        dashboards = objects.one("ConfigMap", "paceline-dashboards")
        self.assertEqual((dashboards["metadata"]["namespace"], dashboards["metadata"]["labels"]["grafana_dashboard"]), ("grafana", "1"))
        files = {path.name: path.read_text() for path in (CHART / "dashboards").glob("*.json")}
        self.assertGreater(len(files), 0)
        self.assertEqual(dashboards["data"], files)

    def test_wrong_values_are_refused_all_at_once(self):
        wrong = {"replica=3": "'': additional properties 'replica' not allowed",
                 "replicas=0": "'/replicas': minimum", "runAsUser=0": "'/runAsUser': minimum",
                 "config.worker=3": "'/config': additional properties 'worker' not allowed", "config.workers=257": "'/config/workers': maximum",
                 "config.log.level=loud": "'/config/log/level': value must be one of", "config.log.format=1": "'/config/log/format'",
                 "config.health.address=:8080": "'/config/health/address': '[^']*' does not match",
                 "config.dashboard.address=8090": "'/config/dashboard/address'",
                 "config.dashboard.history.megabytes=1": "'/config/dashboard/history/megabytes': minimum",
                 "config.dashboard.history.path=/x": "'/config/dashboard/history/path'", "history.accessMode=ReadOnlyMany": "'/history/accessMode'",
                 "history.size=much": "'/history/size'",
                 "config.coordinator.address=host": "'/config/coordinator/address': '[^']*' does not match",
                 "config.namespace=A": "'/config/namespace': '[^']*' does not match",
                 "config.leaderElection.enabled=maybe": "'/config/leaderElection/enabled': got string, want boolean",
                 "config.leaderElection.retryPeriodSeconds=0": "'/config/leaderElection/retryPeriodSeconds': minimum",
                 "config.trainer.image=a b": "'/config/trainer/image': '[^']*' does not match",
                 "image.repository=x:tag": "'/image/repository': '[^']*' does not match", "image.pullPolicy=Sometimes": "'/image/pullPolicy'",
                 "resources.limit.memory=1Gi": "'/resources': additional properties 'limit' not allowed",
                 "tracing.endpoint=collector:4318": "'/tracing/endpoint'",
                 "prometheusRule.runbookUrl=docs": "'/prometheusRule/runbookUrl'", "config.metrics.jobs=-1": "'/config/metrics/jobs': minimum",
                 "serviceMonitor.interval=soon": "'/serviceMonitor/interval'", "terminationGracePeriodSeconds=5": "'/terminationGracePeriodSeconds'"}
        result = template(*(word for setting in wrong for word in ("--set", setting)))
        self.assertNotEqual(result.returncode, 0)
        for setting, words in wrong.items():
            with self.subTest(setting):
                self.assertRegex(result.stderr, words)
        self.assertEqual(len(re.findall("^ *- at (?!.*validation failed)", result.stderr, re.MULTILINE)), len(wrong), result.stderr)

    def test_the_definition_is_the_repositorys_and_stays(self):
        ours, installed = yaml.safe_load(CRD.read_text()), self.render().one("CustomResourceDefinition")
        self.assertEqual(installed["spec"], ours["spec"])
        self.assertEqual(installed["metadata"]["name"], ours["metadata"]["name"])
        self.assertEqual(installed["metadata"]["annotations"]["helm.sh/resource-policy"], "keep")
        self.assertEqual((CHART / "files/trainingjobs.yaml").resolve(), CRD)
        self.assertEqual(self.render("--set", "crds.install=false").of_kind("CustomResourceDefinition"), [])

    def test_a_package_holds_the_definition_itself(self):
        with tempfile.TemporaryDirectory() as folder:
            made = run_helm("package", CHART, "--destination", folder)
            self.assertEqual(made.returncode, 0, made.stderr)
            (package,) = pathlib.Path(folder).glob("*.tgz")
            listed = subprocess.run(["tar", "-xOzf", package, "paceline/files/trainingjobs.yaml"], capture_output=True, text=True, check=True)
            self.assertEqual(listed.stdout, CRD.read_text())

    def test_the_controller_reads_its_configuration(self):
        program = pathlib.Path(os.environ["PACELINE_BINARY_DIR"]) / "bin/paceline-controller"
        with tempfile.TemporaryDirectory() as folder:
            for arguments in ((), ("--set", "config.dashboard.address=0.0.0.0:8090,history.enabled=true,replicas=1"),
                              ("--set", "config.namespace=team-a,config.trainer.image=r/paceline/runtime:1,config.log.format=text")):
                path = pathlib.Path(folder) / "controller.yaml"
                path.write_text(self.render(*arguments).one("ConfigMap")["data"]["controller.yaml"])
                result = subprocess.run([program, "--config", path, "--kubeconfig", "/nowhere"], capture_output=True, text=True, timeout=60)
                self.assertEqual((result.returncode, "/nowhere" in result.stderr), (1, True), result.stderr)   # 2 is a bad configuration


class RightsTest(unittest.TestCase):
    RESOURCES = {"kPods": ("", "pods"), "kServices": ("", "services"), "kNodes": ("", "nodes"),
                 "kSecrets": ("", "secrets"), "kEvents": ("events.k8s.io", "events"),
                 "kPodEvents": ("", "events"), "kLeases": ("coordination.k8s.io", "leases"),
                 "kTrainingJobs": ("paceline.dev", "trainingjobs"), "kTokenReviews": ("authentication.k8s.io", "tokenreviews"),
                 "kAccessReviews": ("authorization.k8s.io", "subjectaccessreviews")}
    DASHBOARD = ("--set", "config.dashboard.address=0.0.0.0:8090")
    VERBS = {"get": "get", "create": "create", "remove": "delete", "apply": "patch", "merge_patch": "patch"}
    # With blockOwnerDeletion in what it creates, it must be allowed to update the owner's finalizers where the cluster checks that.
    NOT_CALLED = {("paceline.dev", "trainingjobs/finalizers", "update")}

    def called(self):
        """What the controller's sources call, by their text."""
        found = set()
        sources = [path for folder in ("cluster/kube", "dashboard", "lease") for path in (ROOT / "controller" / folder).glob("*.cc")]
        for text in map(pathlib.Path.read_text, sources):
            for verb, resource, rest in re.findall(r"api_\.(get|create|remove|apply|merge_patch)\(\s*(?:kube::)?(k\w+)(?=([^;]*);)", text):
                group, plural = self.RESOURCES[resource]
                found.add((group, plural + ("/status" if '"status"' in rest else ""), self.VERBS[verb]))
            for scope, rest in re.findall(r"\{(k[A-Z][a-z]\w*), ([^;]*?)\}", text):   # what is listed, and by informers watched
                if scope in self.RESOURCES:
                    found |= {(*self.RESOURCES[scope], verb) for verb in (("list", "watch") if re.match(r"options_?\.ns", rest) else ("list",))}
            if "api_.log(" in text:
                found.add(("", "pods/log", "get"))
        return found

    def test_every_resource_of_the_code_is_known_here(self):
        text = (ROOT / "controller/cluster/kube/resources.h").read_text()
        declared = dict(re.findall(r'constexpr Resource (k\w+)\{("[^"]*", "[^"]*")', text))
        self.assertGreater(len(declared), 5)
        self.assertLessEqual(set(declared), set(self.RESOURCES))
        for name, words in declared.items():
            version, plural = re.findall('"([^"]*)"', words)
            self.assertEqual(self.RESOURCES[name], (version.split("/")[0] if "/" in version else "", plural))

    def test_the_table_says_what_the_code_calls(self):
        called = self.called()
        self.assertGreater(len(called), 15)   # else the sources are not read as they are written
        self.assertEqual(documented_rights(dashboard=True), called | self.NOT_CALLED)

    @unittest.skipIf(REASON, REASON)
    def test_the_roles_say_what_the_table_says(self):
        roles = (("ClusterRole", "paceline"), ("Role", "paceline-lease"))
        for arguments, dashboard in (((), False), (self.DASHBOARD, True)):
            objects = Objects(template(*arguments).stdout)
            named = (*roles, ("ClusterRole", "paceline-dashboard")) if dashboard else roles
            self.assertEqual(set().union(*(rights(objects.one(*each)) for each in named)), documented_rights(dashboard))

    @unittest.skipIf(REASON, REASON)
    def test_people_get_no_more_than_trainingjobs(self):
        objects = Objects(template().stdout)
        view, edit = (objects.one("ClusterRole", f"paceline-trainingjobs-{role}") for role in ("view", "edit"))
        self.assertEqual({verb for _, _, verb in rights(view)}, {"get", "list", "watch"})
        self.assertEqual({(group, resource) for role in (view, edit) for group, resource, _ in rights(role)},
                         {("paceline.dev", name) for name in ("trainingjobs", "trainingjobs/status", "trainingjobs/scale")})
        self.assertNotIn("trainingjobs/status", {resource for _, resource, _ in rights(edit)})
        self.assertEqual([sorted(key.rsplit("-", 1)[1] for key in role["metadata"]["labels"] if "aggregate" in key) for role in (view, edit)],
                         [["admin", "edit", "view"], ["admin", "edit"]])


class TwiceSaidTest(unittest.TestCase):
    def test_versions(self):
        chart = values_of((CHART / "Chart.yaml").read_text())
        self.assertEqual((chart["version"], chart["appVersion"]), (image.version(), image.version()))

    def test_every_value_is_in_the_schema_and_every_field_of_the_schema_is_a_value(self):
        def schema_paths(schema, prefix=""):
            for name, part in schema["properties"].items():
                yield from schema_paths(part, f"{prefix}{name}.") if "properties" in part else [prefix + name]

        def value_paths(values, schema, prefix=""):
            for name, value in values.items():
                part = schema["properties"][name]
                yield from value_paths(value, part, f"{prefix}{name}.") if "properties" in part else [prefix + name]
        schema, values = json.loads((CHART / "values.schema.json").read_text()), values_of((CHART / "values.yaml").read_text())
        self.assertEqual(set(value_paths(values, schema)) - {"resources.requests", "resources.limits"},
                         set(schema_paths(schema)) - {"global", "resources.requests", "resources.limits", "resources.claims"})

    def test_config_has_the_fields_of_the_configuration_file(self):
        text = (ROOT / "docs/kubernetes.md").read_text().split("## Configuration", 1)[1]
        documented = set()
        for line in text.splitlines():
            if not line.startswith("| `"):
                continue
            names = re.findall(r"`([a-zA-Z.]+)`", line.split("|")[1])
            first = names[0].rsplit(".", 1)[0] if "." in names[0] else ""
            documented |= {first + name if name.startswith(".") else name for name in names}

        def paths(values, prefix=""):
            for name, value in values.items():
                yield from paths(value, f"{prefix}{name}.") if isinstance(value, dict) else [prefix + name]
        self.assertEqual(set(paths(values_of((CHART / "values.yaml").read_text())["config"])), documented)


if __name__ == "__main__":
    unittest_report.main("cluster_chart_files_test")
