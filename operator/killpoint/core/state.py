"""State: the fold of a run's events. What is not in the journal did not happen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import assert_never

from killpoint.core.packed import Packed, Unpacking
from killpoint.model.cells import AttemptId, Coordinates, Method, Role, TrialId
from killpoint.model.events import (
    AttemptEnded,
    AttemptIntended,
    AttemptKillIntended,
    AttemptLaunched,
    AttemptParked,
    AttemptReleased,
    LedgerRead,
    PointChecked,
    Recorded,
    RunContinued,
    RunEnded,
    RunOpened,
    RunSuspended,
    ServicesSeen,
    TrialJudged,
)
from killpoint.model.evidence import (
    INTERRUPTION,
    AttemptEnd,
    AttemptEvidence,
    Ordered,
    PointCheck,
    TrialEvidence,
)
from killpoint.model.findings import Judgement, Result

AttemptEvent = (
    AttemptIntended
    | AttemptLaunched
    | AttemptParked
    | AttemptReleased
    | AttemptKillIntended
    | AttemptEnded
    | PointChecked
)


class JournalLostError(Exception):
    """The journal lacks what its own events presuppose: it is not the journal of this run any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptState:
    """One attempt, as the journal knows it."""

    id: AttemptId
    run: str
    action: str
    scheduled: str | None
    nonce: str
    intended_ms: int
    launched: bool = False
    method: Method = Method.SIGKILL
    parked_ms: int | None = None
    released_ms: int | None = None
    """When a frozen one was let go on: its time to live counts anew from there."""
    kill_requested: bool = False
    """The kill that the cell is about was asked for from outside."""
    cut_short: bool = False
    """The harness killed it because the whole run was over."""
    kill_intended: str | None = None
    """Why the harness killed it although the cell is not about that: a deadline."""
    end: AttemptEnd | None = None
    ended_ms: int | None = None
    """When the journal learned of the end: what waits for quiet counts from here."""
    check: PointCheck | None = None

    @property
    def frozen(self) -> bool:
        return self.method is Method.FREEZE and self.parked_ms is not None and self.released_ms is None

    @property
    def evidence(self) -> AttemptEvidence:
        return AttemptEvidence(
            id=self.id,
            action=self.action,
            scheduled=self.scheduled,
            intended_ms=self.intended_ms,
            method=self.method,
            parked_ms=self.parked_ms,
            kill_requested=self.kill_requested,
            end=self.end,
            check=self.check,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialState:
    """One take of a trial, as the journal knows it."""

    id: TrialId
    attempts: Mapping[AttemptId, AttemptState] = field(default_factory=dict)
    ledger: LedgerRead | None = None
    judgement: Judgement | None = None
    disturbances: tuple[str, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether nothing is asked of it but for reports. Controls are: which points they passed, each time anew."""
        return self.judgement is not None and any(attempt.scheduled for attempt in self.attempts.values())

    @property
    def executors(self) -> tuple[AttemptState, ...]:
        return tuple(
            attempt
            for attempt in sorted(self.attempts.values(), key=lambda attempt: attempt.id.number)
            if attempt.id.role is Role.EXECUTOR
        )

    def inspector_of(self, attempt: AttemptId) -> AttemptState | None:
        return self.attempts.get(replace(attempt, role=Role.INSPECTOR))

    @property
    def running(self) -> tuple[AttemptState, ...]:
        """The attempts that have not ended and are not frozen."""
        return tuple(attempt for attempt in self.attempts.values() if attempt.end is None and not attempt.frozen)

    @property
    def frozen(self) -> tuple[AttemptState, ...]:
        """The attempts that are stopped at their point until they are released."""
        return tuple(attempt for attempt in self.attempts.values() if attempt.end is None and attempt.frozen)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """The whole of a run, as the journal knows it."""

    sequence: int = 0
    opened: RunOpened | None = None
    opened_ms: int | None = None
    services: ServicesSeen | None = None
    trials: Mapping[TrialId, TrialState] = field(default_factory=lambda: Unpacking({}))
    """To look one up that is over takes a moment: it is kept packed."""
    judgements: Mapping[TrialId, Judgement] = field(default_factory=lambda: MappingProxyType({}))
    """Of the trials that are judged."""
    open: Mapping[TrialId, TrialState] = field(default_factory=lambda: MappingProxyType({}))
    """Those of the trials that are not judged: a pass looks at these alone, however many there were before."""
    begun: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Cell → the highest number of its trials that were started. They are started in the order of their numbers."""
    doubtful: Mapping[str, frozenset[TrialId]] = field(default_factory=lambda: MappingProxyType({}))
    """Cell → its takes whose judgement leaves a doubt: among these are the ones that may have to be run again."""
    result: Result | None = None
    aborted: bool = False
    ended_ms: int | None = None
    suspended_ms: int | None = None
    """Since when no trial is started; None while they are."""
    idle_ms: int = 0
    """How long it was suspended before."""

    def ran_ms(self, now_ms: int) -> int:
        """How long the run has taken by now, not counting the time for which it was suspended."""
        if self.opened_ms is None:
            return 0
        return (self.suspended_ms or now_ms) - self.opened_ms - self.idle_ms

    def last(self, cell: str, number: int) -> TrialId | None:
        """The last take of a trial, by its id."""
        take = None
        found = TrialId(cell=cell, number=number)
        while found in self.trials:
            take, found = found, replace(found, retry=found.retry + 1)
        return take

    def latest(self, cell: str, number: int) -> TrialState | None:
        """The last take of a trial."""
        take = self.last(cell, number)
        return None if take is None else self.trials[take]


class _Trials:
    """The trials of a run while events are folded into them."""

    def __init__(self, state: RunState) -> None:
        known = state.trials
        self._all: dict[TrialId, TrialState | Packed[TrialState]] = dict(
            known.held if isinstance(known, Unpacking) else known
        )
        self._judgements = dict(state.judgements)
        self._open = dict(state.open)
        self._begun = dict(state.begun)
        self._doubtful = dict(state.doubtful)

    def get(self, trial: TrialId) -> TrialState:
        """Raises JournalLostError where it was never begun."""
        known = self._all.get(trial)
        if known is None:
            raise JournalLostError(f"the journal speaks of trial {trial}, but not of its attempts")
        return known.value() if isinstance(known, Packed) else known

    def begin(self, trial: TrialId) -> TrialState:
        """The trial, a new one where there is none yet."""
        if trial in self._all:
            return self.get(trial)
        self._begun[trial.cell] = max(trial.number, self._begun.get(trial.cell, 0))
        return TrialState(id=trial)

    def put(self, trial: TrialState) -> None:
        self._all[trial.id] = Packed.of(trial) if trial.is_over else trial
        if trial.judgement is None:
            self._open[trial.id] = trial
            self._judgements.pop(trial.id, None)
        else:
            self._open.pop(trial.id, None)
            self._judgements[trial.id] = trial.judgement
        takes = self._doubtful.get(trial.id.cell, frozenset())
        doubtful = trial.judgement is not None and trial.judgement.doubtful
        if doubtful is not (trial.id in takes):
            self._doubtful[trial.id.cell] = takes ^ {trial.id}

    def disturb(self, disturbances: tuple[str, ...]) -> None:
        """Something happened to whatever runs."""
        for trial in tuple(self._open.values()) if disturbances else ():
            self.put(replace(trial, disturbances=(*trial.disturbances, *disturbances)))

    def into(self, state: RunState) -> RunState:
        return replace(
            state,
            trials=Unpacking(self._all),
            judgements=MappingProxyType(self._judgements),
            open=MappingProxyType(self._open),
            begun=MappingProxyType(self._begun),
            doubtful=MappingProxyType(self._doubtful),
        )


def fold(state: RunState, events: Iterable[Recorded]) -> RunState:
    """The state after these events. Events that it already holds are passed over, so a batch may be folded twice."""
    trials = _Trials(state)
    sequence = state.sequence
    for recorded in events:
        if recorded.sequence > sequence:
            sequence = recorded.sequence
            state = _with_event(state, recorded, trials)
    return trials.into(replace(state, sequence=sequence))


def _with_event(state: RunState, recorded: Recorded, trials: _Trials) -> RunState:
    match recorded.event:
        case RunOpened():
            return replace(state, opened=recorded.event, opened_ms=recorded.at_ms)
        case ServicesSeen():
            trials.disturb(changes(state.services, recorded.event))
            return replace(state, services=recorded.event)
        case RunSuspended():
            return replace(state, suspended_ms=state.suspended_ms or recorded.at_ms)
        case RunContinued():
            idle_ms = 0 if state.suspended_ms is None else recorded.at_ms - state.suspended_ms
            return replace(state, suspended_ms=None, idle_ms=state.idle_ms + idle_ms)
        case RunEnded(result=result, aborted=aborted):
            return replace(state, result=result, aborted=aborted, ended_ms=recorded.at_ms)
        case LedgerRead(trial=trial_id):
            # A ledger read anew, after the judgement, reopens the trial.
            trials.put(replace(trials.get(trial_id), ledger=recorded.event, judgement=None))
        case TrialJudged(trial=trial_id, judgement=judgement):
            trials.put(replace(trials.get(trial_id), judgement=judgement))
        case (
            AttemptIntended()
            | AttemptLaunched()
            | AttemptParked()
            | AttemptReleased()
            | AttemptKillIntended()
            | AttemptEnded()
            | PointChecked() as event
        ):
            trial = trials.begin(event.attempt.trial)
            attempt = _attempt_after(trial.attempts.get(event.attempt), event, recorded.at_ms)
            trials.put(replace(trial, attempts={**trial.attempts, event.attempt: attempt}))
        case _:
            assert_never(recorded.event)
    return state


def changes(before: ServicesSeen | None, now: ServicesSeen) -> tuple[str, ...]:
    """Which services are another incarnation than before, in words."""
    if before is None:
        return ()
    if before.harness != now.harness:
        return (INTERRUPTION,)  # a new process brings its services anew, too
    words = {
        "database": "the database was started anew, or broke off its sessions, while the trial ran",
        "payments": "the payments service was started anew while the trial ran",
    }
    return tuple(said for name, said in words.items() if getattr(before, name) != getattr(now, name))


def _attempt_after(
    before: AttemptState | None,
    event: AttemptEvent,
    at_ms: int,
) -> AttemptState:
    if isinstance(event, AttemptIntended):
        return AttemptState(
            id=event.attempt,
            run=event.run,
            action=event.action,
            scheduled=event.scheduled,
            method=event.method,
            nonce=event.nonce,
            intended_ms=at_ms,
        )
    if before is None:
        raise JournalLostError(f"the journal speaks of attempt {event.attempt}, but not of the intent behind it")
    match event:
        case AttemptLaunched():
            return replace(before, launched=True)
        case AttemptParked():
            return replace(before, parked_ms=before.parked_ms or at_ms)
        case AttemptReleased():
            return replace(before, released_ms=before.released_ms or at_ms)
        case AttemptKillIntended(scheduled=True):
            return replace(before, kill_requested=True)
        case AttemptKillIntended(reason=reason, of_run=of_run):
            cut_short = of_run if before.kill_intended is None else before.cut_short
            return replace(before, kill_intended=before.kill_intended or reason, cut_short=cut_short)
        case AttemptEnded(end=end):
            return replace(before, end=end, ended_ms=at_ms)
        case PointChecked(check=check):
            return replace(before, check=check)
        case _:
            assert_never(event)


def evidence_of(
    trial: TrialState, *, run: str, coordinates: Coordinates, ordered: tuple[Ordered, ...]
) -> TrialEvidence:
    """Everything that the journal knows of a trial, in the form in which it is judged, shown and stored."""
    return TrialEvidence(
        id=trial.id,
        run=run,
        coordinates=coordinates,
        ordered=ordered,
        attempts=tuple(attempt.evidence for attempt in trial.executors),
        ledger=None if trial.ledger is None else trial.ledger.view,
        ledger_fault=None if trial.ledger is None else trial.ledger.fault,
        disturbances=trial.disturbances,
    )
