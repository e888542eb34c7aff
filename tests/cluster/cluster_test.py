"""The cluster itself: pods run, find each other and answer; and nothing of it stays, however it ends."""

import os
import signal
import socket
import subprocess
import unittest

import unittest_report
from cluster_case import DOWN_SECONDS, SCRIPT, ClusterCase, bring_up, cluster_command, fetch, look_up, needs_cluster, pod, take_down
import remains
from machine import api, cluster, image, parts, processes, store


def service(name, port, headless=True):
    spec = {"selector": {"app": name}, "ports": [{"port": port, "name": "main"}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {**spec, "clusterIP": "None"} if headless else spec}


@needs_cluster
class PodsTest(ClusterCase):
    def test_two_nodes_are_ready(self):
        nodes = self.get("nodes")["items"]
        self.assertEqual([node["metadata"]["name"] for node in nodes], ["node-1", "node-2"])
        for node, planned in zip(nodes, self.layout.nodes):
            self.assertIn({"type": "InternalIP", "address": str(planned.address)}, node["status"]["addresses"])
            self.assertEqual(node["status"]["nodeInfo"]["kubeletVersion"], parts.KUBERNETES)
            ready = [c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready"]
            self.assertEqual(ready, ["True"])

    def test_pods_of_two_nodes_talk_by_name(self):
        serve = "mkdir /tmp/www; hostname >/tmp/www/name; exec httpd -f -p 8080 -h /tmp/www"
        ask = f"until answer=$({fetch('zero.server', 8080, '/name')}) && [ -n \"$answer\" ]; do sleep 0.2; done; echo $(hostname) heard $answer"
        self.apply(service("server", 8080), pod("server", "node-1", serve, hostname="zero", subdomain="server"),
                   pod("near", "node-1", ask), pod("far", "node-2", ask))
        for name in ("near", "far"):
            self.wait_for_phase(name, "Succeeded")
            self.assertEqual(self.kubectl("logs", name), f"{name} heard zero\n")
        server = self.get("pod", "server")["status"]["podIP"]
        seen = self.kubectl("exec", "server", "--", "getent", "ahostsv4", f"zero.server.{self.namespace}.svc.cluster.local")
        self.assertEqual(seen.split()[0], server)

    def test_a_service_address_works_on_both_nodes(self):
        self.apply(service("server", 8080, headless=False), pod("server", "node-1", "echo yes >/tmp/name; exec httpd -f -p 8080 -h /tmp"),
                   *(pod(f"from-{node}", node, f"until {fetch('server', 8080, '/name')} | grep yes; do sleep 0.2; done")
                     for node in ("node-1", "node-2")))
        for name in ("from-node-1", "from-node-2"):
            self.wait_for_phase(name, "Succeeded")
            self.assertEqual(self.kubectl("logs", name), "yes\n")

    def test_pods_reach_the_api_server_and_nothing_outside(self):
        script = f"until nc -w 5 {look_up('kubernetes.default')} 443 </dev/null; do sleep 0.2; done; echo inside; " \
                 "nc -w 5 192.0.2.77 80 </dev/null 2>&1; echo outside $?; getent ahostsv4 example.org; echo name $?"
        self.apply(pod("probe", script=script))
        self.wait_for_phase("probe", "Succeeded")
        log = self.kubectl("logs", "probe")
        for expected in ("inside", "No route to host", "outside 1", "name 2"):
            self.assertIn(expected, log)

    def test_containers_are_not_root_and_have_their_cpu_limit(self):
        busy = pod("busy", script="id -u; cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu.max 2>/dev/null; true")
        busy["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "250m", "memory": "64Mi"}}
        self.apply(busy)
        self.wait_for_phase("busy", "Succeeded")
        user, quota = self.kubectl("logs", "busy").split("\n")[:2]
        self.assertEqual((user, quota.split()[0]), (str(image.NON_ROOT), "25000"))

    def test_paceline_runs_from_its_image(self):
        self.assertIn("paceline/runtime:dev", cluster.load_product(self.layout, os.environ["PACELINE_BINARY_DIR"]))
        for node in ("node-1", "node-2"):
            worker = pod(f"worker-{node}", node, image="paceline/runtime:dev")
            worker["spec"]["containers"][0]["args"] = ["--version"]
            worker["spec"]["containers"][0]["securityContext"] = {"runAsNonRoot": True, "readOnlyRootFilesystem": True}
            self.apply(worker)
        for node in ("node-1", "node-2"):
            self.wait_for_phase(f"worker-{node}", "Succeeded")
            self.assertRegex(self.kubectl("logs", f"worker-{node}"), r"^paceline \d")

    def test_a_node_that_is_cut_off_comes_back(self):
        self.apply(pod("server", "node-2", "echo ready; exec httpd -f -p 8080"))
        self.wait_for_phase("server", "Running")
        server = (self.get("pod", "server")["status"]["podIP"], 8080)

        def answers():
            try:
                socket.create_connection(server, 2).close()
            except OSError:
                return False
            return True

        processes.wait_until("the server", 30, answers)
        self.addCleanup(cluster_command, "heal", "--name", self.layout.name, "node-2")
        routes = self.on_cluster("node", "node-2", "ip", "-4", "route", "show", "dev", "eth0")
        self.assertIn("10.96.0.0/16 via", routes)
        self.on_cluster("cut", "node-2")
        self.assertFalse(answers())
        self.on_cluster("heal", "node-2")
        processes.wait_until("the server again", 30, answers)
        self.assertEqual(self.on_cluster("node", "node-2", "ip", "-4", "route", "show", "dev", "eth0"), routes)

    def on_cluster(self, verb, *arguments):
        result = cluster_command(verb, "--name", self.layout.name, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_the_api_server_forgets_nothing_when_it_is_killed(self):
        self.kubectl("create", "configmap", "kept", "--from-literal=a=1")
        cluster.stop(self.layout, "kube-apiserver")
        self.assertNotEqual(self.run_kubectl("get", "configmap", "kept").returncode, 0)
        cluster.start(self.layout, "kube-apiserver")
        server = api.Api(self.layout)
        processes.wait_until("the API server again", 60, lambda: server.call("GET", "/readyz")[0] == 200)
        self.assertEqual(self.get("configmap", "kept")["data"], {"a": "1"})
        self.apply(pod("after", script="true"))
        self.wait_for_phase("after", "Succeeded")

    def test_a_second_cluster_beside_it(self):
        name = f"{self.layout.name}-b"
        other = bring_up(name)
        self.addCleanup(take_down, name)
        self.assertFalse(other.subnet.overlaps(self.layout.subnet))
        self.apply(pod("here", script="true"))
        self.wait_for_phase("here", "Succeeded")
        self.assertIn("node-2", self.kubectl("get", "nodes", layout=other))
        self.assertNotEqual(self.run_kubectl("get", f"namespace/{self.namespace}", layout=other).returncode, 0)
        take_down(name)
        self.assertEqual(len(self.get("nodes")["items"]), 2)
        self.assertEqual([part for part, pid in cluster.status(self.layout).items() if pid is None], [])


@needs_cluster
class EndTest(unittest.TestCase):
    """What a cluster leaves on the machine: nothing."""

    def setUp(self):
        self.name = f"end-{os.getpid()}"
        self.before = remains.snapshot(self.name)
        self.addCleanup(cluster_command, "down", "--name", self.name)

    def assert_nothing_left(self):
        self.assertEqual(remains.difference(self.before, remains.snapshot(self.name)), "")

    def begin(self, until, *arguments):
        """A `scripts/cluster up` that has said `until` and goes on."""
        process = subprocess.Popen([SCRIPT, "up", "--name", self.name, *map(str, arguments)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        heard = ""
        for line in process.stderr:
            heard += line
            if until in line:
                return process
        self.fail(f"scripts/cluster up ended before it said {until!r}:\n{heard}")

    def test_down_leaves_nothing(self):
        layout = bring_up(self.name)
        case = ClusterCase()
        case.layout, case.namespace = layout, "default"
        case.apply(pod("left", script="exec httpd -f -p 8080 -h /tmp"))
        case.wait_for_phase("left", "Running")
        during = remains.difference(self.before, remains.snapshot(self.name))
        for kind in ("processes: new", "mounts: new", "links: new", "routes: new", "cgroups: new", "clusters: new"):
            self.assertIn(kind, during)   # else the comparison sees nothing
        again = cluster_command("up", "--name", self.name)
        self.assertEqual(again.returncode, 1)
        self.assertIn("is up already", again.stderr)
        take_down(self.name)
        self.assert_nothing_left()
        (store.root() / f"{self.name}.lock").parent.mkdir(exist_ok=True)
        (store.root() / f"{self.name}.lock").touch()   # of one that was killed before it began
        self.assertIn("there is nothing", cluster_command("down", "--name", self.name).stderr)
        self.assert_nothing_left()

    def test_down_after_the_starter_was_killed(self):
        for moment in ("containerd started", "everything started"):
            with self.subTest(moment):
                starter = self.begin(moment)
                starter.kill()
                starter.wait()
                self.assertNotEqual(remains.difference(self.before, remains.snapshot(self.name)), "")
                take_down(self.name)
                self.assert_nothing_left()

    def test_up_clears_away_what_a_killed_one_left(self):
        starter = self.begin("containerd started")
        starter.kill()
        starter.wait()
        bring_up(self.name)
        take_down(self.name)
        self.assert_nothing_left()

    def test_ctrl_c_takes_everything_away(self):
        starter = self.begin("containerd started")
        starter.send_signal(signal.SIGINT)
        self.assertEqual(starter.wait(DOWN_SECONDS), 128 + signal.SIGINT)
        self.assert_nothing_left()

    def test_down_interrupts_an_up(self):
        starter = self.begin("containerd started")
        take_down(self.name)
        self.assertEqual(starter.wait(DOWN_SECONDS), 128 + signal.SIGTERM)
        self.assert_nothing_left()

    def test_a_failing_part_takes_the_rest_away_and_shows_its_log(self):
        starter = self.begin("containerd started")
        cluster.stop(store.load(self.name)[0], "etcd")
        said = starter.stderr.read()
        self.assertEqual(starter.wait(DOWN_SECONDS), 1)
        self.assertIn("etcd ended with status -9; the end of its log", said)
        self.assert_nothing_left()

    def test_it_goes_when_its_owner_does(self):
        owner = subprocess.Popen(["sleep", "600"])
        self.addCleanup(owner.wait)
        self.addCleanup(owner.kill)
        starter = self.begin("containerd started", "--while-pid", owner.pid)
        owner.kill()
        owner.wait()
        self.assertEqual(starter.wait(DOWN_SECONDS), 128 + signal.SIGTERM)
        processes.wait_until("the cluster to go", DOWN_SECONDS, lambda: not remains.difference(self.before, remains.snapshot(self.name)),
                             lambda: remains.difference(self.before, remains.snapshot(self.name)))


if __name__ == "__main__":
    unittest_report.main("cluster_test")
