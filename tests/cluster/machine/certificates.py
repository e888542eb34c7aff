"""A cluster's own certificate authority and the certificates of its parts, by the openssl program."""

import subprocess

from . import layout as layouts
from . import manifests

DAYS = "30"


def wanted(layout):
    """file stem -> (subject, alternative names). An organisation is a group to Kubernetes, a common name a user."""
    api = [f"IP:{layout.host_address}", f"IP:{layouts.SERVICES[1]}", "DNS:kubernetes", "DNS:kubernetes.default", "DNS:kubernetes.default.svc",
           f"DNS:kubernetes.default.svc.{layouts.DOMAIN}"]
    result = {
        "etcd": ("/CN=etcd", [f"IP:{layout.loopback}"]),
        "etcd-client": ("/CN=kube-apiserver", []),
        "apiserver": ("/CN=kube-apiserver", api),
        "apiserver-kubelet": ("/O=system:masters/CN=kube-apiserver", []),
        "kubernetes-admin": ("/O=system:masters/CN=kubernetes-admin", []),
    }
    for user in ("kube-controller-manager", "kube-scheduler", "kube-proxy", "coredns"):
        result[user] = (f"/CN=system:{user}", [])
    for node in layout.nodes:
        result[node.name] = (f"/O=system:nodes/CN=system:node:{node.name}", [f"IP:{node.address}", f"DNS:{node.name}"])
    return result


USERS = ("kube-controller-manager", "kube-scheduler", "kube-proxy", "coredns")


def authority_arguments(folder):
    return ["req", "-x509", "-subj", "/CN=paceline-cluster", "-days", DAYS, *new_key(folder / "ca"),
            "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign"]


def certificate_arguments(folder, stem, subject, names):
    arguments = ["req", "-x509", "-CA", folder / "ca.crt", "-CAkey", folder / "ca.key", "-subj", subject, "-days", DAYS, *new_key(folder / stem),
                 "-addext", "basicConstraints=critical,CA:FALSE", "-addext", "keyUsage=critical,digitalSignature",
                 "-addext", "extendedKeyUsage=serverAuth,clientAuth"]
    return arguments + (["-addext", "subjectAltName=" + ",".join(names)] if names else [])


def new_key(stem):
    return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{stem}.key", "-out", f"{stem}.crt"]


def make(layout):
    """Writes all keys, certificates and kubeconfigs."""
    folder = layout.certificates
    folder.mkdir(mode=0o700)
    layout.kubeconfig("").mkdir(mode=0o700)
    openssl(authority_arguments(folder))
    openssl(["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", folder / "accounts.key"])
    openssl(["pkey", "-in", folder / "accounts.key", "-pubout", "-out", folder / "accounts.pub"])
    for stem, (subject, names) in wanted(layout).items():
        openssl(certificate_arguments(folder, stem, subject, names))
    for user in (*USERS, *(node.name for node in layout.nodes)):
        write_kubeconfig(layout, user, layout.kubeconfig(user))
    write_kubeconfig(layout, "kubernetes-admin", layout.admin_kubeconfig)


def write_kubeconfig(layout, user, path):
    read = lambda name: (layout.certificates / name).read_text()   # noqa: E731
    path.touch(mode=0o600)
    path.write_text(manifests.kubeconfig(layout, user, read("ca.crt"), read(f"{user}.crt"), read(f"{user}.key")))


def openssl(arguments):
    result = subprocess.run(["openssl", *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
    if result.returncode != 0:
        raise RuntimeError(f"openssl {arguments[0]} failed: {result.stderr.strip()[-500:]}")
