"""Points: named places of an execution, and what is scheduled to happen there."""

from __future__ import annotations

import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NoReturn, Protocol

from killpoint_worker.assignment import AssignmentError, Scheduled
from killpoint_worker.control import ControlError
from killpoint_worker.ends import ENDS, EXIT_FAILED
from killpoint_worker.log import LogSealedError, TerminationLog, failed

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*(?:\.[a-z0-9]+(?:-[a-z0-9]+)*)+")
_NAME_LENGTH_MAX = 63


class Parking(Protocol):
    """Where one step of a worker waits for permission to go on."""

    def park(self, point: str, occurrence: int) -> str:
        """Wait for an answer: ``go`` or ``die``. Raises ControlError."""


class Freezing(Protocol):
    """What stops the whole worker until it may go on."""

    def freeze(self, point: str, occurrence: int) -> None:
        """Stop, and return when the worker goes on. Raises ControlError."""


class Points:
    """The points of one attempt. May be passed from several threads."""

    def __init__(
        self,
        log: TerminationLog,
        schedule: tuple[Scheduled, ...] = (),
        *,
        parking: Parking | None = None,
        freezing: Freezing | None = None,
        ends: Mapping[str, Callable[[], NoReturn]] = ENDS,
        leave: Callable[[int], NoReturn] = os._exit,
    ) -> None:
        self._log = log
        self._schedule = {(item.point, item.occurrence): item.do for item in schedule}
        self._parking = parking
        self._freezing = freezing
        self._ends = ends
        self._leave = leave
        self._passings: Counter[str] = Counter()
        self.first_passed_seconds: float | None = None
        """``time.monotonic()`` at the attempt's first point."""
        words = list(self._schedule.values())
        if (parking is None and "park" in words) or (freezing is None and "freeze" in words):
            raise AssignmentError("the schedule has the worker wait at a point, but KILLPOINT_CONTROL_URL is not set")
        if words.count("freeze") > 1:
            raise AssignmentError("the schedule freezes twice: a worker does that once in an attempt")

    def passed(self, point: str) -> None:
        """Say that the execution came by ``point``; end, stop or wait there, where that is scheduled.

        Between the line and an end, or a stop, no other thread can write a line: the lock is not given back.
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
            if do is not None and do in self._ends:
                self._ends[do]()
            if do == "freeze" and self._freezing is not None:
                self._freeze(self._freezing, point, occurrence)
        if do == "park" and self._parking is not None:
            self._park(self._parking, point, occurrence)

    def _park(self, parking: Parking, point: str, occurrence: int) -> None:
        try:
            answer = parking.park(point, occurrence)
        except ControlError as error:
            self._give_up(error)
        if answer == "die":
            with self._log.exclusive():
                self._ends["die"]()

    def _freeze(self, freezing: Freezing, point: str, occurrence: int) -> None:
        try:
            freezing.freeze(point, occurrence)
        except ControlError as error:
            self._give_up(error)

    def _give_up(self, error: ControlError) -> NoReturn:
        """End the attempt as failed, here: a framework that saw the error might try the step again."""
        sys.stderr.write(f"killpoint-worker: {type(error).__name__}: {error}\n")
        with self._log.exclusive():
            try:
                self._log.outcome(failed(error))
            except LogSealedError:
                sys.stderr.write("killpoint-worker: the outcome was written before\n")
            self._leave(EXIT_FAILED)
