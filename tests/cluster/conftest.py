"""The cluster that tests use: one that is up already. Bringing one up is the affair of `make cluster`.

Where none is up, its tests are skipped and say why; with KILLPOINT_REQUIRE_CLUSTER=1 they fail.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.cluster import providers
from tests.cluster.kubectl import Kubectl
from tests.cluster.namespaces import namespace
from tests.cluster.node.commands import ClusterError
from tests.cluster.node.layout import ROOT, Layout
from tests.cluster.objects import Experiments
from tests.cluster.providers import Node, Provider

CRD = ROOT / "crds" / "crashexperiments.killpoint.dev.yaml"


@pytest.fixture(scope="session")
def provider() -> Provider:
    """The cluster."""
    try:
        chosen = providers.choose(Layout.from_environment())
        if chosen.is_up():
            return chosen
        reason = (
            f"no cluster answers at {chosen.kubeconfig}: `make cluster images` first, `make cluster-down` afterwards"
        )
    except ClusterError as error:
        reason = str(error)
    if os.environ.get("KILLPOINT_REQUIRE_CLUSTER") == "1":
        pytest.fail(f"a cluster is required (KILLPOINT_REQUIRE_CLUSTER=1): {reason}")
    pytest.skip(reason)


@pytest.fixture
def kubectl(provider: Provider) -> Iterator[Kubectl]:
    """A namespace of the test's own that enforces restricted Pod Security, and kubectl in it."""
    with namespace(provider, "test") as kubectl:
        yield kubectl


@pytest.fixture
def cluster(provider: Provider, kubectl: Kubectl) -> Kubectl:
    """Kubectl of a namespace whose pods reach this machine, that knows experiments: for operators that run here."""
    if not isinstance(provider, Node):
        pytest.skip("the operator runs on this machine, which only the pods of the one-node cluster can reach")
    kubectl("apply", "--server-side", "--force-conflicts", f"--filename={CRD}")
    return kubectl


@pytest.fixture
def experiments(kubectl: Kubectl) -> Experiments:
    return Experiments(kubectl)
