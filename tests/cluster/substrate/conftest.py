"""The substrate that these tests try."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from kubernetes.aio import config

from killpoint.kubernetes.client import Cluster
from tests.cluster.kubectl import Kubectl
from tests.cluster.substrate.rig import Rig, scope_of


@pytest.fixture
async def rig(kubectl: Kubectl) -> AsyncIterator[Rig]:
    """At its end, evidence finalizers do not keep the namespace from going."""
    client: Any = await config.new_client_from_config(str(kubectl.kubeconfig))  # type: ignore[no-untyped-call]
    async with client as api:
        rig = Rig(kubectl=kubectl, cluster=Cluster(api, kubectl.namespace), scope=scope_of(kubectl))
        yield rig
        await rig.substrate().sweep([])
