"""Pods that do not start are told of in the status, and by an Event."""

from __future__ import annotations

import asyncio

import pytest

from killpoint.controller import daemon as daemons
from killpoint.controller import writer
from killpoint.controller.roster import Seat
from killpoint.controller.supervision import waiting_for
from tests.unit.controller.test_daemon import edit, reasons, run, site, when
from tests.unit.engine.world import Flaw


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemons, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(writer, "PAUSE_SECONDS", 0.0)


def test_what_a_pod_waits_for_is_in_the_status_and_in_an_event() -> None:
    """The journal has nothing new meanwhile, and the status is written all the same."""
    one = site()
    one.sim.substrate.flaw = lambda _: Flaw.WAITS

    def told() -> bool:
        status = (one.objects.object or {}).get("status") or {}
        return bool(status) and reasons(status)["Reconciling"] == ("True", "PodsWaiting")

    async def look(seat: Seat) -> None:
        await when(lambda: bool(one.sim.substrate.launches))
        one.sim.clock.ms += 25_000
        await when(told)
        edit(one, abort=True)
        seat.wake()

    status = asyncio.run(run(one, look))
    assert status["phase"] == "Complete"
    [event] = [event for event in one.objects.events if event["reason"] == "PodsWaiting"]
    assert event["type"] == "Warning"
    assert "has no node" in event["message"]


def test_one_of_many_is_named_and_the_others_are_counted() -> None:
    assert waiting_for(()) is None
    standing = waiting_for(("pod a has no node", "pod b has no node", "pod c has no node"))
    assert standing is not None
    assert standing.message == "pod a has no node (2 more wait)"
    assert not standing.stalled
