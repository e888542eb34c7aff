"""The dashboard of a cluster: a controller's, for people with a bearer token, and `paceline dashboard` with a kubeconfig. What people see and may
do there is what the API server says, no less and no more. The controller has the rights of the chart's roles, and no others."""

import base64
import contextlib
import http.client
import json
import os
import pathlib
import re
import ssl
import subprocess
import tempfile
import unittest
from urllib.parse import urlsplit

import unittest_report
import yaml
from chart_case import template
from cluster_case import ClusterCase, needs_cluster
from command_case import CommandCase
from event_stream import events_of
from job_case import job
from machine import processes

CONTROLLER = pathlib.Path(os.environ["PACELINE_BINARY_DIR"]) / "bin/paceline-controller"
HOME, WAIT_SECONDS = "paceline-system", 60
ROLES = {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ServiceAccount"}
CONFIG = {"apiVersion": "config.paceline.dev/v1alpha1", "kind": "ControllerConfiguration", "health": {"address": "127.0.0.1:0"},
          "dashboard": {"address": "127.0.0.1:0", "tls": {"enabled": True}}, "coordinator": {"listen": "127.0.0.1:0"},
          "leaderElection": {"enabled": False}}


class Viewer:
    """Somebody with these headers at a dashboard; `tls`: what he knows the server by, if it speaks TLS."""

    def __init__(self, host, tls=None, **headers):
        self.host, self.tls, self.headers = host, tls, headers

    @contextlib.contextmanager
    def answer(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.host, timeout=WAIT_SECONDS)
        if self.tls:
            connection = http.client.HTTPSConnection(self.host, timeout=WAIT_SECONDS, context=self.tls)
        with contextlib.closing(connection):
            connection.request(method, path, body=None if body is None else json.dumps(body), headers=self.headers)
            yield connection.getresponse()

    def ask(self, method, path, body=None):
        """The status, and the JSON or text."""
        with self.answer(method, f"/api/v1{path}", body) as response:
            text = response.read().decode()
            return response.status, json.loads(text) if "json" in response.getheader("Content-Type", "") else text

    def jobs(self):
        status, listed = self.ask("GET", "/jobs")
        assert status == 200, listed
        return [f"{row['namespace']}/{row['name']}" for row in listed["jobs"]]

    def stream(self, query):
        """The events of a stream, until it ends: (name, data)."""
        with self.answer("GET", f"/api/v1/stream?{query}") as response:
            yield from events_of(response)


class DashboardCase(CommandCase, ClusterCase):
    node_count = 1
    host = tls = log = None   # of the program's one controller without a history

    def setUp(self):
        super().setUp()
        if DashboardCase.host is None:
            self.define_jobs()
            self.give_rights()
            DashboardCase.host, DashboardCase.log, _ = self.start_controller(CONFIG, unittest.addModuleCleanup)
            DashboardCase.tls = ssl.create_default_context(cadata=self.find_authority())
        self.other = f"{self.namespace[:60]}-b"
        self.kubectl("create", "namespace", self.other)
        self.addCleanup(self.kubectl, "delete", "namespace", self.other, "--wait=false")
        # Another controller's, which is not there: they stay as the test leaves them.
        digits = job("digits", runPolicy={"suspend": True, "managedBy": "example.org/other"})
        digits["spec"]["replicaSpecs"]["worker"] |= {"minReplicas": 1, "maxReplicas": 2, "restartPolicy": "OnFailure"}
        for ns in (self.namespace, self.other):
            self.kubectl("apply", f"--namespace={ns}", "-f", "-", text=json.dumps(digits))

    def give_rights(self):
        """Those that the chart gives, and nothing else."""
        self.kubectl("create", "namespace", HOME)
        rendered = template("--set", "config.dashboard.address=0.0.0.0:8090").stdout
        objects = [each for each in yaml.safe_load_all(rendered) if each and each["kind"] in ROLES]
        self.kubectl("apply", f"--namespace={HOME}", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def start_controller(self, settings, cleanup):
        """A process of this machine with those rights: where its dashboard is, its log, and the process."""
        folder = tempfile.TemporaryDirectory(prefix="paceline-dashboard-")
        cleanup(folder.cleanup)
        config, log = pathlib.Path(folder.name) / "controller.yaml", pathlib.Path(folder.name) / "log"
        config.write_text(json.dumps(settings))
        token = self.kubectl("create", "token", "paceline", f"--namespace={HOME}", "--duration=1h").strip()
        with log.open("w") as out:
            process = subprocess.Popen([CONTROLLER, "--config", config, "--kubeconfig", self.kubeconfig(token, pathlib.Path(folder.name))],
                                       stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        cleanup(process.wait)
        cleanup(process.terminate)
        found = processes.wait_until("the dashboard", WAIT_SECONDS, lambda: re.search(r"the dashboard is on port (\d+)", log.read_text()))
        return f"127.0.0.1:{found[1]}", log, process

    def find_authority(self):
        """In PEM."""
        found = processes.wait_until("the authority", WAIT_SECONDS, lambda: self.get(
            "secrets", "--all-namespaces", "--field-selector=metadata.name=paceline-controller-authority")["items"])
        return base64.b64decode(found[0]["data"]["tls.crt"]).decode()

    def at_controller(self, **headers):
        return Viewer(self.host, self.tls, **headers)

    def kubeconfig(self, token, folder):
        config = json.loads(self.kubectl("config", "view", "--raw", "--flatten", "--minify", "-o", "json"))
        config["users"] = [{"name": "user", "user": {"token": token}}]
        config["contexts"][0]["context"]["user"] = "user"
        path = folder / "kubeconfig.json"
        path.write_text(json.dumps(config))
        return path

    def token(self, name, role=None):
        """Of a ServiceAccount that has this role in the test's namespace, and nothing elsewhere."""
        self.kubectl("create", "serviceaccount", name)
        if role:
            self.kubectl("create", "rolebinding", name, f"--clusterrole={role}", f"--serviceaccount={self.namespace}:{name}")
            processes.wait_until("the role to be put together", WAIT_SECONDS,
                                 lambda: self.run_kubectl("auth", "can-i", "list", "trainingjobs.paceline.dev", f"--as={self.user(name)}").returncode == 0)
        return self.kubectl("create", "token", name, "--duration=1h").strip()

    def user(self, name):
        return f"system:serviceaccount:{self.namespace}:{name}"

    def viewer(self, name, role=None):
        return self.at_controller(Authorization=f"Bearer {self.token(name, role)}")

    def own(self, name="digits"):
        return f"/jobs/{self.namespace}/{name}"

    def wait_until_known(self, viewer, jobs):
        processes.wait_until("the jobs", WAIT_SECONDS, lambda: set(jobs) <= set(viewer.jobs()))


@needs_cluster
class DashboardTest(DashboardCase):
    def actions_told(self, name="digits"):
        """By events of the job."""
        events = self.get("events", "--field-selector", f"involvedObject.name={name},reason=UserAction")["items"]
        return sorted(event["message"] for event in events)

    def audited(self):
        """(user, action, job, what came of it) of each line."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [(line["user"], line["action"], line["job"], line["result"]) for line in lines if line.get("reason") == "Audit"]

    def test_without_a_token_there_is_nothing_but_the_page(self):
        for headers in ({}, {"Authorization": "Bearer nonsense"}, {"Authorization": "Basic YTpi"}, {"Cookie": "paceline_session=x"}):
            viewer = self.at_controller(**headers)
            for path in ("/jobs", "/session", "/stream?jobs=1", self.own(), f"{self.own()}/yaml", "/nothing"):
                self.assertEqual(viewer.ask("GET", path)[0], 401, (headers, path))
            self.assertEqual(viewer.ask("POST", f"{self.own()}/resume")[0], 401)
            self.assertEqual(viewer.ask("DELETE", self.own())[0], 401)
        self.assertEqual(self.at_controller().ask("POST", "/session", {"token": "nonsense"})[0], 401)
        with self.at_controller().answer("GET", "/") as response:
            self.assertEqual(response.status, 200)

    def test_a_tenant_sees_the_one_namespace_that_is_hers(self):
        ada = self.viewer("ada", "view")
        self.wait_until_known(ada, [f"{self.namespace}/digits"])
        self.assertEqual(ada.jobs(), [f"{self.namespace}/digits"])
        status, session = ada.ask("GET", "/session")
        self.assertEqual((status, session["place"], session["user"], session["namespaces"]), (200, "Cluster", self.user("ada"), [self.namespace]))
        self.assertEqual(self.at_controller().ask("POST", "/session", {"token": ada.headers["Authorization"].split()[1]})[0], 200)
        name, told = next(ada.stream("jobs=1"))
        self.assertEqual((name, [row["namespace"] for row in told["rows"]]), ("jobs", [self.namespace]))
        for path in (f"/jobs/{self.other}/digits", f"/jobs/{self.other}/none", f"/jobs/{self.other}/digits/yaml", f"/stream?job={self.other}/digits"):
            self.assertEqual(ada.ask("GET", path)[0], 403, path)
        for end in ("", "/yaml", "/series", "/heatmap", "/timeline", "/events", "/logs", "/next"):
            self.assertEqual(ada.ask("GET", f"{self.own()}{end}")[0], 200, end)
        self.assertEqual(ada.ask("GET", self.own("none"))[0], 404)
        nobody = self.viewer("nobody")
        self.assertEqual(nobody.jobs(), [])
        self.assertEqual(nobody.ask("GET", self.own())[0], 403)

    def test_actions_need_the_right_on_that_job(self):
        viewer, editor = self.viewer("viewer", "view"), self.viewer("editor", "edit")
        self.wait_until_known(editor, [f"{self.namespace}/digits"])
        actions = (("POST", "resume", None), ("POST", "suspend", None), ("POST", "scale", {"replicas": 1}), ("DELETE", "delete", None))
        before = self.get("tj", "digits")["spec"]
        for method, action, body in actions:
            path = self.own() if method == "DELETE" else f"{self.own()}/{action}"
            self.assertEqual(viewer.ask(method, path, body)[0], 403, action)
            self.assertEqual(editor.ask(method, path.replace(self.namespace, self.other), body)[0], 403, action)
        self.assertEqual(self.get("tj", "digits")["spec"], before)

        self.assertEqual(editor.ask("POST", f"{self.own()}/scale", {"replicas": 2})[0], 202)
        self.assertEqual(editor.ask("POST", f"{self.own()}/resume")[0], 202)
        self.assertFalse(self.get("tj", "digits")["spec"]["runPolicy"]["suspend"])
        processes.wait_until("that to be known", WAIT_SECONDS, lambda: not editor.ask("GET", self.own())[1]["row"]["suspended"])
        self.assertEqual(editor.ask("POST", f"{self.own()}/suspend")[0], 202)
        self.assertTrue(self.get("tj", "digits")["spec"]["runPolicy"]["suspend"])
        self.assertEqual(self.actions_told(), [f"{self.user('editor')} asked by the dashboard to {each}"
                                               for each in ("resume it", "scale it from 1 to 2 workers", "suspend it")])
        self.assertEqual(editor.ask("DELETE", self.own())[0], 202)
        self.kubectl("wait", "tj/digits", "--for=delete", "--timeout=60s")
        processes.wait_until("the list without it", WAIT_SECONDS, lambda: editor.jobs() == [])

        mine, others = f"{self.namespace}/digits", f"{self.other}/digits"
        wanted = [(self.user("viewer"), action, mine, "forbidden") for _, action, _ in actions]
        wanted += [(self.user("editor"), action, others, "forbidden") for _, action, _ in actions]
        wanted += [(self.user("editor"), action, mine, "done") for action in ("scale", "resume", "suspend", "delete")]
        processes.wait_until("the audit", WAIT_SECONDS, lambda: set(wanted) <= set(self.audited()))

    def test_requests_are_annotations_of_those_who_may_update(self):
        viewer, editor, asked = self.viewer("viewer", "view"), self.viewer("editor", "edit"), self.own("asked")
        self.apply(job("asked", restart="OnFailure"))
        self.wait_until_known(editor, [f"{self.namespace}/{name}" for name in ("asked", "digits")])
        for action, body in (("checkpoint", None), ("replace", {"member": "worker-0"})):
            self.assertEqual(viewer.ask("POST", f"{asked}/{action}", body)[0], 403, action)
            self.assertEqual(editor.ask("POST", f"{self.own()}/{action}", body)[0], 409, action)   # another controller's
            self.assertEqual(editor.ask("POST", f"{asked}/{action}", body)[0], 409, action)   # it has no pods: there is no image
        self.kubectl("patch", "tj/asked", "--subresource=status", "--type=merge", "-p", json.dumps({"status": {"phase": "Running"}}))
        processes.wait_until("that to be known", WAIT_SECONDS, lambda: editor.ask("GET", asked)[1]["row"]["phase"] == "Running")
        self.assertEqual(editor.ask("POST", f"{asked}/checkpoint")[0], 202)
        self.assertEqual(editor.ask("POST", f"{asked}/replace", {"member": "worker-0"})[0], 202)
        self.assertEqual(editor.ask("POST", f"{asked}/replace", {"member": "worker-7"})[0], 409)
        annotations = self.get("tj", "asked")["metadata"]["annotations"]
        self.assertTrue(annotations["paceline.dev/checkpoint"])
        self.assertTrue(annotations["paceline.dev/replace"].startswith("worker-0@"))
        self.assertEqual(self.actions_told("asked"), [f"{self.user('editor')} asked by the dashboard to {each}"
                                                      for each in ("replace worker-0", "save a checkpoint")])

    def test_actions_that_a_viewer_may_not_take_are_not_offered(self):
        viewer, editor = self.viewer("viewer", "view"), self.viewer("editor", "edit")
        self.wait_until_known(editor, [f"{self.namespace}/digits"])

        def offered(who):
            actions = who.ask("GET", self.own())[1]["actions"]
            return sorted(action for action, item in actions.items() if item["allowed"])

        self.assertEqual(offered(viewer), [])
        self.assertEqual(offered(editor), ["delete", "resume", "scale"])
        name, told = next(viewer.stream(f"job={self.namespace}/digits"))
        self.assertEqual((name, [item["allowed"] for item in told["actions"].values() if item["allowed"]]), ("job", []))
        self.assertEqual(offered(self.own_dashboard(viewer.headers["Authorization"].split()[1])[0]), [])
        self.assertEqual(offered(self.own_dashboard(editor.headers["Authorization"].split()[1])[0]), ["delete", "resume", "scale"])

    def test_a_pod_that_does_not_start_says_why_and_what_helps(self):
        token = self.token("ada", "view")
        hungry = {"name": "trainer", "image": "example.org/none", "resources": {"limits": {"nvidia.com/gpu": "64"}}}
        self.apply(job("hungry", template={"spec": {"containers": [hungry]}}))
        for viewer in (self.at_controller(Authorization=f"Bearer {token}"), self.own_dashboard(token)[0]):
            told = processes.wait_until("the reason", WAIT_SECONDS, lambda at=viewer: (
                found := at.ask("GET", self.own("hungry"))[1]).get("row", {}).get("reason") == "Unschedulable" and found)
            self.assertIn("Insufficient nvidia.com/gpu", told["row"]["warning"])
            self.assertEqual([hint.split(":")[0] for hint in told["hints"]], ["Unschedulable"])

    def test_rights_that_are_taken_away_end_what_they_gave(self):
        ada = self.viewer("ada", "view")
        self.wait_until_known(ada, [f"{self.namespace}/digits"])
        stream = ada.stream(f"job={self.namespace}/digits")
        self.assertEqual(next(stream)[0], "job")
        self.kubectl("delete", "rolebinding", "ada")
        for name, _ in stream:   # it ends
            self.assertIn(name, ("job", "series", "ping"))
        self.assertEqual(ada.ask("GET", self.own())[0], 403)
        self.assertEqual(ada.jobs(), [])

    def test_port_speaks_tls_by_the_authority_alone(self):
        with self.assertRaises(ssl.SSLCertVerificationError):
            Viewer(self.host, ssl.create_default_context()).ask("GET", "/session")
        with self.assertRaises(http.client.HTTPException):
            Viewer(self.host).ask("GET", "/session")

    # ---- paceline dashboard

    def own_dashboard(self, token=None):
        """With this token, or as whoever the kubeconfig says: somebody with a client certificate."""
        process = self.start("dashboard", "--no-browser", *(["--kubeconfig", str(self.kubeconfig(token, self.folder))] if token else []))
        parts = urlsplit(process.stdout.readline().strip())
        viewer = Viewer(parts.netloc)
        with viewer.answer("POST", "/api/v1/session", {"token": parts.fragment.removeprefix("token=")}) as response:
            self.assertEqual(response.status, 200)
            session = json.loads(response.read())
            viewer.headers = {"Cookie": response.getheader("Set-Cookie").split(";")[0], "X-Paceline-CSRF": session["csrf"]}
        return viewer, session

    def test_the_command_has_its_users_rights(self):
        viewer, session = self.own_dashboard(self.token("viewer", "view"))
        self.assertEqual((session["place"], session["user"], session["namespaces"]), ("Cluster", self.user("viewer"), [self.namespace]))
        self.wait_until_known(viewer, [f"{self.namespace}/digits"])
        self.assertEqual(viewer.jobs(), [f"{self.namespace}/digits"])
        for end in ("", "/yaml", "/series", "/heatmap", "/timeline", "/events", "/logs", "/next"):
            self.assertEqual(viewer.ask("GET", f"{self.own()}{end}")[0], 200, end)
        self.assertEqual(viewer.ask("POST", f"{self.own()}/resume")[0], 403)
        self.assertEqual(viewer.ask("POST", f"{self.own()}/scale", {"replicas": 2})[0], 403)
        self.assertEqual(viewer.ask("DELETE", self.own())[0], 403)
        editor, _ = self.own_dashboard(self.token("editor", "edit"))
        self.wait_until_known(editor, [f"{self.namespace}/digits"])
        self.assertEqual(editor.ask("POST", f"{self.own()}/resume")[0], 202)
        self.assertFalse(self.get("tj", "digits")["spec"]["runPolicy"]["suspend"])
        self.assertEqual(self.actions_told(), [])   # edit writes no events
        self.kubectl("create", "role", "noter", "--verb=create", "--resource=events.events.k8s.io")
        self.kubectl("create", "rolebinding", "noter", "--role=noter", f"--serviceaccount={self.namespace}:editor")
        processes.wait_until("the right", WAIT_SECONDS, lambda: self.run_kubectl(
            "auth", "can-i", "create", "events.events.k8s.io", f"--as={self.user('editor')}").returncode == 0)
        self.assertEqual(editor.ask("POST", f"{self.own()}/suspend")[0], 202)
        self.assertTrue(self.get("tj", "digits")["spec"]["runPolicy"]["suspend"])
        self.assertEqual(self.actions_told(), [f"{self.user('editor')} asked by the dashboard to suspend it"])
        self.assertEqual(editor.ask("DELETE", self.own())[0], 202)
        self.kubectl("wait", "tj/digits", "--for=delete", "--timeout=60s")
        self.refused(4, "you may not list the jobs", "dashboard", "--no-browser", "--kubeconfig", self.kubeconfig(self.token("nobody"), self.folder))

    def test_the_command_knows_users_by_their_certificates(self):
        config = json.loads(self.kubectl("config", "view", "--raw", "--minify", "-o", "json"))
        self.assertIn("client-certificate", " ".join(config["users"][0]["user"]))
        admin, session = self.own_dashboard()
        self.assertEqual(session["user"], json.loads(self.kubectl("auth", "whoami", "-o", "json"))["status"]["userInfo"]["username"])
        self.wait_until_known(admin, [f"{self.namespace}/digits"])
        self.assertEqual(admin.ask("POST", f"{self.own()}/resume")[0], 202)
        self.assertEqual(self.actions_told(), [f"{session['user']} asked by the dashboard to resume it"])


class Replica:
    """A controller with a history at this path, while it runs."""

    def __init__(self, test, path):
        config = dict(CONFIG, dashboard={"address": "127.0.0.1:0", "history": {"path": str(path)}})
        self.host, self.log, self.process = test.start_controller(config, test.addCleanup)
        port = processes.wait_until("its port", WAIT_SECONDS, lambda: re.search(r"health and metrics are on port (\d+)", self.log.read_text()))
        self.health = f"127.0.0.1:{port[1]}"

    def viewer(self, token):
        return Viewer(self.host, Authorization=f"Bearer {token}")

    def errors(self, reason):
        with Viewer(self.health).answer("GET", "/metrics") as response:
            return f'paceline_history_errors_total{{reason="{reason}"}}' in response.read().decode()

    def end(self):
        self.process.terminate()
        self.process.wait(WAIT_SECONDS)


@needs_cluster
class HistoryTest(DashboardCase):
    """What a controller's history keeps beyond its process and beyond a job, and that it costs nobody anything where it is broken."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="paceline-history-")
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "jobs.db"
        self.ada = self.token("ada", "view")

    def train(self, viewer, step):
        """The status says that the job has taken this step; the dashboard has seen it."""
        status = {"startTime": "2026-01-31T12:00:00Z", "phase": "Running", "progress": {"step": step, "totalSteps": 100, "loss": 1 / step}}
        self.kubectl("patch", "tj", "digits", "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
        processes.wait_until(f"step {step}", WAIT_SECONDS, lambda: self.steps(viewer)[-1:] == [step])

    def steps(self, viewer, name="digits"):
        status, series = viewer.ask("GET", f"{self.own(name)}/series")
        return series["step"] if status == 200 else []

    def past(self, viewer):
        status, listed = viewer.ask("GET", "/past")
        return [(row["namespace"], row["name"], row["phase"], row["uid"]) for row in listed["jobs"]] if status == 200 else status

    def test_series_and_deleted_jobs_outlive_the_controller(self):
        first = Replica(self, self.path)
        viewer = first.viewer(self.ada)
        for step in (10, 20):
            self.train(viewer, step)
        uid = self.get("tj", "digits")["metadata"]["uid"]
        first.end()

        second = Replica(self, self.path)
        viewer = second.viewer(self.ada)
        processes.wait_until("the steps from before", WAIT_SECONDS, lambda: self.steps(viewer) == [10, 20])
        self.train(viewer, 30)
        self.assertEqual(viewer.ask("GET", "/session")[1]["history"], {"kept": True})
        self.assertEqual(self.past(viewer), [])
        for ns in (self.namespace, self.other):
            self.kubectl("delete", f"--namespace={ns}", "tj", "digits")
        processes.wait_until("the deleted job", WAIT_SECONDS, lambda: self.past(viewer) == [(self.namespace, "digits", "Stopped", uid)])

        gone = f"digits@{uid}"
        for name in ("digits", gone):
            self.assertEqual(self.steps(viewer, name), [10, 20, 30])
            self.assertIn("deleted", viewer.ask("GET", self.own(name))[1]["row"])
        self.assertEqual(viewer.ask("GET", f"{self.own(gone)}/events")[1], {"events": []})
        self.assertEqual(viewer.ask("GET", f"{self.own(gone)}/logs")[1], {"logs": []})
        editor = second.viewer(self.token("editor", "edit"))
        self.assertEqual(editor.ask("POST", f"{self.own(gone)}/suspend")[0], 409)
        self.assertEqual(editor.ask("DELETE", self.own(gone))[0], 409)
        self.assertEqual(viewer.ask("GET", f"/jobs/{self.other}/digits")[0], 403)
        self.assertEqual(self.past(second.viewer(self.token("nobody"))), [])
        second.end()

        third = Replica(self, self.path)   # what the command line prints is of a controller that never saw the job
        processes.wait_until("the history", WAIT_SECONDS, lambda: self.past(third.viewer(self.ada)) == [(self.namespace, "digits", "Stopped", uid)])
        options = ("--dashboard", f"http://{third.host}", "--kubeconfig", self.kubeconfig(self.ada, self.folder))
        self.assertRegex(self.paceline("get", "--all", *options), r"(?m)^digits +Running, deleted ")
        listed = json.loads(self.paceline("get", "digits", "--all", "-o", "json", *options))
        self.assertEqual([item["metadata"]["uid"] for item in listed["items"]], [uid])
        self.assertIn("<svg", self.paceline("plot", "digits", "-o", "-", *options))
        self.refused(2, "--dashboard URL", "get", "--all", *options[2:])
        self.refused(3, "there is no job", "plot", "none", *options)
        authority = self.folder / "authority.pem"
        authority.write_text(self.find_authority())
        safe = ("--dashboard", f"https://{self.host}", *options[2:])
        self.refused(4, "no history is kept", "get", "--all", "--dashboard-ca", authority, *safe)
        self.refused(4, "can't ask the dashboard", "get", "--all", *safe)   # it trusts nobody whom it does not know
        self.refused(4, "can't ask the dashboard", "get", "--all", "--dashboard", "http://127.0.0.1:1", *options[2:])

    def test_one_replica_keeps_it_and_another_does_without(self):
        first = Replica(self, self.path)
        self.train(first.viewer(self.ada), 10)
        second = Replica(self, self.path)
        viewer = second.viewer(self.ada)
        processes.wait_until("its word", WAIT_SECONDS, lambda: second.errors("held"))
        self.assertFalse(viewer.ask("GET", "/session")[1]["history"]["kept"])
        self.assertEqual(self.past(viewer), 503)
        self.wait_until_known(viewer, [f"{self.namespace}/digits"])

    def test_a_damaged_file_costs_the_history_alone(self):
        self.path.write_bytes(b"no database" * 1000)
        viewer = Replica(self, self.path).viewer(self.ada)
        self.train(viewer, 10)
        processes.wait_until("a new one", WAIT_SECONDS, lambda: self.past(viewer) == [])
        self.assertTrue(self.path.with_name("jobs.db.damaged").exists())

    def test_a_full_disk_costs_the_history_alone(self):
        disk = self.path.parent / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest(f"no file system can be mounted here: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "--lazy", disk], check=True)
        with contextlib.suppress(OSError):
            (disk / "filled").write_bytes(b"x" * (64 << 10))
        replica = Replica(self, disk / "jobs.db")
        viewer = replica.viewer(self.ada)
        processes.wait_until("its word", WAIT_SECONDS, lambda: replica.errors("full") or replica.errors("failed"))
        self.train(viewer, 10)
        self.assertIn(f"{self.namespace}/digits", viewer.jobs())


if __name__ == "__main__":
    unittest_report.main("cluster_dashboard_test")
