"""The parts of tests/cluster/machine that need no cluster: layouts, command lines, configuration files, images."""

import fcntl
import ipaddress
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import unittest
import unittest.mock

import remains
import run_tests
import unittest_report
from machine import arguments, certificates, image, layout, manifests, network, parts, processes, store

NETWORK = ipaddress.ip_network


def example(nodes=2, subnet="10.200.16.0/20", name="dev"):
    return layout.Layout(name, pathlib.Path("/clusters") / name, NETWORK(subnet), nodes)


class LayoutTest(unittest.TestCase):
    def test_the_first_free_subnet_is_chosen(self):
        for taken, expected in (([], "10.200.0.0/20"), (["10.200.0.0/20"], "10.200.16.0/20"), (["10.200.5.0/24"], "10.200.16.0/20"),
                                (["10.200.0.0/16"], "10.201.0.0/20"), (["10.200.16.0/20", "192.168.0.0/16"], "10.200.0.0/20")):
            with self.subTest(taken):
                self.assertEqual(str(layout.choose_subnet([NETWORK(n) for n in taken])), expected)

    def test_no_free_subnet_is_an_error(self):
        with self.assertRaisesRegex(layout.LayoutError, "no /20 is free in 10.200.0.0/13"):
            layout.choose_subnet([NETWORK("10.0.0.0/8")])

    def test_addresses(self):
        found = example()
        self.assertEqual(str(found.host_address), "10.200.16.1")
        self.assertEqual(str(found.loopback), "127.200.16.1")
        self.assertEqual([(n.name, str(n.address), str(n.pods)) for n in found.nodes],
                         [("node-1", "10.200.16.11", "10.200.17.0/24"), ("node-2", "10.200.16.12", "10.200.18.0/24")])

    def test_two_clusters_share_nothing(self):
        subnets = list(layout.POOL.subnets(new_prefix=layout.PREFIX))
        clusters = [example(layout.MAX_NODES, subnet, f"c{index}") for index, subnet in enumerate(subnets)]
        for of in (lambda c: [c.link], lambda c: [c.host_address], lambda c: [c.loopback], lambda c: [c.cgroup],
                   lambda c: [n.address for n in c.nodes], lambda c: [n.pods for n in c.nodes], lambda c: [n.network for n in c.nodes]):
            values = [value for cluster in clusters for value in of(cluster)]
            self.assertEqual(len(values), len(set(values)))
        self.assertTrue(all(len(cluster.link) <= 15 for cluster in clusters))
        self.assertTrue(all(node.pods.subnet_of(c.subnet) and not node.pods.overlaps(c.infrastructure) for c in clusters for node in c.nodes))

    def test_bad_ones_are_refused(self):
        for name in ("", "-a", "a-", "A", "a/b", "a.b", "x" * 31):
            with self.subTest(name), self.assertRaisesRegex(layout.LayoutError, "cluster name"):
                layout.check_name(name)
        for keywords in ({"nodes": 0}, {"nodes": 15}, {"subnet": "10.200.0.0/24"}, {"subnet": "192.168.0.0/20"}):
            with self.subTest(keywords), self.assertRaises(layout.LayoutError):
                example(**keywords)
        with self.assertRaisesRegex(layout.LayoutError, "no node 'node-3' in cluster dev; it has node-1, node-2"):
            example().node("node-3")

    def test_it_survives_its_file(self):
        found = example(3)
        self.assertEqual(layout.Layout.from_json(found.folder, json.loads(json.dumps(found.to_json()))), found)


class ArgumentsTest(unittest.TestCase):
    def test_every_part_has_its_own_name_and_a_program_that_is_built(self):
        found = arguments.parts(example(3))
        self.assertEqual(len(found), 5 + 3 * 3)
        self.assertEqual(len({part.name for part in found}), len(found))
        for part in found:
            self.assertIn(part.program, {*parts.PACKAGES, *arguments.DEBIAN_PROGRAMS})
            self.assertTrue(all(isinstance(word, str) for word in part.arguments))

    def test_command_lines_tell_all_parts_apart(self):
        lines = [(part.program, part.arguments) for nodes in (2, 3) for part in arguments.parts(example(nodes, name=f"c{nodes}"))]
        self.assertEqual(len(lines), len(set(lines)))   # by which a process is found again

    def test_nothing_listens_on_all_addresses_or_on_the_shared_loopback(self):
        text = " ".join(word for part in arguments.parts(example()) for word in part.arguments)
        for address in ("0.0.0.0", "127.0.0.1", "localhost"):
            self.assertNotIn(address, text)

    def test_unknown_part(self):
        with self.assertRaisesRegex(layout.LayoutError, "no part 'kubelet'; this cluster has etcd, kube-apiserver.*kubelet@node-1"):
            arguments.part(example(), "kubelet")

    def test_entering_a_node_keeps_the_command(self):
        node = example().node("node-2")
        command = arguments.enter(node, ["ip", "link"])
        self.assertEqual(command[-2:], ["ip", "link"])
        self.assertIn("--net=/clusters/dev/namespaces/node-2.network", command)


class ManifestsTest(unittest.TestCase):
    def test_json_files_are_json_and_every_node_has_its_own(self):
        files = manifests.files(example())
        for path, content in files.items():
            if path.suffix in (".json", ".conflist"):
                json.loads(content)
        self.assertEqual({path.parent.name for path in files if path.name == "kubelet.json"}, {"node-1", "node-2"})

    def test_pods_get_addresses_of_their_node(self):
        for node in example().nodes:
            plugins = json.loads(manifests.cni(example(), node))["plugins"]
            (pool,), = plugins[0]["ipam"]["ranges"]
            self.assertEqual(pool["subnet"], str(node.pods))
            self.assertIn(ipaddress.ip_address(pool["gateway"]), node.pods)

    def test_pods_live_in_the_clusters_cgroup(self):
        found = example()
        for node in found.nodes:
            self.assertEqual(json.loads(manifests.kubelet(found, node))["cgroupRoot"], f"/{found.cgroup}/{node.name}")

    def test_kubeconfig_is_inline(self):
        config = json.loads(manifests.kubeconfig(example(), "someone", "A", "B", "C"))
        self.assertEqual(config["users"][0]["user"], {"client-certificate-data": "Qg==", "client-key-data": "Qw=="})
        self.assertEqual(config["clusters"][0]["cluster"]["server"], "https://10.200.16.1:6443")

    def test_every_kubeconfig_of_a_command_line_has_a_certificate(self):
        found = example()
        users = {*certificates.USERS, *(node.name for node in found.nodes)}
        self.assertLessEqual(users, set(certificates.wanted(found)))
        for part in arguments.parts(found):
            for word in part.arguments:
                if word.startswith("--kubeconfig="):
                    self.assertIn(word.rsplit("/", 1)[1], users)

    def test_servers_are_certified_for_the_address_they_listen_on(self):
        found = example()
        wanted = certificates.wanted(found)
        self.assertIn(f"IP:{found.host_address}", wanted["apiserver"][1])
        self.assertIn("IP:10.96.0.1", wanted["apiserver"][1])
        self.assertIn("IP:10.200.16.12", wanted["node-2"][1])


class NetworkTest(unittest.TestCase):
    def test_nodes_have_a_way_to_each_other_and_to_nothing_else(self):
        found = example(3)
        for node in found.nodes:
            lines = network.node_commands(found, node)
            self.assertIn("route add unreachable default", lines)
            ways = {line.split()[2] for line in lines if line.startswith("route add 10.200.")}
            self.assertEqual(ways, {str(other.pods) for other in found.nodes if other != node})

    def test_every_cable_has_a_port(self):
        found = example(3)
        plugged = {line.split()[2] for line in network.switch_commands(found) if "master" in line}
        self.assertEqual(plugged, {"host", "node-1", "node-2", "node-3"})
        self.assertEqual(len(network.cables(found)), 4)


class ImageTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_archive(self):
        layer = image.Layer()
        layer.text("/etc/greeting", "hello")
        layer.link("/etc/same", "greeting")
        layer.user()
        out = image.write(self.folder / "a.tar", "x/y:1", layer, image.simple(["/bin/z"], 7, "/work"))
        with tarfile.open(out) as archive:
            (manifest,) = json.load(archive.extractfile("manifest.json"))
            config = json.load(archive.extractfile(manifest["Config"]))
            with tarfile.open(fileobj=archive.extractfile(manifest["Layers"][0])) as content:
                self.assertEqual(content.extractfile("etc/greeting").read(), b"hello")
                self.assertEqual(content.getmember("etc/same").linkname, "greeting")
                self.assertEqual(content.getmember("tmp").mode, 0o1777)
        self.assertEqual(manifest["RepoTags"], ["x/y:1"])
        self.assertEqual((config["config"]["Entrypoint"], config["config"]["User"], config["config"]["WorkingDir"]), (["/bin/z"], "7", "/work"))

    def test_same_files_same_bytes(self):
        def archive(name, order):
            layer = image.Layer()
            for path in order:
                layer.text(path, path)
            return image.write(self.folder / name, "x:1", layer, image.simple()).read_bytes()
        self.assertEqual(archive("a", ["/one", "/two/three"]), archive("b", ["/two/three", "/one"]))

    def test_a_program_brings_its_libraries_and_their_loader(self):
        layer = image.Layer()
        layer.program("/bin/ls", "/usr/bin/list")
        self.assertIn("usr/bin/list", layer.files)
        self.assertTrue(any("libc.so" in path for path in layer.files))
        self.assertTrue(any("ld-linux" in path for path in layer.files))

    def test_ldd_output(self):
        text = "\tlinux-vdso.so.1 (0x7ff)\n\tlibx.so.1 => /lib/libx.so.1 (0x7f0)\n\t/lib64/ld-linux-x86-64.so.2 (0x7f1)\n"
        self.assertEqual(image.parse_ldd("p", text), ["/lib/libx.so.1", "/lib64/ld-linux-x86-64.so.2"])
        with self.assertRaisesRegex(image.ImageError, "p needs a library that is not there: liby.so => not found"):
            image.parse_ldd("p", "\tliby.so => not found\n")

    def test_a_missing_file_is_named(self):
        with self.assertRaisesRegex(image.ImageError, "/nowhere/x: no such file"):
            image.Layer().file("/nowhere/x", "/x")

    def test_a_folder_is_copied_whole(self):
        (self.folder / "in/sub").mkdir(parents=True)
        (self.folder / "in/sub/file").write_text("1")
        layer = image.Layer()
        layer.copy(self.folder / "in", "/data")
        self.assertEqual(layer.files["data/sub/file"], (0o644, b"1"))


class PartsTest(unittest.TestCase):
    def test_go_versions(self):
        for text, expected in (("go1.24.3", (1, 24)), ("go1.9", (1, 9)), ("go1.26rc1", (1, 26)), ("devel +abc", None), ("", None)):
            self.assertEqual(parts.parse_go_version(text), expected)

    def test_the_cache_changes_with_the_module(self):
        with tempfile.TemporaryDirectory() as folder:
            module = pathlib.Path(folder)
            seen = set()
            for name, text in (("go.mod", "a"), ("go.mod", "b"), ("go.sum", "b"), ("x/main.go", "b"), ("README.md", "ignored")):
                (module / name).parent.mkdir(exist_ok=True)
                (module / name).write_text(text)
                seen.add(parts.module_hash(module))
            self.assertEqual(len(seen), 4)

    def test_a_second_build_waits_for_the_first(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(parts, "folder", lambda: pathlib.Path(folder) / "kubernetes-1"), \
                unittest.mock.patch.object(parts, "compile_into", lambda *_: self.fail("built twice")), \
                unittest.mock.patch.object(parts, "find_go", lambda: "/bin/true"):
            lock = open(f"{parts.folder()}.lock", "w")
            fcntl.flock(lock, fcntl.LOCK_EX)

            def finish(said):   # the other build ends when this one has said that it waits
                self.assertIn("another run builds the programs", said)
                parts.folder().mkdir()
                for name in parts.PACKAGES:
                    parts.program(name).touch()
                lock.close()
            self.assertEqual(parts.build(finish), parts.folder())

    def test_the_module_requires_the_version_that_is_stamped(self):
        text = (parts.MODULE / "go.mod").read_text()
        self.assertTrue(f"k8s.io/kubernetes {parts.KUBERNETES} " in text, "go.mod requires another version")
        staging = parts.KUBERNETES.replace("v1.", "v0.")
        replaced = [line.split()[-1] for line in text.splitlines() if " => k8s.io/" in line]
        self.assertEqual((len(replaced), set(replaced)), (31, {staging}))


class ProcessesTest(unittest.TestCase):
    def start(self, mark, command):
        process = processes.start("test", command, mark, "/dev/null")
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_a_process_is_found_by_its_mark_alone(self):
        command = ["sleep", "300"]
        one, two = self.start("/mark/one", command), self.start("/mark/on", command)
        self.assertEqual(processes.marked("/mark/one"), [one.pid])
        self.assertEqual(processes.find("/mark/on", command), two.pid)
        self.assertIsNone(processes.find("/mark/on", ["sleep", "301"]))

    def test_ending_a_cluster_ends_children_too_and_no_other(self):
        parent = self.start("/mark/a", ["sh", "-c", "sleep 300 & sleep 301"])
        other = self.start("/mark/b", ["sleep", "300"])
        processes.wait_until("the children", 10, lambda: len(processes.marked("/mark/a")) == 3)
        processes.kill_all("/mark/a", "paceline-no-such-cgroup")
        self.assertEqual(processes.marked("/mark/a"), [])
        self.assertEqual(parent.wait(10), -9)
        self.assertIsNone(other.poll())

    def test_a_process_that_was_ended_holds_no_port(self):
        script = ("import socket, sys, threading, time\n"
                  "server = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
                  "for _ in range(50): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
                  "print(server.getsockname()[1], flush=True)\n"
                  "time.sleep(600)\n")
        port = 0
        for _ in range(5):
            process = subprocess.Popen([sys.executable, "-c", script, str(port)], stdout=subprocess.PIPE, text=True)
            self.addCleanup(process.kill)
            port = int(process.stdout.readline())
            self.assertTrue(processes.end(process.pid, 9, lambda pid: True, 10))
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))   # without SO_REUSEADDR
            self.assertEqual(process.wait(), -9)
            process.stdout.close()
        self.assertFalse(processes.end(process.pid, 9, lambda pid: True, 10))

    def test_a_signal_needs_the_second_look(self):
        process = self.start("/mark/c", ["sleep", "300"])
        self.assertFalse(processes.send(process.pid, 9, lambda pid: False))
        self.assertIsNone(process.poll())
        self.assertTrue(processes.send(process.pid, 9, lambda pid: True))
        self.assertEqual(process.wait(10), -9)
        self.assertFalse(processes.send(process.pid, 9, lambda pid: True))

    def test_a_cgroup_that_goes_while_it_is_looked_at_is_no_error(self):
        with tempfile.TemporaryDirectory() as root:
            for folder in ("mine", "mine/kept", "mine/going"):
                os.mkdir(f"{root}/{folder}")
                pathlib.Path(root, folder, "cgroup.procs").write_text(f"{len(folder)}\n0\n")
            scandir = os.scandir

            def going(path):
                if str(path).endswith("/going"):
                    shutil.rmtree(path)
                return scandir(path)
            with unittest.mock.patch.object(processes, "cgroup_roots", lambda: [pathlib.Path(root)]), \
                    unittest.mock.patch.object(os, "scandir", going):
                self.assertEqual(processes.in_cgroup("mine"), {4, 9})

    def test_waiting_ends_with_the_log_in_the_error(self):
        with self.assertRaisesRegex(processes.ProcessError, "the moon: not within 0 s\nwhat the log said"):
            processes.wait_until("the moon", 0, lambda: False, lambda: "what the log said")


class RemainsTest(unittest.TestCase):
    def start(self, *words, folder=None):
        """A process with this command line, and the mark of the cluster in this folder."""
        process = subprocess.Popen(words, executable=shutil.which("sleep"), env={processes.MARK: str(folder)} if folder else {})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        processes.wait_until("its command line and mark", 10, lambda: processes.command_line(process.pid) == list(words) and (
            not folder or processes.is_marked(process.pid, folder)))

    def test_only_processes_of_the_cluster_itself_count(self):
        """Programs that another suite runs meanwhile, of a cluster of its own or of none, are no remains."""
        mine = f"mine-{os.getpid()}"
        for index, name in enumerate(("helm", "kubectl", "kubelet", "etcd")):
            self.start(str(parts.program(name)), f"30{index}")
        self.start(str(parts.program("kubelet")), "310", folder=store.folder(f"{mine}-b"))
        self.start("/somewhere/else", "320", folder=store.folder(mine))
        self.assertEqual(list(remains.our_processes(mine)), ["/somewhere/else 320"])

    def test_containers_are_found_by_the_clusters_cgroup(self):
        """They have no mark."""
        for line, expected in (("4:pids:/paceline-mine/node-1/kubepods/x\n1:cpu:/\n", 1), ("0::/paceline-mine\n", 1), ("0::/paceline-mine-b/node-1\n", 0),
                               ("0::/other/paceline-mine/x\n", 0), ("0::/\n", 0)):
            with self.subTest(line), tempfile.TemporaryDirectory() as proc:
                (pathlib.Path(proc) / "77").mkdir()
                for name, content in (("cgroup", line), ("cmdline", "/pause\0"), ("environ", "A=b\0")):
                    (pathlib.Path(proc) / "77" / name).write_text(content)
                with unittest.mock.patch.object(processes, "PROC", pathlib.Path(proc)):
                    self.assertEqual(len(list(remains.our_processes("mine"))), expected)


class StoreTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "clusters"
        old = store.root
        store.root = lambda: self.root
        self.addCleanup(setattr, store, "root", old)

    def test_claims_do_not_overlap(self):
        one = store.claim("one", 2, lambda: [NETWORK("10.200.0.0/20")])
        two = store.claim("two", 2, lambda: [])
        self.assertEqual((str(one.subnet), str(two.subnet)), ("10.200.16.0/20", "10.200.0.0/20"))
        self.assertEqual(store.load("one")[0], one)
        self.assertEqual(store.names(), ["one", "two"])

    def test_locks_exclude_and_leave_no_file(self):
        with store.locked("a"):
            code = f"import sys; sys.path.insert(0, {str(parts.MODULE.parent)!r}); import pathlib; from machine import store; " \
                   f"store.root = lambda: pathlib.Path({str(self.root)!r}); store.LOCK_SECONDS = 0\n" \
                   "try:\n with store.locked('a'): print('mine')\nexcept store.StoreError as error: print(error)"
            said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60).stdout
            self.assertIn("has been bringing it up or down", said)
        self.assertFalse(self.root.exists())

    def test_half_a_file_is_no_cluster(self):
        (self.root / "x").mkdir(parents=True)
        self.assertEqual(store.load("x"), (None, {}))
        (self.root / "x/cluster.json").write_text("{")
        self.assertEqual(store.load("x"), (None, {}))


class SkipTest(unittest.TestCase):
    def test_suite_without_a_cluster_counts_as_skipped_and_says_why(self):
        with tempfile.TemporaryDirectory() as folder:
            unshare = pathlib.Path(folder) / "unshare"
            unshare.write_text("#!/bin/sh\necho unshare: it is not permitted >&2\nexit 1\n")
            unshare.chmod(0o755)
            suite = pathlib.Path(__file__).with_name("contract_test.py")
            environment = dict(os.environ, GTEST_OUTPUT=f"json:{folder}/", PATH=f"{folder}:{os.environ['PATH']}")
            result = subprocess.run([sys.executable, suite], env=environment, capture_output=True, text=True, timeout=60)
            self.assertEqual(result.returncode, 0, result.stderr)
            counts = run_tests.Counts()
            run_tests.count_gtest(pathlib.Path(folder) / "cluster_contract_test.json", "release", counts)
        why = "no namespace can be made here: unshare: it is not permitted" if os.geteuid() == 0 else "it needs root"
        self.assertEqual((counts.passed, counts.failed, len(counts.skipped)), (0, [], 1))
        self.assertIn(f"test_a_real_cluster_keeps_the_contract ({why}", counts.skipped[0])


if __name__ == "__main__":
    unittest_report.main("cluster_machine_test")
