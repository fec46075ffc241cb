"""The node's processes: what runs, and with which options. Paths are as the components see them."""

from __future__ import annotations

from dataclasses import dataclass

from tests.cluster.node.base_manifests import PROVISIONER
from tests.cluster.node.configuration import CONFIG, PKI, VOLUME_PLUGINS
from tests.cluster.node.layout import INSIDE, NODE, NODE_ADDRESS, SERVICES

ETCD = "http://127.0.0.1:2379"
KUBE = str(INSIDE / "bin" / "kube")


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One process. Its output goes to ``log/NAME.log`` in the state folder."""

    name: str
    command: tuple[str, ...]


def foundation() -> tuple[Component, ...]:
    """What comes first: the API and the container runtime."""
    return (
        _etcd(),
        _apiserver(),
        Component(name="containerd", command=("containerd", "-c", f"{CONFIG}/containerd.toml")),
    )


def cluster() -> tuple[Component, ...]:
    """What needs the API."""
    return (_controller_manager(), _scheduler(), _kubelet(), _proxy(), _network_policies(), _volumes())


def _etcd() -> Component:
    """Without fsync: its data goes with the node."""
    return _of_kube(
        "etcd",
        f"--data-dir={INSIDE}/etcd",
        f"--listen-client-urls={ETCD}",
        f"--advertise-client-urls={ETCD}",
        "--listen-peer-urls=http://127.0.0.1:2380",
        "--unsafe-no-fsync",
    )


def _apiserver() -> Component:
    return _of_kube(
        "kube-apiserver",
        f"--etcd-servers={ETCD}",
        f"--bind-address={NODE_ADDRESS}",
        f"--advertise-address={NODE_ADDRESS}",
        f"--service-cluster-ip-range={SERVICES}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        f"--client-ca-file={PKI}/ca.crt",
        f"--tls-cert-file={PKI}/apiserver.crt",
        f"--tls-private-key-file={PKI}/apiserver.key",
        f"--kubelet-client-certificate={PKI}/admin.crt",
        f"--kubelet-client-key={PKI}/admin.key",
        "--kubelet-preferred-address-types=InternalIP",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={PKI}/sa.pub",
        f"--service-account-signing-key-file={PKI}/sa.key",
    )


def _controller_manager() -> Component:
    return _of_kube(
        "kube-controller-manager",
        f"--kubeconfig={CONFIG}/controller-manager.kubeconfig",
        f"--service-account-private-key-file={PKI}/sa.key",
        f"--root-ca-file={PKI}/ca.crt",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        f"--flex-volume-plugin-dir={VOLUME_PLUGINS}",
    )


def _scheduler() -> Component:
    return _of_kube("kube-scheduler", f"--kubeconfig={CONFIG}/scheduler.kubeconfig", "--leader-elect=false")


def _kubelet() -> Component:
    return _of_kube(
        "kubelet",
        f"--config={CONFIG}/kubelet.json",
        f"--kubeconfig={CONFIG}/kubelet.kubeconfig",
        f"--hostname-override={NODE}",
        f"--node-ip={NODE_ADDRESS}",
    )


def _proxy() -> Component:
    return _of_kube("kube-proxy", f"--config={CONFIG}/proxy.json")


def _network_policies() -> Component:
    return _of_kube(
        "network-policies",
        f"--kubeconfig={INSIDE}/kubeconfig",
        f"--hostname-override={NODE}",
        f"--service-cluster-ip-range={SERVICES}",
    )


def _volumes() -> Component:
    return _of_kube(
        "volumes",
        f"--kubeconfig={INSIDE}/kubeconfig",
        f"--provisioner={PROVISIONER}",
        "--root=/var/lib/volumes",
    )


def _of_kube(name: str, *options: str) -> Component:
    return Component(name=name, command=(KUBE, name, *options))
