"""The configuration files of a cluster's programs: pure functions of its layout. JSON is YAML, and so every Kubernetes file is JSON."""

import base64
import json

from . import layout as layouts

PAUSE_IMAGE = "paceline/pause:1"
CNI_VERSION = "0.4.0"


def kubeconfig(layout, user, authority, certificate, key):
    """Everything inline (PEM texts), so that the file can be copied."""
    inline = lambda text: base64.b64encode(text.encode()).decode()   # noqa: E731
    return as_json({
        "apiVersion": "v1", "kind": "Config", "current-context": f"paceline-{layout.name}",
        "clusters": [{"name": f"paceline-{layout.name}", "cluster": {"server": layout.api_server, "certificate-authority-data": inline(authority)}}],
        "users": [{"name": user, "user": {"client-certificate-data": inline(certificate), "client-key-data": inline(key)}}],
        "contexts": [{"name": f"paceline-{layout.name}", "context": {"cluster": f"paceline-{layout.name}", "user": user}}]})


def containerd(node, pause=PAUSE_IMAGE):
    del node   # every node has a /run, /var/lib and /var/log of its own, so the usual paths do
    return f"""version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  enable_unprivileged_ports = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "/var/lib/cni/net.d"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
"""


def cni(layout, node):
    """Pods hang on point-to-point links: all their traffic passes the node's own routing, where the Service rules are."""
    routes = [{"dst": "0.0.0.0/0"}]
    return as_json({"cniVersion": CNI_VERSION, "name": f"paceline-{layout.name}-{node.name}", "plugins": [
        {"type": "ptp", "ipMasq": False, "mtu": 1500,
         "ipam": {"type": "host-local", "routes": routes,
                  "ranges": [[{"subnet": str(node.pods), "gateway": str(node.gateway), "rangeStart": str(node.pods[2])}]]}},
        {"type": "portmap", "capabilities": {"portMappings": True}}]})


def kubelet(layout, node):
    certificates = layout.certificates
    return as_json({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "address": str(node.address), "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "tlsCertFile": str(certificates / f"{node.name}.crt"), "tlsPrivateKeyFile": str(certificates / f"{node.name}.key"),
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                           "x509": {"clientCAFile": str(certificates / "ca.crt")}},
        "authorization": {"mode": "Webhook"},
        "clusterDNS": [str(layout.host_address)], "clusterDomain": layouts.DOMAIN, "resolvConf": str(layout.folder / "resolv.conf"),
        "volumePluginDir": str(node.folder / "volume-plugins"),   # else it makes /usr/libexec/kubernetes
        "cgroupDriver": "cgroupfs", "cgroupRoot": node.cgroup, "cgroupsPerQOS": True, "enforceNodeAllocatable": [], "failCgroupV1": False,
        "failSwapOn": False, "oomScoreAdj": 0, "makeIPTablesUtilChains": False, "localStorageCapacityIsolation": False,
        "evictionHard": {}, "imageGCHighThresholdPercent": 100, "volumeStatsAggPeriod": "-1s", "maxPods": 110,
        "nodeStatusUpdateFrequency": "4s", "nodeStatusReportFrequency": "10s", "nodeLeaseDurationSeconds": 8,
        "registryPullQPS": 0, "eventRecordQPS": 0, "kubeAPIQPS": 200, "kubeAPIBurst": 400, "serializeImagePulls": False,
        "shutdownGracePeriod": "0s"})


def kube_proxy(layout, node):
    unlimited = {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s",
                 "udpTimeout": "0s", "udpStreamTimeout": "0s"}
    return as_json({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "iptables",
        "bindAddress": str(node.address), "clusterCIDR": str(layout.subnet), "conntrack": unlimited, "oomScoreAdj": 0,
        "clientConnection": {"kubeconfig": str(layout.kubeconfig("kube-proxy"))},
        "healthzBindAddress": f"{node.address}:10256", "metricsBindAddress": f"{node.address}:10249"})


def corefile(layout):
    """Names of the cluster, and NXDOMAIN at once for all others: pods reach nothing outside."""
    return f"""{layouts.DOMAIN}:53 in-addr.arpa:53 {{
  bind {layout.host_address}
  errors
  ready {layout.loopback}:8181
  kubernetes {layouts.DOMAIN} in-addr.arpa {{
    kubeconfig {layout.kubeconfig("coredns")}
    ttl 1
  }}
}}
.:53 {{
  bind {layout.host_address}
  errors
  template ANY ANY {{
    rcode NXDOMAIN
  }}
}}
"""


def objects(layout):
    """What a new cluster holds beside Kubernetes' own objects: CoreDNS may read names."""
    del layout
    rules = [{"apiGroups": [""], "resources": ["endpoints", "services", "pods", "namespaces"], "verbs": ["list", "watch"]},
             {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]}]
    return [{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "system:coredns"}, "rules": rules},
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "system:coredns"},
             "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:coredns"},
             "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:coredns"}]}]


def files(layout):
    """path -> content of every file that does not depend on the certificates."""
    result = {layout.folder / "Corefile": corefile(layout), layout.folder / "resolv.conf": f"nameserver {layout.host_address}\n"}
    for node in layout.nodes:
        result[node.folder / "containerd.toml"] = containerd(node)
        result[node.folder / "kubelet.json"] = kubelet(layout, node)
        result[node.folder / "kube-proxy.json"] = kube_proxy(layout, node)
        result[node.folder / "var-lib/cni/net.d/10-paceline.conflist"] = cni(layout, node)
    return result


def as_json(value):
    return json.dumps(value, indent=1) + "\n"
