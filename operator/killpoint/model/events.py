"""Events: what the journal holds. Nothing else is remembered of a run, and the fold of these is its whole state.

Events carry no times of their own: ``Recorded.at_ms`` is the journal database's clock. Intent is written before the
act, what was seen is written after it.
"""

from __future__ import annotations

from dataclasses import dataclass

from killpoint.model.cells import AttemptId, Method, TrialId
from killpoint.model.evidence import AttemptEnd, LedgerView, PointCheck
from killpoint.model.findings import Judgement, Result


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOpened:
    """The run exists: an experiment of this name, with a spec of this digest."""

    experiment: str
    spec_digest: str
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicesSeen:
    """Which incarnation of each shared service answers. Another one than before has disturbed the open trials."""

    database: str
    payments: str
    harness: str = ""
    """Of the process that drives the run, where attempts die with it; empty where they outlive it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptIntended:
    """An attempt (or a look into the store) is about to be started, with this nonce and this scheduled kill."""

    attempt: AttemptId
    run: str
    action: str
    scheduled: str | None
    nonce: str
    method: Method = Method.SIGKILL


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptLaunched:
    """The substrate took the attempt. If it is unknown there later, it has vanished."""

    attempt: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptParked:
    """The attempt waits at its scheduled point."""

    attempt: AttemptId
    point: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptReleased:
    """A frozen attempt is about to be let go on."""

    attempt: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptKillIntended:
    """The harness is about to end an attempt: at its point, or because it is past a deadline."""

    attempt: AttemptId
    reason: str
    scheduled: bool = False
    """Whether this is the kill that the cell is about."""
    of_run: bool = False
    """Whether it is because the whole run is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnded:
    """The attempt is over, as the substrate saw it."""

    attempt: AttemptId
    end: AttemptEnd


@dataclass(frozen=True, slots=True, kw_only=True)
class PointChecked:
    """Whether the attempt's last point was true of the world, asked when everything was quiet."""

    attempt: AttemptId
    check: PointCheck


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRead:
    """What payments showed of the trial, and why that may not be all: it was not read in time, or it was not quiet."""

    trial: TrialId
    view: LedgerView | None
    fault: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialJudged:
    """The judgement of a trial, made from the evidence above it."""

    trial: TrialId
    judgement: Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSuspended:
    """No trial is started from here on. The time until it goes on does not count towards its deadline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContinued:
    """Trials are started again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    """The run is over and says this."""

    result: Result
    aborted: bool = False
    """Whether it was ended before everything had been run."""


Event = (
    RunOpened
    | ServicesSeen
    | AttemptIntended
    | AttemptLaunched
    | AttemptParked
    | AttemptReleased
    | AttemptKillIntended
    | AttemptEnded
    | PointChecked
    | LedgerRead
    | TrialJudged
    | RunSuspended
    | RunContinued
    | RunEnded
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """An event as the journal holds it."""

    sequence: int
    at_ms: int
    event: Event
