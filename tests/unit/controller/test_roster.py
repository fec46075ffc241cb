"""Who is looked after, who waits for a place, and who has been silent for too long."""

from __future__ import annotations

import asyncio

from killpoint.controller.roster import Roster


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_places_are_limited_and_come_back() -> None:
    roster = Roster(places=2, clock=Clock())
    assert [roster.place(uid) for uid in ("a", "b", "c", "a")] == [True, True, False, True]
    roster.release("a")
    assert roster.place("c")


def test_a_place_that_comes_back_wakes_those_who_wait() -> None:
    async def scenario() -> bool:
        roster = Roster(places=1, clock=Clock())
        roster.place("a")
        seat = roster.sit("b")
        seat.rest()
        waiting = asyncio.create_task(seat.pause(30))
        await asyncio.sleep(0)
        assert not waiting.done()
        roster.release("a")
        async with asyncio.timeout(1):
            await waiting
        return roster.place("b")

    assert asyncio.run(scenario())


def test_ones_own_place_that_comes_back_wakes_nobody() -> None:
    """An experiment that failed gives its place back, and then waits until it tries again."""

    async def scenario() -> None:
        roster = Roster(places=1, clock=Clock())
        seat = roster.sit("a")
        roster.place("a")
        seat.rest()
        roster.release("a")
        waiting = asyncio.create_task(seat.pause(30))
        done, _ = await asyncio.wait({waiting}, timeout=0.05)
        assert not done
        seat.wake()
        await waiting

    asyncio.run(scenario())


def test_what_happens_while_one_looks_wakes_the_next_pause() -> None:
    async def scenario() -> None:
        roster = Roster(places=1, clock=Clock())
        seat = roster.sit("a")
        seat.rest()
        assert roster.wake("a")
        async with asyncio.timeout(1):
            await seat.pause(30)

    asyncio.run(scenario())


def test_who_rises_is_closed_and_known_all_the_same() -> None:
    async def scenario() -> None:
        roster = Roster(places=1, clock=Clock())
        seat = roster.sit("a")
        roster.place("a")
        roster.rise("a", seat)
        async with asyncio.timeout(1):
            await seat.closed()
        assert not roster.wake("a")
        assert roster.knows("a")
        assert roster.place("b")
        roster.forget("a")
        assert not roster.knows("a")

    asyncio.run(scenario())


def test_a_new_seat_is_not_taken_away_by_the_one_before_it() -> None:
    roster = Roster(places=1, clock=Clock())
    former = roster.sit("a")
    seat = roster.sit("a")
    roster.rise("a", former)
    assert roster.seat("a") is seat


def test_silence_is_that_of_the_most_silent() -> None:
    clock = Clock()
    roster = Roster(places=2, clock=clock)
    assert roster.silent_seconds == 0
    roster.sit("a")
    clock.now = 40.0
    roster.sit("b").rest()
    clock.now = 50.0
    assert roster.silent_seconds == 50.0
