"""What a machine shows of clusters: the tests compare it before and after. Other clusters that come and go meanwhile are left out."""

import os
import pathlib
import re
import shutil
import subprocess

from machine import layout, network, processes, store

# Where the programs of a cluster would write if they were not kept from it.
FOLDERS = ("/run/containerd", "/run/netns", "/run/xtables.lock", "/var/lib/cni", "/var/lib/kubelet", "/var/lib/containerd", "/var/log/pods",
           "/var/log/containers", "/etc/cni", "/opt/cni", "/opt/containerd", "/etc/kubernetes", "/usr/libexec/kubernetes")
SYSCTLS = (*network.KUBELET_SYSCTLS, "net/ipv4/ip_forward", "net/ipv4/conf/all/route_localnet", "net/netfilter/nf_conntrack_max")


def snapshot(name):
    """A dictionary of sets; of clusters only `name` counts."""
    others = [other for other in (store.load(each)[0] for each in store.names() if each != name) if other]
    return {
        "processes": set(our_processes(name)),
        "mounts": {line for line in mounts() if not any(str(other.folder) in line for other in others)},
        "links": set(os.listdir("/sys/class/net")) - {other.link for other in others},
        "routes": {line for line in output(["ip", "route", "show", "table", "all"]) if not any(f"dev {other.link}" in line for other in others)},
        "iptables": {re.sub(r"\[\d+:\d+\]", "", line) for line in output(["iptables-save"]) if not line.startswith("#")},
        "nftables": set(output(["nft", "list", "ruleset"])) if shutil.which("nft") else set(),
        "cgroups": cgroups({other.cgroup for other in others}),
        "files": {str(path) for folder in FOLDERS for path in (pathlib.Path(folder), *pathlib.Path(folder).rglob("*")) if os.path.lexists(path)},
        "clusters": {path.name for path in store.root().glob("*") if path.name.split(".")[0] == name},
        "sysctls": {(key, value(key)) for key in SYSCTLS},
    }


def our_processes(name):
    """What has the mark of the cluster of this name, and what is in its cgroup: its containers. Nobody else's, whatever program it is."""
    folder, cgroup = store.folder(name), layout.cgroup_of(name)
    for entry in processes.PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            groups = (entry / "cgroup").read_text()
        except OSError:
            continue   # gone
        words = processes.command_line(entry.name)
        if not words:
            continue   # it has ended, and nobody has waited for it yet
        if processes.is_marked(entry.name, folder) or re.search(rf":/{re.escape(cgroup)}(/|$)", groups, re.MULTILINE):
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
