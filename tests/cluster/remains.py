"""What a machine shows of clusters: the tests compare it before and after. Other clusters that come and go meanwhile are left out."""

import os
import pathlib
import re
import shutil
import subprocess

from machine import network, parts, processes, store

# Where the programs of a cluster would write if they were not kept from it.
FOLDERS = ("/run/containerd", "/run/netns", "/run/xtables.lock", "/var/lib/cni", "/var/lib/kubelet", "/var/lib/containerd", "/var/log/pods",
           "/var/log/containers", "/etc/cni", "/opt/cni", "/opt/containerd", "/etc/kubernetes", "/usr/libexec/kubernetes")
SYSCTLS = (*network.KUBELET_SYSCTLS, "net/ipv4/ip_forward", "net/ipv4/conf/all/route_localnet", "net/netfilter/nf_conntrack_max")


def snapshot(name):
    """A dictionary of sets; of clusters only `name` counts."""
    others = [store.load(other)[0] for other in store.names() if other != name]
    others = [layout for layout in others if layout]
    return {
        "processes": set(our_processes(store.root() / name, others)),
        "mounts": {line for line in mounts() if not any(str(layout.folder) in line for layout in others)},
        "links": set(os.listdir("/sys/class/net")) - {layout.link for layout in others},
        "routes": {line for line in output(["ip", "route", "show", "table", "all"]) if not any(f"dev {o.link}" in line for o in others)},
        "iptables": {re.sub(r"\[\d+:\d+\]", "", line) for line in output(["iptables-save"]) if not line.startswith("#")},
        "nftables": set(output(["nft", "list", "ruleset"])) if shutil.which("nft") else set(),
        "cgroups": cgroups({layout.cgroup for layout in others}),
        "files": {str(path) for folder in FOLDERS for path in (pathlib.Path(folder), *pathlib.Path(folder).rglob("*")) if os.path.lexists(path)},
        "clusters": {path.name for path in store.root().glob("*") if path.name.split(".")[0] == name},
        "sysctls": {(key, value(key)) for key in SYSCTLS},
    }


def our_processes(folder, others):
    """What is marked, what is a cluster's program, and containers; what is known to be another cluster's apart."""
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words, marks, groups = processes.command_line(entry.name), processes.environment_of(entry.name), (entry / "cgroup").read_text()
        except OSError:
            continue   # gone
        if not words:
            continue   # it has ended, and nobody has waited for it yet
        if any(processes.is_marked(entry.name, other.folder) or f"/{other.cgroup}/" in groups for other in others):
            continue
        known = re.search(r"/(containerd[a-z0-9-]*|etcd|runc)$", words[0]) or (
            words[0].startswith(str(parts.folder())) and not words[0].endswith("/kubectl"))   # somebody looks at another cluster
        if f"{processes.MARK}={folder}".encode() in marks or known or re.search(r":/(k8s\.io|kubepods|paceline-)", groups):
            yield " ".join(words)[:200]


def cgroups(others):
    """The uppermost ones, those of other clusters apart."""
    found = set()
    for root in processes.cgroup_roots():
        for folder in root.iterdir():
            if folder.is_dir() and folder.name not in others:
                found.add(str(folder))
    return found


def mounts():
    """Mount point, type and source of every mount that this process sees."""
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        yield " ".join([fields[4], *fields[fields.index("-") + 1:fields.index("-") + 3]])


def output(command):
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.splitlines()


def value(sysctl):
    try:
        return (pathlib.Path("/proc/sys") / sysctl).read_text().strip()
    except OSError:
        return None


def difference(before, after):
    """What came and what went, as text; empty when all is as it was."""
    lines = []
    for kind in before:
        lines += [f"{kind}: new: {item}" for item in sorted(map(str, after[kind] - before[kind]))]
        lines += [f"{kind}: gone: {item}" for item in sorted(map(str, before[kind] - after[kind]))]
    return "\n".join(lines)
