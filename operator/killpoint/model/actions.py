"""Actions: what a pass decides to do. The engine journals the intent of each before it acts."""

from __future__ import annotations

from dataclasses import dataclass

from killpoint.model.cells import AttemptId, Method
from killpoint.model.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Write down what was seen or concluded."""

    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Start an attempt, or a look into the store, for the first time."""

    attempt: AttemptId
    action: str
    """``start``, ``resume`` or ``inspect``."""
    scheduled: str | None
    method: Method = Method.SIGKILL


@dataclass(frozen=True, slots=True, kw_only=True)
class StartAgain:
    """Start an attempt whose intent is journaled but which never reached the substrate."""

    attempt: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class KillFromOutside:
    """End an attempt: one that is parked at its point, or one that is past a deadline."""

    attempt: AttemptId
    reason: str
    method: Method = Method.SIGKILL
    scheduled: bool = False
    """Whether this is the kill that the cell is about."""
    of_run: bool = False
    """Whether it is because the whole run is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Let a frozen attempt go on."""

    attempt: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanUp:
    """Free what the attempts of a judged trial hold."""

    attempts: tuple[AttemptId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Nothing is left to do: audit the ledger once more and end the run."""

    aborted: bool = False
    """Whether something is left, and is not to be done any more. There is no audit then."""


Action = Record | Start | StartAgain | KillFromOutside | Release | CleanUp | Finish
