"""Brings a cluster up and takes it down. Whatever happens in between, down() leaves nothing: see README.md beside this folder."""

import contextlib
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

from . import api as apis
from . import arguments, certificates, image, manifests, network, parts, processes, store

API_SECONDS = 60
NODES_SECONDS = 90
STOP_SECONDS = 20


class ClusterError(Exception):
    pass


def program_path(name):
    if name in arguments.DEBIAN_PROGRAMS:
        return shutil.which(name) or f"/usr/bin/{name}"
    return str(parts.program(name))


def command_of(part):
    """The command line as the kernel shows it once the program runs."""
    return [program_path(part.program), *part.arguments]


def start(layout, name):
    part = arguments.part(layout, name)
    command = command_of(part)
    if part.node:
        command = arguments.enter(part.node, command)
    return processes.start(name, command, layout.folder, layout.logs / f"{name}.log")


def find(layout, name):
    """The process id of a running part, or None."""
    return processes.find(layout.folder, command_of(arguments.part(layout, name)))


def stop(layout, name, number=signal.SIGKILL):
    """Sends a signal to a part; after one that ends it, returns when it has ended."""
    pid = find(layout, name)
    if pid is None:
        raise ClusterError(f"{name} of cluster {layout.name} is not running")
    ours = lambda p: processes.is_marked(p, layout.folder)   # noqa: E731
    if number in (signal.SIGKILL, signal.SIGTERM):
        processes.end(pid, number, ours, STOP_SECONDS)
    else:
        processes.send(pid, number, ours)


def up(name, node_count=2, say=lambda line: None, while_pid=None):
    """Returns the layout of a cluster that is ready: nodes Ready, names resolved. On any failure nothing of it is left."""
    why = why_not()
    if why:
        raise ClusterError(f"this machine cannot run a cluster: {why}")
    check_programs()
    parts.build(say)
    with store.locked(name):
        layout, known = store.load(name)
        if layout and known.get("ready"):
            raise ClusterError(f"cluster {name} is up already; `scripts/cluster down --name {name}` takes it down")
        if layout or store.folder(name).exists():
            say(f"cluster {name}: taking down what an earlier start left")
            remove(name)
        try:
            layout = store.claim(name, node_count, network.networks_in_use)
            os.environ[processes.MARK] = str(layout.folder)   # so that what runs for a moment only is found too
            bring_up(layout, while_pid, say)
            store.save(layout, ready=True)
        except BaseException:
            remove(name)
            raise
        finally:
            os.environ.pop(processes.MARK, None)
    return layout


def bring_up(layout, while_pid, say):
    began = time.monotonic()
    layout.logs.mkdir()
    if while_pid:
        keep_while(layout, while_pid)
    network.make(layout)
    for node in layout.nodes:
        processes.make_cgroup(node.cgroup.strip("/"))
    certificates.make(layout)
    for path, content in manifests.files(layout).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    running = {}
    for part in arguments.parts(layout):
        if part.program in ("etcd", "kube-apiserver", "containerd"):
            running[part.name] = start(layout, part.name)
    say(f"cluster {layout.name}: etcd, the API server and containerd started after {time.monotonic() - began:.1f} s")
    wait(layout, running, "a containerd on every node", lambda: all(containerd_answers(node) for node in layout.nodes), API_SECONDS)
    with_image(layout, "pause", image.pause(parts.program("pause"), manifests.PAUSE_IMAGE))
    with_image(layout, "busybox", image.busybox())
    server = apis.Api(layout)
    wait(layout, running, "the API server", lambda: server.call("GET", "/readyz")[0] == 200, API_SECONDS)
    for value in manifests.objects(layout):
        ok, text = server.create(f"/apis/{value['apiVersion']}/{value['kind'].lower()}s", value)
        if not ok:
            raise ClusterError(f"creating {value['kind']} {value['metadata']['name']}: {text}")
    for part in arguments.parts(layout):
        if part.name not in running:
            running[part.name] = start(layout, part.name)
    say(f"cluster {layout.name}: everything started after {time.monotonic() - began:.1f} s")
    wait(layout, running, "the nodes to be Ready", lambda: nodes_ready(server, layout.node_count), NODES_SECONDS)
    wait(layout, running, "the default service account", lambda: server.get("/api/v1/namespaces/default/serviceaccounts/default"), API_SECONDS)
    wait(layout, running, "CoreDNS", lambda: answers(f"http://{layout.loopback}:8181/ready"), API_SECONDS)
    say(f"cluster {layout.name}: ready after {time.monotonic() - began:.1f} s")


def keep_while(layout, pid):
    """A process that takes the cluster down when process `pid` has ended, however it did."""
    processes.start("keeper", [sys.executable, "-m", "machine", "keep", "--name", layout.name, "--while-pid", str(pid)], layout.folder,
                    layout.logs / "keeper.log", folder=pathlib.Path(__file__).resolve().parents[1])


def keep(name, pid):
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        select.select([handle], [], [])
    down(name)


def wait(layout, running, what, look, seconds):
    """Waits for `look`, and fails at once when a part that should run has ended."""
    def checked():
        for name, process in running.items():
            if process.poll() is not None:
                raise ClusterError(f"waiting for {what}: {name} ended with status {process.returncode}; the end of its log:\n"
                                   f"{processes.tail(layout.logs / f'{name}.log')}")
        return look()
    return processes.wait_until(f"cluster {layout.name}: {what}", seconds, checked, lambda: "\n".join(
        f"{name}, the end of its log:\n{processes.tail(layout.logs / f'{name}.log')}" for name in running))


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return response.status == 200
    except OSError:
        return False


def containerd_answers(node):
    return ctr(node, ["version"], check=False) is not None


def ctr(node, command, check=True):
    """The output of containerd's own client on a node."""
    result = subprocess.run(arguments.enter(node, ["ctr", "--namespace", "k8s.io", *command]), stdin=subprocess.DEVNULL, capture_output=True,
                            text=True, timeout=120)
    if result.returncode == 0:
        return result.stdout
    if check:
        raise ClusterError(f"{node.name}: ctr {' '.join(map(str, command))} failed: {result.stderr.strip()}")
    return None


def with_image(layout, stem, make):
    archive = layout.folder / f"{stem}.tar"
    make(archive)
    import_image(layout, archive)
    archive.unlink()


def import_image(layout, archive):
    for node in layout.nodes:
        ctr(node, ["images", "import", str(pathlib.Path(archive).resolve())])


def load_product(layout, build):
    """Puts Paceline's images on every node; returns their names."""
    images = image.product(build)
    if not images:
        raise ClusterError(f"{build}/bin has no program of Paceline; `scripts/build release` builds them")
    for stem, make in images.items():
        with_image(layout, stem, make)
    return [f"paceline/{stem}:dev" for stem in images]


def nodes_ready(server, count):
    nodes = (server.get("/api/v1/nodes") or {"items": []})["items"]
    ready = [node for node in nodes if any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", []))]
    return len(ready) == count


def down(name):
    """Takes everything of a cluster away, also what a killed up() left; false when there was nothing. A running up() is interrupted."""
    if not store.root().exists():
        return False
    with store.locked(""):   # takes the file away that a killed one may have left
        pass
    with store.locked(name, interrupt_holder=True):
        return remove(name)


def remove(name):
    folder = store.folder(name)
    if not folder.exists():
        return False
    layout, _ = store.load(name)
    if layout:   # the folder's first file; without it nothing else was made
        processes.kill_all(layout.folder, layout.cgroup)
        network.unmake(layout)
        processes.remove_cgroups(layout.cgroup)
        store.save(layout, ready=False)
    shutil.rmtree(folder)
    return True


def client_environment(layout):
    """What kubectl and helm need; what they cache goes with the cluster."""
    client = layout.folder / "client"
    return {"KUBECONFIG": str(layout.admin_kubeconfig), "KUBECACHEDIR": f"{client}/kubectl", "HELM_CACHE_HOME": f"{client}/helm/cache",
            "HELM_CONFIG_HOME": f"{client}/helm/config", "HELM_DATA_HOME": f"{client}/helm/data"}


def status(layout):
    """name -> process id, or None where it does not run."""
    return {part.name: find(layout, part.name) for part in arguments.parts(layout)}


def why_not():
    """Why this machine can't run a cluster at all, or an empty string. What can be installed or built is no reason."""
    if os.geteuid() != 0:
        return "it needs root, for network namespaces and containers"
    probe = subprocess.run(["unshare", "--net", "--mount", "true"], capture_output=True, text=True, timeout=30)
    if probe.returncode != 0:
        return f"no namespace can be made here: {probe.stderr.strip()}"
    if not processes.cgroup_roots():
        return "no cgroups are mounted here"
    return ""


def check_programs():
    missing = [name for name in (*arguments.DEBIAN_PROGRAMS, "runc", "iptables", "ip", "busybox", "openssl", "/usr/lib/cni/ptp")
               if not shutil.which(name)]
    if missing:
        raise ClusterError(f"these programs are missing: {', '.join(missing)}; `scripts/setup --cluster` installs them")
