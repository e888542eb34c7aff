"""The dashboard of this machine: its API beside a run, and as a command of its own."""

import contextlib
import http.client
import json
import signal
import unittest
from urllib.parse import urlsplit

from cli_support import ENDLESS, SLOW, CliCase, job, until
from event_stream import events_of


class Viewer:
    """A browser's part: a session opened by an address, and requests in it."""

    def __init__(self, address):
        parts = urlsplit(address)
        self.host, self.token = parts.netloc, parts.fragment.removeprefix("token=")
        self.cookie = self.csrf = ""

    def ask(self, method, path, body=None, **headers):
        """The status and the body, which is JSON mostly."""
        connection = http.client.HTTPConnection(self.host, timeout=60)
        with contextlib.closing(connection):
            names = {"Cookie": self.cookie, "X-Paceline-CSRF": self.csrf, **{name.replace("_", "-"): value for name, value in headers.items()}}
            connection.request(method, path, body=None if body is None else json.dumps(body), headers=names)
            response = connection.getresponse()
            text = response.read().decode()
            if cookie := response.getheader("Set-Cookie"):
                self.cookie = cookie.split(";")[0]
            return response.status, json.loads(text) if "json" in response.getheader("Content-Type", "") else text

    def open(self):
        status, session = self.ask("POST", "/api/v1/session", {"token": self.token})
        if status == 200:
            self.csrf = session["csrf"]
        return status

    def get(self, path):
        status, answer = self.ask("GET", path)
        assert status == 200, (path, status, answer)
        return answer

    def stream(self, path):
        """The events of a stream: (name, data)."""
        connection = http.client.HTTPConnection(self.host, timeout=60)
        with contextlib.closing(connection):
            connection.request("GET", f"{path}&csrf={self.csrf}", headers={"Cookie": self.cookie})
            yield from events_of(connection.getresponse())


JOB = "/api/v1/jobs/default/digits"


class DashboardTest(CliCase):
    def viewer_of(self, *arguments):
        process = self.start("dashboard", "--no-browser", *arguments)
        viewer = Viewer(process.stdout.readline().strip())
        self.assertEqual(viewer.open(), 200)
        return process, viewer

    def test_a_run_is_seen_and_stopped_beside_itself(self):
        process = self.start("run", self.write(job(steps=ENDLESS, extra="  checkpoint: {everySteps: 1000000}")), "--dashboard", "--output", "json")
        notes = (line["message"] for line in map(json.loads, process.stdout) if line["type"] == "note")
        address = next(note for note in notes if "http://" in note).split()[-1]
        viewer = Viewer(address)
        self.assertEqual(viewer.ask("GET", "/api/v1/jobs")[0], 401)
        self.assertEqual(viewer.open(), 200)
        self.assertEqual(Viewer(address).open(), 401)
        session = viewer.get("/api/v1/session")
        self.assertEqual(session["place"], "Local")
        self.assertNotIn("csrf", session)
        for path in ("/api/v1/session", "/api/v1/jobs", f"/api/v1/jobs?csrf={viewer.csrf}", "/api/v1/stream?jobs=1"):
            self.assertEqual(viewer.ask("GET", path, X_Paceline_CSRF="")[0], 401, path)
        until(lambda: viewer.ask("GET", JOB)[0] == 200, 20 * SLOW, "the run is there")
        series = until(lambda: (s := viewer.get(JOB + "/series")) and len(s["step"]) > 1 and s, 20 * SLOW, "steps are told")
        self.assertEqual({len(series[name]) for name in ("step", "loss", "seconds", "learningRate", "stepsPerSecond", "samplesPerSecond")},
                         {len(series["step"])})
        heat = until(lambda: (h := viewer.get(JOB + "/heatmap?columns=50")) and len(h["members"]) == 2 and h, 20 * SLOW, "members tell of steps")
        self.assertEqual([member["name"] for member in heat["members"]], ["chief-0", "worker-0"])
        self.assertEqual(len(heat["values"]["compute"][1]), len(heat["steps"]))
        self.assertLessEqual(len(heat["steps"]), 50)
        details = until(lambda: (d := viewer.get(JOB))["row"]["phase"] == "Running" and d, 20 * SLOW, "it runs")
        self.assertEqual(details["object"]["kind"], "TrainingJob")
        self.assertEqual(details["object"]["status"]["run"]["ownerPid"], process.pid)
        self.assertFalse(details["actions"]["delete"]["allowed"])
        self.assertIn("kind: TrainingJob", viewer.get(JOB + "/yaml"))
        self.assertTrue(viewer.get(JOB + "/logs")["logs"])
        self.assertEqual(viewer.ask("POST", JOB + "/suspend", X_Paceline_CSRF="wrong")[0], 401)
        self.assertEqual(viewer.ask("POST", JOB + "/suspend", Origin="http://evil.example")[0], 403)
        self.assertEqual(viewer.ask("POST", JOB + "/suspend")[0], 202)
        events = viewer.stream("/api/v1/stream?job=default/digits")
        next(data for name, data in events if name == "job" and data["row"]["phase"] == "Suspended")
        reasons = [event["reason"] for event in viewer.get(JOB + "/events")["events"]]
        self.assertIn("UserAction", reasons)
        self.assertEqual(viewer.ask("POST", JOB + "/resume")[0], 202)
        next(data for name, data in events if name == "job" and data["row"]["phase"] == "Running")
        process.send_signal(signal.SIGINT)
        next(data for name, data in events if name == "job" and data["row"]["phase"] == "Stopped")
        for _ in events:   # until the dashboard has ended with the run
            pass
        self.assertEqual(process.wait(30 * SLOW), 130)

    def test_runs_of_other_processes_are_watched_to_their_end(self):
        dashboard, viewer = self.viewer_of()
        self.assertEqual(viewer.get("/api/v1/jobs")["jobs"], [])
        events = viewer.stream("/api/v1/stream?jobs=1")
        self.assertEqual(next(events)[0], "jobs")
        run = self.start("run", self.write(job(members=2, steps=300)))
        rows = (row for name, data in events if name == "jobs" for row in data["rows"])
        next(row for row in rows if row["phase"] == "Succeeded")
        self.outcome(0, run, 60 * SLOW)
        described = json.loads(self.ends(0, "get", "digits", "-o", "json").stdout)["status"]["run"]
        # Its speed is the mean over the whole run once its owner has ended.
        ended = until(lambda: (row := viewer.get(JOB)["row"])["samplesPerSecond"] == described["samplesPerSecond"] and row, 20 * SLOW, "its end is seen")
        events.close()
        for field in ("step", "loss", "samplesPerSecond", "elapsedSeconds", "finished"):
            self.assertEqual(ended[field], described[field], field)
        self.assertEqual(ended["accuracy"], described["testAccuracy"])
        self.assertTrue(viewer.get(JOB + "/series")["evaluations"])
        kinds = {item["kind"] for item in viewer.get(JOB + "/timeline")["items"]}
        self.assertLessEqual({"Phase", "Evaluation"}, kinds)
        self.assertEqual(viewer.ask("POST", JOB + "/suspend")[0], 409)
        self.assertEqual(viewer.ask("DELETE", JOB)[0], 202)
        until(lambda: viewer.get("/api/v1/jobs")["jobs"] == [], 20 * SLOW, "it is gone")
        self.assertFalse((self.state / "runs/digits").exists())
        dashboard.send_signal(signal.SIGINT)
        self.outcome(0, dashboard, 20 * SLOW)

    def test_a_run_that_goes_on_is_deleted(self):
        dashboard, viewer = self.viewer_of()
        run, _ = self.start_endless()
        until(lambda: viewer.ask("GET", JOB)[0] == 200, 20 * SLOW, "the run is there")
        self.assertEqual(viewer.ask("DELETE", JOB + "@digits-2026-01-01T00:00:00.000Z")[0], 409, "one of before")
        self.assertEqual(viewer.ask("DELETE", f"{JOB}@{viewer.get(JOB)['row']['uid']}")[0], 202)
        self.assertEqual(run.wait(30 * SLOW), 130)
        until(lambda: viewer.get("/api/v1/jobs")["jobs"] == [], 20 * SLOW, "it is gone")

    def test_a_checkpoint_and_a_replacement_are_asked_for(self):
        """By the page and by the commands: a checkpoint that the job's spec asks for nowhere, and a successor for a member that is well."""
        _, viewer = self.viewer_of()
        text = job(members=3, steps=ENDLESS).replace("worker: {replicas: 2}", "worker: {replicas: 2, restartPolicy: OnFailure}")
        run = self.start("run", self.write(text))
        until(lambda: self.status("digits") and self.status("digits")["step"] > 20, 40 * SLOW, "it trains")

        self.assertIn("is written", self.ends(0, "checkpoint", "digits").stdout)
        checkpoints = self.state / "runs/digits/checkpoints"
        self.assertEqual(len(list(checkpoints.glob("step-*"))), 1)
        until(lambda: viewer.get(JOB)["actions"]["checkpoint"]["allowed"], 20 * SLOW, "the page offers it")
        self.assertEqual(viewer.ask("POST", JOB + "/checkpoint")[0], 202)
        until(lambda: len(list(checkpoints.glob("step-*"))) > 1, 20 * SLOW, "another one")
        until(lambda: viewer.get(JOB)["object"]["status"]["requests"]["checkpoint"]["outcome"] == "Done", 20 * SLOW, "the answer")

        self.assertEqual(viewer.ask("POST", JOB + "/replace", {"member": "chief-0"})[0], 409)   # its restartPolicy is Never
        self.assertEqual(viewer.ask("POST", JOB + "/replace", {"member": "worker-9"})[0], 409)
        self.assertEqual(viewer.ask("POST", JOB + "/replace", {})[0], 400)
        self.ends(3, "replace", "digits", "worker-9")
        before = {(each["role"], each["index"]): each["pid"] for each in self.status("digits")["members"]}
        self.assertEqual(viewer.ask("POST", JOB + "/replace", {"member": "worker-1"})[0], 202)

        def replaced():
            return [each["pod"] for each in self.status("digits")["status"].get("stragglerReplacements", []) if each["outcome"] == "Replaced"]

        until(lambda: replaced() == ["digits-worker-1-0"], 60 * SLOW, "it is replaced")
        self.assertIn("digits-worker-0-1", self.ends(0, "replace", "digits", "worker/0").stdout)
        until(lambda: replaced() == ["digits-worker-1-0", "digits-worker-0-0"], 60 * SLOW, "the other one is, too")
        state = self.status("digits")
        after = {(each["role"], each["index"]): each["pid"] for each in state["members"]}
        self.assertEqual([place for place in before if before[place] == after[place]], [("chief", 0)], "the chief goes on")
        self.assertEqual(state["status"]["restarts"].get("total", 0), 0)
        told = viewer.get(JOB + "/events")["events"]
        asked = [event["message"].split(" asked by the dashboard to ")[-1] for event in told if event["reason"] == "UserAction"]
        self.assertEqual(asked, ["save a checkpoint", "replace worker-1"])
        self.assertIn("MemberHandedOver", [event["reason"] for event in told])
        self.assertLessEqual({"Checkpoint", "Replacement"}, {item["kind"] for item in viewer.get(JOB + "/timeline")["items"]})

        self.stop(run)
        for command in (("checkpoint", "digits"), ("replace", "digits", "worker-1")):
            self.ends(4, *command)
        until(lambda: not viewer.get(JOB)["actions"]["checkpoint"]["allowed"], 20 * SLOW, "the page offers it no more")

    def test_requests_that_make_no_sense_are_refused(self):
        _, viewer = self.viewer_of()
        run, _ = self.start_endless()
        until(lambda: viewer.ask("GET", JOB)[0] == 200 and viewer.get(JOB)["row"]["phase"] == "Running", 20 * SLOW, "it runs")
        answers = [viewer.ask("POST", JOB + "/suspend")[0] for _ in range(2)]
        self.assertEqual(answers, [202, 409], "it is suspended already, whether the board knows it or not")
        for path in ("/series?points=0", "/series?points=5000", "/heatmap?columns=4000", "/heatmap?parts=sleep", "/logs/x?tail=1000000", "/eve%00nts"):
            self.assertEqual(viewer.ask("GET", JOB + path)[0], 400, path)
        connection = http.client.HTTPConnection(viewer.host, timeout=60)
        with contextlib.closing(connection):
            connection.request("POST", "/api/v1/session", body="x" * 70_000)
            response = connection.getresponse()
            self.assertEqual((response.status, response.getheader("X-Content-Type-Options")), (413, "nosniff"))
        self.assertEqual(viewer.ask("GET", "/api/v1/jobs", Host=f"[::1]:{viewer.host.rpartition(':')[2]}")[0], 421)
        self.stop(run)

    def test_bad_and_used_ports_are_errors(self):
        for port in ("x", "70000", "-1", "08"):
            self.ends(2, "dashboard", "--port", port)
        _, viewer = self.viewer_of()
        self.ends(4, "dashboard", "--no-browser", "--port", viewer.host.rpartition(":")[2])


if __name__ == "__main__":
    unittest.main()
