"""Decide: from the journal's state and what is seen now to what is to be done next.

Quiet before truth: a resume or a judgement waits until every executor is dead, payments holds no request of the run
in flight, and no database session of its attempts is left. Every wait has an end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from killpoint.core.expectations import met, set_apart
from killpoint.core.judge import judge_safely
from killpoint.core.plan import Plan, ordered_of, run_of
from killpoint.core.points import check_by_inspection, check_by_ledger, landed, needs_inspection
from killpoint.core.state import AttemptState, RunState, TrialState, evidence_of
from killpoint.model.actions import Action, CleanUp, Finish, KillFromOutside, Record, Release, Start, StartAgain
from killpoint.model.cells import AttemptId, Cell, Method, Role, TrialId
from killpoint.model.events import AttemptEnded, AttemptLaunched, AttemptParked, LedgerRead, PointChecked, TrialJudged
from killpoint.model.evidence import AttemptEnd, EndReason, LedgerView, TrialEvidence
from killpoint.model.experiment import Experiment
from killpoint.model.findings import Cause, Judgement
from killpoint.model.observations import Observation, Observed
from killpoint.model.rules import rule_for

RETRIED_CAUSES = frozenset({Cause.INFRASTRUCTURE, Cause.LEDGER, Cause.INTERRUPTED})
"""Nothing that the worker or its framework did."""
TAKES_MAX = 100
"""Of one trial, interrupted ones included."""
ABORTED = "the experiment was aborted (spec.abort)"
OVERDUE = "the run is past its deadline (limits.deadlineSeconds)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """All that a decision is made from."""

    experiment: Experiment
    journal: str
    plan: Plan
    state: RunState
    observed: Observed

    @property
    def overdue(self) -> bool:
        """Whether the whole run is past its deadline: nothing new is started, what runs is ended."""
        return self.state.ran_ms(self.observed.now_ms) > self.experiment.limits.deadline_seconds * 1000


def decide(situation: Situation) -> tuple[Action, ...]:
    """Everything that can be done now, in the order in which it is to be done."""
    if situation.experiment.aborted:
        return tuple(_abort(situation))
    actions: list[Action] = []
    for trial, cell in open_trials(situation):
        actions.extend(_for_trial(situation, trial, cell))
    if not situation.overdue:
        actions.extend(_fresh_starts(situation, judged=sum(_is_judgement(action) for action in actions)))
    if not actions and _nothing_left(situation):
        actions.append(Finish())
    return tuple(actions)


def open_trials(situation: Situation) -> Iterator[tuple[TrialState, Cell]]:
    """The trials that were started and are not judged."""
    for trial in situation.state.open.values():
        cell = situation.plan.cell(trial.id.cell)
        if cell is not None:
            yield trial, cell


def waiting_for_quiet(situation: Situation) -> tuple[TrialState, ...]:
    """The open trials with no attempt running: the ones to ask the ledger and the database about."""
    return tuple(trial for trial, _ in open_trials(situation) if not trial.running)


def _abort(situation: Situation) -> Iterator[Action]:
    """Kill what lives, free what it held, and end. A trial that has no judgement by now gets none."""
    trials = [trial for trial, _ in open_trials(situation)]
    living = [attempt for trial in trials for attempt in trial.attempts.values() if attempt.end is None]
    for attempt in living:
        if attempt.launched or attempt.id in situation.observed.attempts:
            yield from _for_running(situation, attempt)
        else:
            vanished = AttemptEnd(reason=EndReason.NOT_STARTED, at_ms=situation.observed.now_ms, fault=ABORTED)
            yield Record(event=AttemptEnded(attempt=attempt.id, end=vanished))
    if not living:
        yield from (CleanUp(attempts=tuple(trial.attempts)) for trial in trials if trial.attempts)
        yield Finish(aborted=not _nothing_left(situation))


# --- one trial -------------------------------------------------------------------------------------------------


def _for_trial(situation: Situation, trial: TrialState, cell: Cell) -> Iterator[Action]:
    running = trial.running
    if running:
        for attempt in running:
            yield from _for_running(situation, attempt)
    elif trial.ledger is not None:
        yield from _judge(situation, trial, cell)
    else:
        yield from _for_ended(situation, trial, cell)


def _judge(situation: Situation, trial: TrialState, cell: Cell) -> Iterator[Action]:
    yield Record(event=TrialJudged(trial=trial.id, judgement=_judgement(situation, trial, cell)))
    yield CleanUp(attempts=tuple(trial.attempts))


def _is_judgement(action: Action) -> bool:
    return isinstance(action, Record) and isinstance(action.event, TrialJudged)


def _for_running(situation: Situation, attempt: AttemptState) -> Iterator[Action]:
    seen = situation.observed.attempts.get(attempt.id)
    if seen is not None and seen.made and not attempt.launched:
        # Nobody lived to say so, or it was refused at first. From here on it is not started again if it vanishes.
        yield Record(event=AttemptLaunched(attempt=attempt.id))
    if seen is not None and seen.end is not None:
        yield Record(event=AttemptEnded(attempt=attempt.id, end=_as_ended(attempt, seen.end)))
    elif seen is not None:
        yield from _for_living(situation, attempt, seen)
    elif attempt.launched:
        vanished = AttemptEnd(reason=EndReason.VANISHED, at_ms=situation.observed.now_ms)
        yield Record(event=AttemptEnded(attempt=attempt.id, end=vanished))
    else:
        yield StartAgain(attempt=attempt.id)


def _for_living(situation: Situation, attempt: AttemptState, seen: Observation) -> Iterator[Action]:
    over, late = _run_is_over(situation), _deadline_passed(situation, attempt, seen)
    if over is not None or late is not None:
        yield KillFromOutside(attempt=attempt.id, reason=over or late or "", of_run=over is not None)
    elif seen.parked_at is None or seen.parked_at != attempt.scheduled:
        return
    elif attempt.parked_ms is None:
        yield Record(event=AttemptParked(attempt=attempt.id, point=seen.parked_at))
    elif attempt.method is Method.FREEZE:
        yield Release(attempt=attempt.id)  # its release is journaled, and did not reach it yet
    else:
        words = f"the cell is about {attempt.method} at {attempt.scheduled}"
        yield KillFromOutside(attempt=attempt.id, reason=words, method=attempt.method, scheduled=True)


def _as_ended(attempt: AttemptState, end: AttemptEnd) -> AttemptEnd:
    """A death that the harness caused at a deadline is a time-out, not a kill at a point."""
    if attempt.kill_intended is not None and end.reason in {EndReason.SIGNALED, EndReason.TIMED_OUT}:
        return replace(end, reason=EndReason.CUT_SHORT if attempt.cut_short else EndReason.TIMED_OUT)
    return end


def _run_is_over(situation: Situation) -> str | None:
    """Why nothing of the run may go on, whatever the attempt does."""
    if situation.experiment.aborted:
        return ABORTED
    return OVERDUE if situation.overdue else None


def _deadline_passed(situation: Situation, attempt: AttemptState, seen: Observation) -> str | None:
    limits = situation.experiment.limits
    age_seconds = (situation.observed.now_ms - (attempt.released_ms or attempt.intended_ms)) / 1000
    if seen.lines == 0 and age_seconds > limits.startup_seconds:
        return f"it wrote nothing within {limits.startup_seconds} s (limits.startupSeconds)"
    if age_seconds > limits.attempt_seconds:
        return f"it ran for more than {limits.attempt_seconds} s (limits.attemptSeconds)"
    return None


def _for_ended(situation: Situation, trial: TrialState, cell: Cell) -> Iterator[Action]:
    """Every attempt is over, or frozen: ask the world whether it is quiet, and go on when it is."""
    view = situation.observed.ledgers.get(_run(situation, trial))
    noise = _noise(situation, trial, view)
    if view is None or noise is not None:
        if _settling_is_over(situation, trial):
            yield from _conclude(situation, trial, cell, LedgerRead(trial=trial.id, view=view, fault=noise))
        return
    last = trial.executors[-1] if trial.executors else None
    if last is None or not landed(last.evidence):
        yield from _conclude(situation, trial, cell, LedgerRead(trial=trial.id, view=view))
    elif last.check is not None:
        yield from _go_on(situation, trial, cell, view)
    else:
        yield from _check(situation, trial, cell, view)


def _go_on(situation: Situation, trial: TrialState, cell: Cell, view: LedgerView) -> Iterator[Action]:
    """Its last executor was killed as planned, and what its point says was looked at: resume it where that was true."""
    last = trial.executors[-1]
    if last.check is not None and last.check.held and not situation.overdue:
        yield _resume(trial, last, cell)
    else:
        yield from _conclude(situation, trial, cell, LedgerRead(trial=trial.id, view=view))


def _conclude(situation: Situation, trial: TrialState, cell: Cell, read: LedgerRead) -> Iterator[Action]:
    """No further executor is due: let the frozen ones go on to their own end, then take the evidence and judge it."""
    frozen = trial.frozen
    yield from (Release(attempt=attempt.id) for attempt in frozen)
    if not frozen:
        yield Record(event=read)
        yield from _judge(situation, replace(trial, ledger=read), cell)


def _run(situation: Situation, trial: TrialState) -> str:
    return run_of(situation.journal, trial.id)


def _noise(situation: Situation, trial: TrialState, view: LedgerView | None) -> str | None:
    """What is not quiet yet about a trial whose attempts are all over; None when it is quiet."""
    if view is None:
        return situation.observed.ledger_fault or "payments has not answered for this run"
    if view.in_flight:
        return f"payments still has {view.in_flight} requests of the run in flight"
    frozen = {attempt.id for attempt in trial.frozen}
    for attempt in trial.attempts.keys() - frozen:  # a frozen one holds its sessions until it goes on
        sessions = situation.observed.sessions.get(attempt)
        if sessions is None:
            return f"the database could not be asked for sessions of attempt {attempt}"
        if sessions:
            return f"the database still holds {sessions} sessions of attempt {attempt}"
    return None


def _settling_is_over(situation: Situation, trial: TrialState) -> bool:
    last_ended_ms = max((attempt.ended_ms or attempt.intended_ms for attempt in trial.attempts.values()), default=0)
    return situation.observed.now_ms - last_ended_ms > situation.experiment.limits.settle_seconds * 1000


def _check(situation: Situation, trial: TrialState, cell: Cell, view: LedgerView) -> Iterator[Action]:
    """Ask whether the point was true of the world, and go on with the answer at once."""
    last = trial.executors[-1]
    point = last.scheduled or ""
    inspector = trial.inspector_of(last.id)
    if not needs_inspection(point):
        actions = {operation.action for operation in ordered_of(situation.experiment.seed, trial.id)}
        check = check_by_ledger(point, last.evidence, view, actions)
    elif inspector is None:
        yield Start(attempt=replace(last.id, role=Role.INSPECTOR), action="inspect", scheduled=None)
        return
    elif inspector.end is None:
        return
    else:
        check = check_by_inspection(point, inspector.end)
    yield Record(event=PointChecked(attempt=last.id, check=check))
    checked = replace(trial, attempts={**trial.attempts, last.id: replace(last, check=check)})
    yield from _go_on(situation, checked, cell, view)


def _resume(trial: TrialState, last: AttemptState, cell: Cell) -> Start:
    number = last.id.number
    at = cell.coordinates.kill.at
    scheduled = at[number] if number < len(at) else None
    return Start(
        attempt=AttemptId(trial=trial.id, number=number + 1),
        action="resume",
        scheduled=scheduled,
        method=cell.coordinates.kill.method,
    )


def _judgement(situation: Situation, trial: TrialState, cell: Cell) -> Judgement:
    return judge_safely(_evidence(situation, trial, cell))


def _evidence(situation: Situation, trial: TrialState, cell: Cell) -> TrialEvidence:
    return evidence_of(
        trial,
        run=_run(situation, trial),
        coordinates=cell.coordinates,
        ordered=ordered_of(situation.experiment.seed, trial.id),
    )


# --- starting trials -------------------------------------------------------------------------------------------


def _fresh_starts(situation: Situation, *, judged: int) -> Iterator[Action]:
    """First attempts of trials, controls first, as far as there is room.

    Those that are judged in this very pass make room, unless their judgement may be the last one.
    """
    leaving = 0 if situation.experiment.fail_fast else judged
    room = situation.experiment.parallelism - sum(1 for _ in open_trials(situation)) + leaving
    if room <= 0 or situation.experiment.suspended or _failed_fast(situation):
        return
    for trial, cell in islice(unstarted(situation), room):
        at = cell.coordinates.kill.at
        yield Start(
            attempt=AttemptId(trial=trial, number=1),
            action="start",
            scheduled=at[0] if at else None,
            method=cell.coordinates.kill.method,
        )


def _failed_fast(situation: Situation) -> bool:
    """Whether a trial is not as expected in an experiment that is to end at the first of them."""
    if not situation.experiment.fail_fast:
        return False
    state = situation.state
    return any(
        judgement is not None
        and met(judgement, expected) is False
        and set_apart(_evidence(situation, state.trials[take], cell), judgement, expected) is None
        for cell_id, cell in situation.plan.by_id.items()
        if cell_id in state.begun
        for expected in (rule_for(cell, situation.experiment.rules),)
        for number in cell.numbers
        if (take := state.last(cell_id, number)) is not None
        for judgement in (state.judgements.get(take),)
    )


def unstarted(situation: Situation) -> Iterator[tuple[TrialId, Cell]]:
    """The trials that can be started now: new ones, and new takes of those that infrastructure spoiled.

    In the order of the plan. Cells of which nothing is left to start are passed over at a glance.
    """
    allowed: dict[str, bool] = {}
    for cell_id, cell in situation.plan.by_id.items():
        again = sorted({take.number for take in situation.state.doubtful.get(cell_id, ())})
        new = _new(situation, cell_id, cell)
        if not again and not new:
            continue
        control = situation.plan.controls.get(cell_id)
        if control is not None and not cell.is_control:
            if control not in allowed:
                allowed[control] = _control_allows(situation, situation.plan.by_id[control])
            if not allowed[control]:
                continue
        for number in again:
            take = situation.state.last(cell_id, number)
            if take is not None and _wants_retry(situation, take, cell):
                yield replace(take, retry=take.retry + 1), cell
        for number in new:
            yield TrialId(cell=cell_id, number=number), cell


def _new(situation: Situation, cell_id: str, cell: Cell) -> range:
    """The trials of a cell that were never started."""
    return range(max(cell.numbers.start, situation.state.begun.get(cell_id, 0) + 1), cell.numbers.stop)


def _wants_retry(situation: Situation, take: TrialId, cell: Cell) -> bool:
    """Whether a trial is run again.

    One that showed harm that was not expected is kept: what the ledger proves is not thrown away.
    """
    judgement = situation.state.judgements.get(take)
    return (
        judgement is not None
        and (_is_spoiled(situation, judgement, cell) or _is_control_set_apart(situation, take, cell))
        and spoiled_takes(situation.state, take) <= situation.experiment.limits.inconclusive_retries
        and take.retry < TAKES_MAX
    )


def _is_spoiled(situation: Situation, judgement: Judgement, cell: Cell) -> bool:
    return (
        any(finding.cause in RETRIED_CAUSES for finding in judgement.findings)
        and not judgement.conclusive
        and met(judgement, rule_for(cell, situation.experiment.rules)) is None
    )


def _is_control_set_apart(situation: Situation, take: TrialId, cell: Cell) -> bool:
    """A control that the framework's own error ended shows no normal run: without one its cells prove nothing."""
    trial = situation.state.trials[take] if cell.is_control else None
    if trial is None or trial.judgement is None:
        return False
    rule = rule_for(cell, situation.experiment.rules)
    return set_apart(_evidence(situation, trial, cell), trial.judgement, rule) is not None


def spoiled_takes(state: RunState, last: TrialId) -> int:
    """How many takes infrastructure has spoiled. Those that killpoint's own end broke off are no fault to count."""
    takes = (state.judgements.get(replace(last, retry=retry)) for retry in range(last.retry + 1))
    return sum(
        judgement is not None and all(finding.cause is not Cause.INTERRUPTED for finding in judgement.findings)
        for judgement in takes
    )


def _control_allows(situation: Situation, control: Cell) -> bool:
    """Whether a control is through and shows that its setup works at all."""
    state = situation.state
    takes = [state.last(control.id, number) for number in control.numbers]
    through = all(
        take is not None and take in state.judgements and not _wants_retry(situation, take, control) for take in takes
    )
    return through and not control_failed(state, control)


def control_failed(state: RunState, control: Cell) -> bool:
    """Whether no trial of a control came to a conclusion, so that those of its cells would prove nothing."""
    takes = [take for number in control.numbers if (take := state.last(control.id, number)) is not None]
    judgements = [state.judgements.get(take) for take in takes]
    return bool(takes) and all(judgement is not None and not judgement.conclusive for judgement in judgements)


def _nothing_left(situation: Situation) -> bool:
    if any(True for _ in open_trials(situation)):
        return False
    if situation.overdue or _failed_fast(situation):
        return True
    return not any(True for _ in unstarted(situation))
