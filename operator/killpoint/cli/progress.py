"""Progress on stderr: what is being prepared, then how far the trials are and how long they will still take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from killpoint.engine import Step
from killpoint.report.words import count as in_number

PLAIN_SECONDS = 5.0
"""How often a line is printed where no bar can be drawn."""
MINUTES_FROM_SECONDS = 90
ETA_TRIALS_MIN = 5
"""Before so many trials are through, an estimate would be a guess."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """How far a run is. Trials of cells that are not unfolded yet are not counted."""

    judged: int
    trials: int
    kills: int
    retries: int

    @classmethod
    def of(cls, step: Step) -> Count:
        takes = [
            take
            for cell in step.plan.cells
            for number in cell.numbers
            if (take := step.state.latest(cell.id, number)) is not None
        ]
        judged = [take.judgement for take in takes if take.judgement is not None]
        return cls(
            judged=len(judged),
            trials=step.plan.trials,
            kills=sum(judgement.kills_confirmed for judgement in judged),
            retries=sum(take.id.retry for take in takes),
        )


class Show(Protocol):
    """Where progress is shown."""

    def prepare(self, text: str) -> None:
        """Something is being prepared."""

    def trials(self, count: Count) -> None:
        """A pass was made."""


def remaining_seconds(elapsed_seconds: float, *, done: int, left: int) -> float | None:
    """An estimate from the trials so far; None while there are too few."""
    return elapsed_seconds / done * left if done >= ETA_TRIALS_MIN else None


def in_words(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < MINUTES_FROM_SECONDS:
        return f"about {max(1, round(seconds))} s left"
    return f"about {round(seconds / 60)} min left"


class _Pace:
    """Elapsed time since the first trial of this very command: what an earlier one did counts for no speed."""

    def __init__(self) -> None:
        self._start: tuple[float, int] | None = None

    def left(self, count: Count) -> str:
        now = time.monotonic()
        if self._start is None:
            self._start = (now, count.judged)
        since, before = self._start
        left = count.trials - count.judged
        return in_words(remaining_seconds(now - since, done=count.judged - before, left=left) if left else None)


class PlainShow:
    """A line now and then: for logs, CI and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._pace = _Pace()
        self._next = 0.0
        self._last = ""

    def prepare(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def trials(self, count: Count) -> None:
        left = self._pace.left(count)
        if time.monotonic() < self._next and count.judged != count.trials:
            return
        self._next = time.monotonic() + PLAIN_SECONDS
        line = ", ".join(part for part in (_words(count), left) if part)
        if line != self._last:
            self._last = line
            self.prepare(line)


class BarShow:
    """A bar that redraws itself: for a person at a terminal."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._pace = _Pace()
        self._task: TaskID | None = None

    def prepare(self, text: str) -> None:
        self._progress.console.print(text, markup=False, highlight=False, style="dim")

    def trials(self, count: Count) -> None:
        left = self._pace.left(count)
        if self._task is None:
            self._task = self._progress.add_task("trials", total=count.trials, left="")
        retried = f", {count.retries} retried" if count.retries else ""
        self._progress.update(
            self._task,
            total=count.trials,
            completed=count.judged,
            description=f"{_kills(count)}{retried}",
            left=left,
        )


def _words(count: Count) -> str:
    retried = f", {count.retries} retried" if count.retries else ""
    return f"{count.judged} of {in_number(count.trials, 'trial')}, {_kills(count)}{retried}"


def _kills(count: Count) -> str:
    return f"{in_number(count.kills, 'kill')} confirmed"


@contextmanager
def shown(console: Console) -> Iterator[Show]:
    """Progress as this stderr can show it."""
    if not console.is_terminal:
        yield PlainShow(console)
        return
    columns = (
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.fields[left]}", style="dim"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield BarShow(progress)
