"""The files that the node's components read, as values. Paths are as those components see them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tests.cluster.node import base_manifests
from tests.cluster.node.layout import CGROUP, DNS_SERVICE, INSIDE, NODE, PAUSE_IMAGE, PODS

CONFIG = INSIDE / "config"
PKI = INSIDE / "pki"
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
VOLUME_PLUGINS = "/var/lib/kubelet/volume-plugins"


def files() -> Mapping[str, str]:
    """Every file by its path from the state folder."""
    return {
        "config/kubelet.json": json.dumps(kubelet(), indent=1),
        "config/proxy.json": json.dumps(proxy(), indent=1),
        "config/containerd.toml": containerd(),
        "config/base.json": json.dumps(base_manifests.manifests(), indent=1),
        "config/network/10-killpoint.conflist": json.dumps(pod_network(), indent=1),
        **{f"kernel/{name}": value for name, value in KERNEL.items()},
    }


KERNEL: Mapping[str, str] = {
    "vm/overcommit_memory": "1\n",
    "vm/panic_on_oom": "0\n",
    "kernel/panic": "10\n",
    "kernel/panic_on_oops": "1\n",
    "kernel/keys/root_maxkeys": "1000000\n",
    "kernel/keys/root_maxbytes": "25000000\n",
}
"""Settings of the whole machine that kubelet insists on. It finds them as files that lie over those in /proc/sys, so
that the machine keeps its own."""


def kubelet() -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": False},
            "x509": {"clientCAFile": str(PKI / "ca.crt")},
        },
        # Who has a certificate of this authority is the API server, or holds the admin's kubeconfig.
        "authorization": {"mode": "AlwaysAllow"},
        "tlsCertFile": str(PKI / "kubelet.crt"),
        "tlsPrivateKeyFile": str(PKI / "kubelet.key"),
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{CGROUP}",
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        "clusterDNS": [DNS_SERVICE],
        "clusterDomain": "cluster.local",
        "resolvConf": "",  # nothing of the machine's own name servers gets into pods
        "maxPods": 250,
        "serializeImagePulls": False,
        # A laptop's disk is fuller than a node's may be. Images come from here only: none is ever taken away.
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "volumePluginDir": VOLUME_PLUGINS,
    }


def proxy() -> dict[str, object]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(CONFIG / "proxy.kubeconfig")},
        "mode": "iptables",
        "clusterCIDR": PODS,
        "hostnameOverride": NODE,
        # Limits of the whole machine: left as they are.
        "conntrack": {"maxPerCore": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }


def pod_network() -> dict[str, object]:
    """A routed pair of interfaces for each pod, not a bridge.

    Packets from pod to pod then pass the node's routing, where the rules of Services and NetworkPolicies are; over a
    bridge they would go around both.
    """
    addresses = {
        "type": "host-local",
        "dataDir": "/var/lib/cni/networks",
        "ranges": [[{"subnet": PODS}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    return {
        "cniVersion": "0.4.0",
        "name": "killpoint",
        "plugins": [{"type": "ptp", "ipMasq": False, "ipam": addresses}],
    }


def containerd() -> str:
    """Debian's containerd with folders of the node's own.

    ``restrict_oom_score_adj``: where root lacks CAP_SYS_RESOURCE a negative score makes runc fail with "can't get final
    child's PID", so no container gets a lower one than containerd has.
    """
    return f"""\
version = 2
root = "{INSIDE}/containerd"
state = "/run/containerd/state"

[grpc]
  address = "{CONTAINERD_SOCKET}"

[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  sandbox_image = "{PAUSE_IMAGE}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni_plugins()}"
    conf_dir = "{CONFIG}/network"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
"""


def cni_plugins() -> Path:
    """Debian's package and the projects' own releases differ in where they put them."""
    places = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))
    return next((place for place in places if (place / "ptp").exists()), places[0])
