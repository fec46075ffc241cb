"""Points: named places of an execution, and what is scheduled to happen there."""

from __future__ import annotations

import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable
from typing import NoReturn, Protocol

from killpoint_worker.assignment import AssignmentError, Scheduled
from killpoint_worker.log import TerminationLog

STILL_ALIVE = 70
"""The exit code of a worker that SIGKILL did not end, as happens to PID 1 of a container."""

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*(?:\.[a-z0-9]+(?:-[a-z0-9]+)*)+")
_NAME_LENGTH_MAX = 63


class Parking(Protocol):
    """Where a worker waits for permission to go on."""

    def park(self, point: str, occurrence: int) -> str:
        """Wait for an answer: ``go`` or ``die``."""


class Points:
    """The points of one attempt. May be passed from several threads."""

    def __init__(
        self,
        log: TerminationLog,
        schedule: tuple[Scheduled, ...] = (),
        *,
        parking: Parking | None = None,
        die: Callable[[], NoReturn] | None = None,
    ) -> None:
        self._log = log
        self._schedule = {(item.point, item.occurrence): item.do for item in schedule}
        self._parking = parking
        self._die = _die if die is None else die
        self._passings: Counter[str] = Counter()
        self.first_passed_seconds: float | None = None
        """``time.monotonic()`` at the attempt's first point."""
        if parking is None and "park" in self._schedule.values():
            raise AssignmentError("the schedule parks at a point, but KILLPOINT_CONTROL_URL is not set")

    def passed(self, point: str) -> None:
        """Say that the execution came by ``point``; die, or wait there, where that is scheduled.

        Between the line and the kill no other thread can write a line: the lock is never given back.
        """
        if not _NAME.fullmatch(point) or len(point) > _NAME_LENGTH_MAX:
            raise ValueError(
                f"{point!r} is no name for a point: lower-case words joined by dots, at most 63 characters"
            )
        with self._log.exclusive():
            if self.first_passed_seconds is None:
                self.first_passed_seconds = time.monotonic()
            self._passings[point] += 1
            occurrence = self._passings[point]
            do = self._schedule.get((point, occurrence))
            self._log.passed(point, occurrence, time.time_ns() // 1_000_000)
            if do == "die":
                self._die()
        if do == "park" and self._parking is not None and self._parking.park(point, occurrence) == "die":
            with self._log.exclusive():
                self._die()


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    os._exit(STILL_ALIVE)
