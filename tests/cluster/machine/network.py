"""A cluster's network: a switch in a namespace of its own, a cable to the host, one to each node. Needs root.

Everything hangs on namespaces that are files below the cluster's folder; nothing is written into the host's iptables or sysctls.
Between the nodes and the host go only the cluster's own addresses: a node has no route to anywhere else.
"""

import ctypes
import ipaddress
import json
import os
import subprocess

from . import layout as layouts

LIBC = ctypes.CDLL(None, use_errno=True)
MNT_DETACH = 2
# What a kubelet would set for the whole machine; on a node it finds these values instead, and writes nothing.
KUBELET_SYSCTLS = {"vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10, "kernel/panic_on_oops": 1,
                   "kernel/keys/root_maxkeys": 1000000, "kernel/keys/root_maxbytes": 25000000}
# A node's own, each a folder of its own in the node's folder.
PRIVATE = ("/run", "/var/lib", "/var/log")


class NetworkError(Exception):
    pass


def run(command, text=None):
    result = subprocess.run([str(word) for word in command], input=text, capture_output=True, text=True, timeout=30,
                            stdin=subprocess.DEVNULL if text is None else None)
    if result.returncode != 0:
        raise NetworkError(f"{' '.join(map(str, command))} failed: {(result.stderr or result.stdout).strip()}")
    return result.stdout


def networks_in_use():
    """All networks that this machine has an address in or a route to, the default route apart."""
    used = []
    for entry in json.loads(run(["ip", "-json", "-4", "address"])):
        used += [ipaddress.ip_interface(f"{a['local']}/{a['prefixlen']}").network for a in entry.get("addr_info", [])]
    for route in json.loads(run(["ip", "-json", "-4", "route", "show", "table", "all"])):
        if route["dst"] not in ("default", "0.0.0.0/0"):
            used.append(ipaddress.ip_network(route["dst"], strict=False))
    return used


def switch_commands(layout):
    """`ip -batch` lines for the switch's namespace."""
    lines = ["link set lo up", "link add bridge type bridge", "link set bridge up"]
    for port in ("host", *(node.name for node in layout.nodes)):
        lines += [f"link set {port} master bridge", f"link set {port} up"]
    return lines


def host_commands(layout):
    lines = [f"address add {layout.host_address}/24 dev {layout.link}", f"link set {layout.link} up"]
    return lines + [f"route add {node.pods} via {node.address} dev {layout.link}" for node in layout.nodes]


def node_commands(layout, node):
    lines = ["link set lo up", f"address add {node.address}/24 dev eth0", "link set eth0 up",
             f"route add {layouts.SERVICES} via {layout.host_address} dev eth0", "route add unreachable default"]
    return lines + [f"route add {other.pods} via {other.address} dev eth0" for other in layout.nodes if other != node]


def cables(layout):
    """`ip -batch` lines, on the host: one cable to the host and one to each node, plugged into the switch."""
    lines = [f"link add {layout.link} type veth peer name host netns {layout.switch}"]
    for node in layout.nodes:
        lines.append(f"link add name eth0 netns {node.network} type veth peer name {node.name} netns {layout.switch}")
    return lines


def in_namespace(path, command):
    return ["nsenter", f"--net={path}", "--", *command]


def make(layout):
    layout.namespaces.mkdir()
    # A mount namespace can be kept only below a mount that is nobody else's peer.
    run(["mount", "--bind", layout.namespaces, layout.namespaces])
    run(["mount", "--make-private", layout.namespaces])
    for path in (layout.switch, *(node.network for node in layout.nodes)):
        path.touch()
        run(["unshare", f"--net={path}", "true"])
    run(["ip", "-batch", "-"], "\n".join(cables(layout)))
    run(in_namespace(layout.switch, ["ip", "-batch", "-"]), "\n".join(switch_commands(layout)))
    run(["ip", "-batch", "-"], "\n".join(host_commands(layout)))
    for node in layout.nodes:
        run(in_namespace(node.network, ["ip", "-batch", "-"]), "\n".join(node_commands(layout, node)))
        run(in_namespace(node.network, ["sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"]))
        make_mounts(node)


def plug(layout, node, value):
    """A node's cable into the switch, or out of it. The node's own end stays as it is, and so do its addresses and routes, which would go if
    that were taken down."""
    run(in_namespace(layout.switch, ["ip", "link", "set", node.name, "up" if value else "down"]))


def make_mounts(node):
    """The node's mount namespace: the machine's files, except those that two nodes would fight over."""
    script = ["set -e"]
    for path in PRIVATE:
        own = node.folder / path[1:].replace("/", "-")
        own.mkdir(parents=True, exist_ok=True)
        script.append(f"mount --bind '{own}' {path}")
    values = node.folder / "sysctls"
    values.mkdir()
    for name, value in KUBELET_SYSCTLS.items():
        file = values / name.replace("/", ".")
        file.write_text(f"{value}\n")
        script.append(f"mount --bind '{file}' /proc/sys/{name}")
    node.mounts.touch()
    run(["unshare", f"--mount={node.mounts}", "--propagation", "private", "sh", "-c", "\n".join(script)])


def link_exists(name):
    return os.path.exists(f"/sys/class/net/{name}")


def mounts_below(folder):
    """Mount points at and below a folder, deepest first."""
    points = []
    with open("/proc/self/mountinfo") as mounts:
        for line in mounts:
            point = line.split()[4].encode().decode("unicode_escape")   # a blank is \\040
            if point == str(folder) or point.startswith(f"{folder}/"):
                points.append(point)
    return points[::-1]


def unmake(layout):
    """Takes away whatever of make() there is. The processes in the namespaces must have ended."""
    if link_exists(layout.link):
        subprocess.run(["ip", "link", "delete", layout.link], capture_output=True, timeout=30)
    for point in mounts_below(layout.folder):
        if LIBC.umount2(point.encode(), MNT_DETACH) != 0:
            raise NetworkError(f"cannot unmount {point}: {os.strerror(ctypes.get_errno())}")
    if link_exists(layout.link):
        raise NetworkError(f"link {layout.link} is still there; `ip link delete {layout.link}` says why")
