"""Where everything of one cluster lies and what it is called: a pure function of its name, folder, subnet and number of nodes.

A cluster has a /20 of its own. Its first /24 joins the host (.1) and the nodes (.11, .12, ...); the k-th /24 after it holds the k-th node's
pods. What only this machine may reach listens on a loopback address of its own, 127 followed by the subnet's middle bytes.
"""

import dataclasses
import ipaddress
import pathlib
import re

POOL = ipaddress.ip_network("10.200.0.0/13")
PREFIX = 20
MAX_NODES = 14
SERVICES = ipaddress.ip_network("10.96.0.0/16")
DOMAIN = "cluster.local"
API_PORT = 6443


class LayoutError(ValueError):
    pass


def check_name(name):
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?", name):
        raise LayoutError(f"cluster name {name!r}: 1 to 30 lower-case letters, digits and dashes, neither first nor last a dash")
    return name


def cgroup_of(name):
    return f"paceline-{name}"


def choose_subnet(taken):
    """The first /20 of the pool that overlaps none of the networks in `taken`."""
    for candidate in POOL.subnets(new_prefix=PREFIX):
        if not any(candidate.overlaps(network) for network in taken):
            return candidate
    raise LayoutError(f"no /{PREFIX} is free in {POOL}: is another network using it, or are {2 ** (PREFIX - POOL.prefixlen)} clusters up?")


@dataclasses.dataclass(frozen=True)
class Node:
    name: str
    address: ipaddress.IPv4Address
    pods: ipaddress.IPv4Network
    folder: pathlib.Path
    network: pathlib.Path      # its network namespace, a file
    mounts: pathlib.Path       # its mount namespace, a file
    cgroup: str

    @property
    def gateway(self):
        """What its pods see as their router."""
        return self.pods[1]


@dataclasses.dataclass(frozen=True)
class Layout:
    name: str
    folder: pathlib.Path
    subnet: ipaddress.IPv4Network
    node_count: int

    def __post_init__(self):
        check_name(self.name)
        if not 1 <= self.node_count <= MAX_NODES:
            raise LayoutError(f"{self.node_count} nodes: 1 to {MAX_NODES} are possible")
        if self.subnet.prefixlen != PREFIX or not self.subnet.subnet_of(POOL):
            raise LayoutError(f"subnet {self.subnet}: must be a /{PREFIX} of {POOL}")

    @property
    def infrastructure(self):
        return next(self.subnet.subnets(new_prefix=24))

    @property
    def host_address(self):
        return self.infrastructure[1]

    @property
    def loopback(self):
        first = int(self.subnet.network_address)
        return ipaddress.ip_address((127 << 24) | (first & 0xFFFF00) | 1)

    @property
    def api_server(self):
        return f"https://{self.host_address}:{API_PORT}"

    @property
    def etcd(self):
        return f"https://{self.loopback}:2379"

    @property
    def link(self):
        """The host's end of the cable to the cluster's switch; the kernel allows 15 characters."""
        index = (int(self.subnet.network_address) - int(POOL.network_address)) >> (32 - PREFIX)
        return f"paceline{index}"

    @property
    def cgroup(self):
        return cgroup_of(self.name)

    @property
    def namespaces(self):
        return self.folder / "namespaces"

    @property
    def switch(self):
        return self.namespaces / "switch"

    @property
    def nodes(self):
        blocks = list(self.subnet.subnets(new_prefix=24))
        return [Node(name=f"node-{k}", address=self.infrastructure[10 + k], pods=blocks[k], folder=self.folder / f"node-{k}",
                     network=self.namespaces / f"node-{k}.network", mounts=self.namespaces / f"node-{k}.mounts",
                     cgroup=f"/{self.cgroup}/node-{k}")
                for k in range(1, self.node_count + 1)]

    def node(self, name):
        for node in self.nodes:
            if node.name == name:
                return node
        raise LayoutError(f"no node {name!r} in cluster {self.name}; it has {', '.join(node.name for node in self.nodes)}")

    @property
    def certificates(self):
        return self.folder / "certificates"

    def kubeconfig(self, user):
        return self.folder / "kubeconfigs" / user

    @property
    def admin_kubeconfig(self):
        return self.folder / "kubeconfig"

    @property
    def logs(self):
        return self.folder / "logs"

    def to_json(self):
        return {"name": self.name, "subnet": str(self.subnet), "nodes": self.node_count}

    @staticmethod
    def from_json(folder, value):
        return Layout(value["name"], pathlib.Path(folder), ipaddress.ip_network(value["subnet"]), value["nodes"])
