"""The node's certificate authority, its certificates, and kubeconfigs that carry them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path

from tests.cluster.node.commands import run
from tests.cluster.node.layout import API, API_SERVICE, NODE, NODE_ADDRESS

DAYS = "365"
SERVER_NAMES = (
    "DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,"
    f"DNS:kubernetes.default.svc.cluster.local,IP:{NODE_ADDRESS},IP:{API_SERVICE},IP:127.0.0.1"
)
SUBJECTS: Mapping[str, tuple[str, str]] = {
    "apiserver": ("/CN=kube-apiserver", SERVER_NAMES),
    "admin": ("/O=system:masters/CN=admin", ""),
    "kubelet": (f"/O=system:nodes/CN=system:node:{NODE}", f"DNS:{NODE},IP:{NODE_ADDRESS}"),
    "controller-manager": ("/CN=system:kube-controller-manager", ""),
    "scheduler": ("/CN=system:kube-scheduler", ""),
    "proxy": ("/CN=system:kube-proxy", ""),
}
"""By file name: the identity that RBAC knows, and the names under which it serves."""

_AUTHORITY = ("basicConstraints = critical, CA:true", "keyUsage = critical, keyCertSign, cRLSign, digitalSignature")
_LEAF = ("basicConstraints = CA:false", "extendedKeyUsage = serverAuth, clientAuth")


def make(folder: Path) -> None:
    """Write ca, sa (which signs service account tokens) and one pair for each subject. Raises ClusterError."""
    folder.mkdir(mode=0o700)
    _certificate(folder, "ca", "/CN=killpoint-test-cluster", _AUTHORITY)
    run("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", folder / "sa.key")
    run("openssl", "ec", "-in", folder / "sa.key", "-pubout", "-out", folder / "sa.pub")
    for name, (subject, alternatives) in SUBJECTS.items():
        extensions = (*_LEAF, *([f"subjectAltName = {alternatives}"] if alternatives else []))
        _certificate(folder, name, subject, extensions, authority="ca")


def _certificate(
    folder: Path, name: str, subject: str, extensions: tuple[str, ...], *, authority: str | None = None
) -> None:
    settings = folder / f"{name}.cnf"
    lines = (
        "[req]",
        "distinguished_name = name",
        "x509_extensions = extensions",
        "[name]",
        "[extensions]",
        *extensions,
    )
    settings.write_text("\n".join(lines) + "\n", encoding="ascii")
    signer: tuple[str | Path, ...] = ()
    if authority is not None:
        signer = ("-CA", folder / f"{authority}.crt", "-CAkey", folder / f"{authority}.key")
    run(
        "openssl", "req", "-x509", "-new", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-config", settings, "-subj", subject, "-days", DAYS, *signer,
        "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt",
    )  # fmt: skip


def kubeconfig(folder: Path, name: str) -> str:
    """A kubeconfig for this subject, as JSON (which is YAML). It carries its certificates: it may be moved."""

    def embedded(file: str) -> str:
        return base64.b64encode((folder / file).read_bytes()).decode("ascii")

    cluster = {"server": API, "certificate-authority-data": embedded("ca.crt")}
    user = {"client-certificate-data": embedded(f"{name}.crt"), "client-key-data": embedded(f"{name}.key")}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "killpoint", "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": "killpoint", "context": {"cluster": "killpoint", "user": name}}],
        "current-context": "killpoint",
    }
    return json.dumps(content, indent=1)
