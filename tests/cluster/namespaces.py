"""Namespaces of a test's own, that enforce restricted Pod Security."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from tests.cluster import providers
from tests.cluster.kubectl import Kubectl
from tests.cluster.node.layout import Layout
from tests.cluster.providers import Provider

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


@contextmanager
def namespace(provider: Provider, prefix: str) -> Iterator[Kubectl]:
    """One whose name begins like this, and kubectl in it. It goes in the end, with all that is in it."""
    name = f"{prefix}-{secrets.token_hex(3)}"
    program = providers.find_kubectl(Layout.from_environment())
    kubectl = Kubectl(program=program, kubeconfig=provider.kubeconfig, namespace=name)
    metadata = {"name": name, "labels": RESTRICTED}
    kubectl("create", "--filename=-", manifest={"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    try:
        yield kubectl
    finally:
        kubectl("delete", "namespace", name, "--wait=false")
