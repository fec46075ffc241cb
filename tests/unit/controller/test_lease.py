"""The lease: one holder at a time, whatever becomes of the one before."""

from __future__ import annotations

import asyncio
import copy
from typing import Any, cast

import pytest

from killpoint.controller import lease as leases
from killpoint.controller.lease import GIVE_UP_SECONDS, SECONDS, Lease
from killpoint.controller.requests import Document, Requests
from killpoint.ports import SubstrateUnavailableError


class FakeLeases:
    """Leases of a namespace, in memory."""

    namespace = "ops"

    def __init__(self) -> None:
        self.found: dict[str, Any] | None = None
        self.away = False

    async def lease(self, name: str) -> Document | None:
        self._answer(name)
        return copy.deepcopy(self.found)

    async def create_lease(self, lease: Document) -> bool:
        self._answer(lease["metadata"]["name"])
        if self.found is not None:
            return False
        self.found = copy.deepcopy(dict(lease))
        self.found["metadata"]["resourceVersion"] = "1"
        return True

    async def update_lease(self, name: str, lease: Document) -> bool:
        self._answer(name)
        if self.found is None or lease["metadata"]["resourceVersion"] != self.found["metadata"]["resourceVersion"]:
            return False
        self.found = copy.deepcopy(dict(lease))
        self.found["metadata"]["resourceVersion"] = str(int(lease["metadata"]["resourceVersion"]) + 1)
        return True

    def _answer(self, name: str) -> None:
        assert name == leases.NAME
        if self.away:
            raise SubstrateUnavailableError("the API server does not answer")

    @property
    def holder(self) -> str:
        assert self.found is not None
        return str(self.found["spec"]["holderIdentity"])


class Time:
    """A clock that goes on by itself when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def time() -> Time:
    return Time()


def held_by(there: FakeLeases, identity: str, time: Time) -> Lease:
    return Lease(cast("Requests", there), identity=identity, clock=time, sleep=time.sleep)


def test_the_first_one_has_it_and_the_second_one_waits_until_it_is_given_back(time: Time) -> None:
    there = FakeLeases()

    async def scenario() -> None:
        first, second = held_by(there, "one", time), held_by(there, "two", time)
        await first.acquire()
        assert there.holder == "one"
        began = time.now
        await first.give_back()
        await second.acquire()
        assert there.holder == "two"
        assert time.now - began < SECONDS
        assert there.found is not None
        assert there.found["spec"]["leaseTransitions"] == 1

    asyncio.run(scenario())


def test_a_dead_holder_is_outlived(time: Time) -> None:
    there = FakeLeases()

    async def scenario() -> None:
        await held_by(there, "dead", time).acquire()
        began = time.now
        await held_by(there, "two", time).acquire()
        assert there.holder == "two"
        assert SECONDS < time.now - began < SECONDS + 5

    asyncio.run(scenario())


def test_a_lease_that_is_renewed_is_not_taken(time: Time) -> None:
    there = FakeLeases()

    async def scenario() -> None:
        first, second = held_by(there, "one", time), held_by(there, "two", time)
        for _ in range(20):
            assert await first.attempt()
            assert not await second.attempt()
            await time.sleep(SECONDS - 1)
        assert there.holder == "one"

    asyncio.run(scenario())


def test_who_cannot_renew_it_stops_before_others_may_take_it(time: Time) -> None:
    there = FakeLeases()

    async def scenario() -> float:
        first = held_by(there, "one", time)
        await first.acquire()
        there.away = True
        began = time.now
        await first.keep()
        return time.now - began

    assert GIVE_UP_SECONDS <= asyncio.run(scenario()) < SECONDS


def test_who_finds_it_in_other_hands_stops(time: Time) -> None:
    there = FakeLeases()

    async def scenario() -> None:
        first = held_by(there, "one", time)
        await first.acquire()
        assert there.found is not None
        there.found["spec"]["holderIdentity"] = "thief"
        await first.keep()
        await first.give_back()

    asyncio.run(scenario())
    assert there.holder == "thief", "what is not ours is not given back"


def test_who_was_paused_for_long_knows_that_it_holds_it_no_more_before_anybody_tells_it(time: Time) -> None:
    there = FakeLeases()

    async def scenario() -> None:
        first = held_by(there, "one", time)
        assert not first.holds(), "nobody has given it yet"
        await first.acquire()
        assert first.holds()
        await time.sleep(GIVE_UP_SECONDS)
        assert not first.holds()
        assert await first.attempt()
        assert first.holds(), "nobody had taken it"
        await first.give_back()
        assert not first.holds()

    asyncio.run(scenario())


def test_a_renewal_counts_from_when_it_was_asked_for(time: Time) -> None:
    there = FakeLeases()
    update = there.update_lease

    async def slow(name: str, lease: Document) -> bool:
        done = await update(name, lease)
        await time.sleep(GIVE_UP_SECONDS)
        return done

    async def scenario() -> bool:
        first = held_by(there, "one", time)
        await first.acquire()
        there.update_lease = slow  # type: ignore[method-assign]
        assert await first.attempt()
        return first.holds()

    assert not asyncio.run(scenario()), "others may have counted from there"


def test_a_lease_without_a_holder_is_free(time: Time) -> None:
    """As the chart makes it, so that the operator need not be able to."""
    there = FakeLeases()
    there.found = {"metadata": {"name": leases.NAME, "resourceVersion": "1"}}
    asyncio.run(held_by(there, "one", time).acquire())
    assert there.holder == "one"
