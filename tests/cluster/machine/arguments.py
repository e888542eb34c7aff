"""The command line of every program of a cluster: pure functions of its layout."""

import dataclasses

from . import layout as layouts

CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "coredns")
NODE_PARTS = ("containerd", "kubelet", "kube-proxy")
DEBIAN_PROGRAMS = ("etcd", "containerd")   # the others come from the Go module


@dataclasses.dataclass(frozen=True)
class Part:
    """One long-running process."""
    name: str               # unique in its cluster: kube-apiserver, kubelet@node-1
    program: str
    arguments: tuple
    node: object = None     # a layout.Node, or None: on the host


def parts(layout):
    """All of a cluster's processes, in the order in which they start."""
    control = [Part(name, name, tuple(control_plane(layout, name))) for name in CONTROL_PLANE]
    nodes = [Part(f"{name}@{node.name}", name, tuple(on_node(layout, node, name)), node) for node in layout.nodes for name in NODE_PARTS]
    return control + nodes


def part(layout, name):
    for candidate in parts(layout):
        if candidate.name == name:
            return candidate
    raise layouts.LayoutError(f"no part {name!r}; this cluster has {', '.join(p.name for p in parts(layout))}")


def control_plane(layout, name):
    certificate = lambda file: layout.certificates / file   # noqa: E731
    data = layout.folder / name
    if name == "etcd":
        peers = f"http://{layout.loopback}:2380"
        return strings(["--name=default", f"--data-dir={data}", f"--listen-client-urls={layout.etcd}", f"--advertise-client-urls={layout.etcd}",
                        f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}", f"--initial-cluster=default={peers}",
                        f"--cert-file={certificate('etcd.crt')}", f"--key-file={certificate('etcd.key')}", "--client-cert-auth",
                        f"--trusted-ca-file={certificate('ca.crt')}", "--unsafe-no-fsync", "--quota-backend-bytes=4294967296",
                        "--log-level=warn", "--logger=zap"])
    if name == "kube-apiserver":
        return strings([
            f"--bind-address={layout.host_address}", f"--advertise-address={layout.host_address}", f"--secure-port={layouts.API_PORT}",
            f"--etcd-servers={layout.etcd}", f"--etcd-cafile={certificate('ca.crt')}", f"--etcd-certfile={certificate('etcd-client.crt')}",
            f"--etcd-keyfile={certificate('etcd-client.key')}",
            f"--tls-cert-file={certificate('apiserver.crt')}", f"--tls-private-key-file={certificate('apiserver.key')}",
            f"--client-ca-file={certificate('ca.crt')}", f"--cert-dir={data}",
            f"--kubelet-certificate-authority={certificate('ca.crt')}", f"--kubelet-client-certificate={certificate('apiserver-kubelet.crt')}",
            f"--kubelet-client-key={certificate('apiserver-kubelet.key')}", "--kubelet-preferred-address-types=InternalIP",
            f"--service-account-issuer=https://kubernetes.default.svc.{layouts.DOMAIN}",
            f"--service-account-key-file={certificate('accounts.pub')}", f"--service-account-signing-key-file={certificate('accounts.key')}",
            f"--service-cluster-ip-range={layouts.SERVICES}", "--authorization-mode=Node,RBAC", "--allow-privileged=true",
            "--default-not-ready-toleration-seconds=20", "--default-unreachable-toleration-seconds=20",
            "--shutdown-delay-duration=0s", "--watch-cache=true"])
    if name == "kube-controller-manager":
        return strings([*client(layout, name), f"--root-ca-file={certificate('ca.crt')}", "--use-service-account-credentials=true",
                        f"--service-account-private-key-file={certificate('accounts.key')}",
                        f"--flex-volume-plugin-dir={data / 'volume-plugins'}",
                        "--node-monitor-period=2s", "--node-monitor-grace-period=16s"])
    if name == "kube-scheduler":
        return strings(client(layout, name))
    if name == "coredns":
        return strings([f"-conf={layout.folder / 'Corefile'}", "-dns.port=53"])
    raise layouts.LayoutError(f"no part {name!r} in the control plane")


def client(layout, name):
    config = layout.kubeconfig(name)
    return [f"--kubeconfig={config}", f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}",
            f"--bind-address={layout.loopback}", f"--cert-dir={layout.folder / name}", "--leader-elect=false",
            "--kube-api-qps=500", "--kube-api-burst=1000"]


def on_node(layout, node, name):
    if name == "containerd":
        return strings([f"--config={node.folder / 'containerd.toml'}"])
    if name == "kubelet":
        return strings([f"--config={node.folder / 'kubelet.json'}", f"--kubeconfig={layout.kubeconfig(node.name)}",
                        f"--hostname-override={node.name}", f"--node-ip={node.address}"])
    if name == "kube-proxy":
        return strings([f"--config={node.folder / 'kube-proxy.json'}", f"--hostname-override={node.name}"])
    raise layouts.LayoutError(f"no part {name!r} on a node")


def enter(node, command):
    """`command` in the namespaces of a node; the cgroups stay those of the machine."""
    return strings(["nsenter", f"--mount={node.mounts}", f"--net={node.network}", "--", *command])


def strings(values):
    return [str(value) for value in values]
