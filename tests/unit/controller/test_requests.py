"""Requests of an operator that may not be the one that acts any more."""

from __future__ import annotations

import asyncio

import pytest

from killpoint.controller.requests import Requests
from killpoint.ports import SubstrateUnavailableError
from tests.unit.kubernetes.api import FakeApi, FakeServer
from tests.unit.kubernetes.pods import SCOPE

SECRET = {"kind": "Secret", "metadata": {"name": "s"}}


def test_who_does_not_hold_the_lease_changes_nothing_and_may_look() -> None:
    server = FakeServer()
    held = True
    requests = Requests(FakeApi(server), SCOPE.namespace, may_change=lambda: held)

    async def scenario() -> None:
        nonlocal held
        assert await requests.create(SECRET)
        held = False
        for change in (
            requests.create({"kind": "Pod", "metadata": {"name": "p"}}),
            requests.delete_secret("s"),
            requests.patch_pod("p", {}),
            requests.delete_secrets("a=b"),
        ):
            with pytest.raises(SubstrateUnavailableError, match="another operator may hold the lease"):
                await change
        assert await requests.pod("p") is None

    asyncio.run(scenario())
    assert server.requests == ["POST secrets", "GET pods/p"]
    assert set(server.secrets) == {"s"}
