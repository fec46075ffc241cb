"""What is freed of an experiment, and what is not its own."""

from __future__ import annotations

import asyncio

from killpoint.controller.freeing import free_children
from killpoint.controller.requests import Requests
from killpoint.kubernetes.manifests import labels_for, token_secret, worker_pod
from tests.unit.kubernetes.api import FakeApi, FakeServer
from tests.unit.kubernetes.pods import ATTEMPT, SCOPE, SERVICES, TEMPLATE, TRIAL, launch


def test_its_pods_and_secrets_go_and_a_strangers_pod_with_its_labels_stays() -> None:
    server = FakeServer()
    requests = Requests(FakeApi(server), SCOPE.namespace)
    own = worker_pod(SCOPE, launch(), template=TEMPLATE, services=SERVICES, active_seconds=60)
    labels = labels_for(SCOPE, trial=TRIAL, attempt=ATTEMPT)
    foreign = {"kind": "Pod", "metadata": {"name": "foreign", "labels": labels}, "spec": {}}

    async def scenario() -> None:
        for manifest in (own, foreign, token_secret(SCOPE, trial=TRIAL, tokens={"1": "kp1.token"})):
            assert await requests.create(manifest)
        await free_children(requests, SCOPE.owner.uid)

    asyncio.run(scenario())
    assert set(server.pods) == {"foreign"}
    assert server.secrets == {}
    assert not [request for request in server.requests if request.endswith("pods/foreign")]
