"""What a worker program provides, and what it is given."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from killpoint_worker.assignment import Assignment, AssignmentError
from killpoint_worker.payments import PaymentsClient
from killpoint_worker.points import Points

T = TypeVar("T")

StopWord = Literal["waiting", "held", "dead-lettered", "rejected", "refused", "yielded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """An effect that the framework's own state says was done, by the id that payments gave it."""

    action: str
    order: str
    effect: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The run is done. ``resumed_from`` names the checkpoint that it went on from, if there was one."""

    resumed_from: str | None = None
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """The attempt ended in a declared state other than done."""

    word: StopWord
    resumed_from: str | None = None
    claims: tuple[Claim, ...] = ()


Outcome = Finished | Stopped


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What a worker says of itself. ``distributions`` are installed packages whose versions matter to its results."""

    worker: str
    points: Sequence[str]
    parameters: Mapping[str, Sequence[str]] = field(default_factory=dict)
    distributions: Sequence[str] = ()

    def versions(self) -> dict[str, str]:
        """The versions installed in this environment. Raises PackageNotFoundError for one that is absent."""
        return {name: metadata.version(name) for name in self.distributions}


class Timings:
    """Milliseconds by name, summed over all measurements of a name. May be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._milliseconds: dict[str, float] = {}

    @contextmanager
    def time(self, name: str) -> Iterator[None]:
        """Add the duration of the block to ``name``."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, (time.perf_counter() - began) * 1000)

    def add(self, name: str, milliseconds: float) -> None:
        """Add a duration that was measured elsewhere."""
        with self._lock:
            self._milliseconds[name] = self._milliseconds.get(name, 0.0) + milliseconds

    def milliseconds(self) -> dict[str, float]:
        """All sums, rounded to a tenth."""
        with self._lock:
            return {name: round(value, 1) for name, value in self._milliseconds.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Everything that an execution may use. ``volume`` is a directory that survives the attempt."""

    assignment: Assignment
    points: Points
    payments: PaymentsClient | None
    database_url: str | None = field(default=None, repr=False)
    volume: Path | None = None
    timings: Timings = field(default_factory=Timings)

    @contextmanager
    def time(self, name: str) -> Iterator[None]:
        """Measure a block under ``checkpoint`` or another name of the outcome's timings."""
        with self.timings.time(name):
            yield

    def require_payments(self) -> PaymentsClient:
        """The payments client. Raises AssignmentError where no address was given."""
        return _required(self.payments, "KILLPOINT_PAYMENTS_URL and KILLPOINT_TOKEN")

    def require_database_url(self) -> str:
        """The connection string. Raises AssignmentError where none was given."""
        return _required(self.database_url, "KILLPOINT_DATABASE_URL")

    def require_volume(self) -> Path:
        """The volume. Raises AssignmentError where none was given."""
        return _required(self.volume, "KILLPOINT_VOLUME")


class WorkerProgram(Protocol):
    """A setup's program."""

    def describe(self) -> Description:
        """Say what the worker is. Touches nothing outside."""

    def execute(self, context: Context) -> Outcome:
        """Start or resume the run, as ``context.assignment.action`` says, and carry it as far as it goes."""

    def inspect(self, context: Context) -> Mapping[str, bool]:
        """Say for each step whether the store holds its result. Reads only."""


def _required(value: T | None, variables: str) -> T:
    if value is None:
        raise AssignmentError(f"this cell needs {variables}, which is not set")
    return value
