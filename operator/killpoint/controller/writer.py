"""The writer of one experiment's status: the only one, by server-side apply, and only where something has changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from killpoint.controller.site import Objects
from killpoint.controller.statuses import Document, with_times
from killpoint.controller.subjects import Subject

PAUSE_SECONDS = 1.0
"""Between two writes. kopf takes its finalizer off under a test of the resource version, which each write changes."""
COST_FACTOR = 20
"""Making a status takes at most this part of the time: of many thousand trials it is made less often."""
TRIES = 4


class ObjectGoneError(Exception):
    """The object is not there any more; there is nothing to write on."""


class StatusWriter:
    """Writes what is new. Raises ObjectGoneError, ApiRefused and SubstrateUnavailableError."""

    def __init__(
        self, objects: Objects, subject: Subject, *, known: Document | None, now_ms: Callable[[], int]
    ) -> None:
        """``known``: the status that the object has, as far as the caller knows."""
        self._objects = objects
        self._subject = subject
        self._known = known
        self._now_ms = now_ms
        self._next = 0.0

    @property
    def known(self) -> Document | None:
        """The status as it stands on the object."""
        return self._known

    @property
    def is_due(self) -> bool:
        """Whether a status may be made and written now."""
        return _clock() >= self._next

    def took(self, seconds: float) -> None:
        """How long it took to make the status that is written next."""
        self._next = max(self._next, _clock() + seconds * COST_FACTOR)

    async def write(self, status: Document) -> bool:
        """Write it at once, unless it says what is there already. Whether it was written."""
        if self._says(status, self._known):
            return False
        self._next = max(self._next, _clock() + PAUSE_SECONDS)
        for _ in range(TRIES):
            found = await self._objects.experiment(self._subject.name)
            # An apply creates no object, but it takes one of the same name for the same one.
            if found is None or found["metadata"]["uid"] != self._subject.uid:
                raise ObjectGoneError(f"experiment {self._subject} is gone")
            self._known = found.get("status")
            if self._says(status, self._known):
                return False
            timed = with_times(status, self._known, now_ms=self._now_ms())
            if await self._objects.apply_status(self._subject, timed, version=found["metadata"]["resourceVersion"]):
                self._known = timed
                return True
        return False  # whoever changes it so often makes the next pass write it

    async def write_last(self, status: Document) -> None:
        """Write the status of the end: it is there when this returns."""
        await asyncio.sleep(max(0.0, min(self._next - _clock(), PAUSE_SECONDS)))
        while not self._says(status, self._known):
            await self.write(status)

    def _says(self, status: Document, before: Document | None) -> bool:
        return before is not None and with_times(status, before, now_ms=0) == _plain(before)


def _plain(status: Document) -> dict[str, Any]:
    return dict(status)


def _clock() -> float:
    return asyncio.get_running_loop().time()
