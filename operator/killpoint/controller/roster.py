"""The roster: which experiments are being looked after, what wakes them, and when each was last seen to get on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

BEAT_SECONDS_MAX = 300.0
"""The longest that a pass with all its requests may take; whoever is silent for longer hangs."""


class Seat:
    """One experiment that is being looked after."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._waker = asyncio.Event()
        self._closed = asyncio.Event()
        self._beat = clock()
        self.leaving = False
        """Whether it is to be left alone from now on: its object goes, or the operator ends."""

    def wake(self) -> None:
        self._waker.set()

    def rest(self) -> None:
        """What happens from here on wakes the next pause. Called before the world is looked at."""
        self._waker.clear()
        self._beat = self._clock()

    async def pause(self, seconds: float) -> None:
        """Wait until something wakes it, or for so long."""
        self._beat = self._clock()
        try:
            async with asyncio.timeout(seconds):
                await self._waker.wait()
        except TimeoutError:
            return  # time itself is the reason to go on

    def leave(self) -> None:
        self.leaving = True
        self._waker.set()

    def close(self) -> None:
        """Nobody looks after it any more."""
        self._closed.set()

    async def closed(self) -> None:
        """Wait until nobody looks after it any more."""
        await self._closed.wait()

    @property
    def silent_seconds(self) -> float:
        return self._clock() - self._beat


class Roster:
    """All experiments that are looked after, by UID, and the places of those that run."""

    def __init__(self, *, places: int, clock: Callable[[], float]) -> None:
        self._places = places
        self._clock = clock
        self._seats: dict[str, Seat] = {}
        self._placed: set[str] = set()
        self._known: set[str] = set()

    def sit(self, uid: str) -> Seat:
        """A seat of its own for an experiment that is looked after from now on."""
        seat = self._seats[uid] = Seat(self._clock)
        self._known.add(uid)
        return seat

    def rise(self, uid: str, seat: Seat) -> None:
        """It is not looked after any more."""
        seat.close()
        self.release(uid)
        if self._seats.get(uid) is seat:
            del self._seats[uid]

    def seat(self, uid: str) -> Seat | None:
        return self._seats.get(uid)

    def wake(self, uid: str) -> bool:
        """Wake an experiment. False: it is not looked after."""
        seat = self._seats.get(uid)
        if seat is not None:
            seat.wake()
        return seat is not None

    def note(self, uid: str) -> None:
        """The object is there."""
        self._known.add(uid)

    def forget(self, uid: str) -> None:
        """The object is gone."""
        self._known.discard(uid)

    def knows(self, uid: str) -> bool:
        return uid in self._known

    def place(self, uid: str) -> bool:
        """Take one of the places of those that run. False: all are taken."""
        if uid not in self._placed and len(self._placed) >= self._places:
            return False
        self._placed.add(uid)
        return True

    def release(self, uid: str) -> None:
        """Give the place back, and let the others know."""
        if uid in self._placed:
            self._placed.remove(uid)
            for other, seat in self._seats.items():
                if other != uid:  # it would not wait after a failure, if its own place woke it
                    seat.wake()

    @property
    def silent_seconds(self) -> float:
        """How long the experiment that has been silent for longest has been so; 0 where there is none."""
        return max((seat.silent_seconds for seat in self._seats.values()), default=0.0)
