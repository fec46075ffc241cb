"""Journals of many thousand trials, told event by event as the engine writes them, and folded and judged as it does."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto

from killpoint.core.judge import judge
from killpoint.core.plan import ordered_of, plan, run_of
from killpoint.core.state import RunState, evidence_of, fold
from killpoint.core.summarize import run_from_state, summarize, verdict_on
from killpoint.model.cells import AttemptId, Cell, TrialId
from killpoint.model.events import (
    AttemptEnded,
    AttemptIntended,
    AttemptLaunched,
    Event,
    LedgerRead,
    PointChecked,
    Recorded,
    RunEnded,
    RunOpened,
    ServicesSeen,
    TrialJudged,
)
from killpoint.model.evidence import (
    AttemptEnd,
    Claim,
    Effect,
    EndReason,
    LedgerView,
    Outcome,
    OutcomeWord,
    PointCheck,
    PointPassed,
    Request,
    RequestOutcome,
)
from killpoint.model.experiment import Experiment
from killpoint.model.summary import ExperimentSummary, Provenance

JOURNAL = "0badcafe"
STARTED_MS = 1_764_520_000_000
POINTS = ("prepare.before", "prepare.after", "charge.before", "charge.sent", "charge.after", "charge.recorded")
PROVENANCE = Provenance(
    killpoint="0",
    substrate="kubernetes",
    seed=1,
    started_ms=STARTED_MS,
    ended_ms=STARTED_MS + 1000,
    versions=(),
    platform=(),
    command="",
    replay="killpoint replay thousands",
)


class Story(Enum):
    """What becomes of a killed trial."""

    ONCE = auto()
    TWICE = auto()
    LOST = auto()
    """The resume says that it finished, and has not charged."""
    STRANDED = auto()
    """The resume raises."""
    STRAY = auto()
    """Something happens that was never ordered."""
    SILENT = auto()
    """The first attempt says rubbish, and nothing is known."""


@dataclass(kw_only=True)
class Teller:
    """Tells the events of trial after trial. ``words`` is what a worker says where something goes wrong."""

    experiment: Experiment
    words: str = ""

    def __post_init__(self) -> None:
        self._sequence = itertools.count(1)

    def opening(self) -> Iterator[Recorded]:
        yield self.recorded(RunOpened(experiment=self.experiment.name, spec_digest="0" * 64, seed=1))
        yield self.recorded(ServicesSeen(database="db-1", payments="boot-1"))

    def ended(self, state: RunState) -> RunState:
        run = run_from_state(self.experiment, plan(self.experiment, {}), state, journal=JOURNAL)
        return fold(state, [self.recorded(RunEnded(result=verdict_on(run)))])

    def trial(self, cell: Cell, number: int, story: Story) -> list[Recorded]:
        """A trial with its judgement, from its first intent on."""
        trial = TrialId(cell=cell.id, number=number)
        events: list[Event] = []
        attempts = [AttemptId(trial=trial, number=1 + place) for place in range(len(cell.coordinates.kill.at) + 1)]
        for attempt in attempts:
            at = cell.coordinates.kill.at
            scheduled = at[attempt.number - 1] if attempt.number <= len(at) else None
            events += self._attempt(attempt, story, scheduled)
        events.append(LedgerRead(trial=trial, view=self._view(attempts, story)))
        recorded = [self.recorded(event) for event in events]
        state = fold(RunState(), recorded).trials[trial]
        ordered = ordered_of(self.experiment.seed, trial)
        evidence = evidence_of(state, run=run_of(JOURNAL, trial), coordinates=cell.coordinates, ordered=ordered)
        return [*recorded, self.recorded(TrialJudged(trial=trial, judgement=judge(evidence)))]

    def recorded(self, event: Event) -> Recorded:
        sequence = next(self._sequence)
        return Recorded(sequence=sequence, at_ms=STARTED_MS + sequence, event=event)

    def _attempt(self, attempt: AttemptId, story: Story, scheduled: str | None) -> Iterator[Event]:
        yield AttemptIntended(
            attempt=attempt,
            run=run_of(JOURNAL, attempt.trial),
            action="start" if attempt.number == 1 else "resume",
            scheduled=scheduled,
            nonce=f"nonce-{attempt}",
        )
        yield AttemptLaunched(attempt=attempt)
        yield AttemptEnded(attempt=attempt, end=self._end(attempt, story, scheduled))
        if scheduled is not None and story is not Story.SILENT:
            yield PointChecked(
                attempt=attempt, check=PointCheck(point=scheduled, held=True, detail="its charge stands")
            )

    def _end(self, attempt: AttemptId, story: Story, scheduled: str | None) -> AttemptEnd:
        at_ms = STARTED_MS + 900 * attempt.number
        passed = POINTS if scheduled is None else POINTS[: POINTS.index(scheduled) + 1]
        points = tuple(PointPassed(point=point, at_ms=at_ms) for point in passed)
        if scheduled is not None:
            silent = story is Story.SILENT
            return AttemptEnd(
                reason=EndReason.EXITED if silent else EndReason.SIGNALED,
                exit_code=1 if silent else 137,
                at_ms=at_ms,
                points=() if silent else points,
                fault=f"line 1 of the termination log: not JSON: {self.words}" if silent else None,
            )
        if story is Story.STRANDED:
            failed = Outcome(word=OutcomeWord.FAILED, error_class="RuntimeError", error_message=self.words)
            return AttemptEnd(reason=EndReason.EXITED, exit_code=1, at_ms=at_ms, points=points[:1], outcome=failed)
        order = ordered_of(self.experiment.seed, attempt.trial)[0].order
        claims = (Claim(action="charge", order=order, effect=f"ch_{attempt.trial}_{attempt.number}"),)
        outcome = Outcome(word=OutcomeWord.FINISHED, claims=None if story is Story.LOST else claims)
        return AttemptEnd(reason=EndReason.EXITED, exit_code=0, at_ms=at_ms, points=points, outcome=outcome)

    def _view(self, attempts: list[AttemptId], story: Story) -> LedgerView:
        charging = attempts if story is Story.TWICE else attempts[-1:]
        made = [] if story is Story.LOST else [self._effect(attempt, "charge") for attempt in charging]
        made += [self._effect(attempts[-1], "finalize")]
        if story is Story.STRAY:
            made.append(self._effect(attempts[-1], "gift"))
        return LedgerView(effects=tuple(made), requests=tuple(map(self._request, made)), boot="boot-1")

    def _effect(self, attempt: AttemptId, action: str) -> Effect:
        charge = ordered_of(self.experiment.seed, attempt.trial)[0]
        return Effect(
            id=f"{action[:2]}_{attempt.trial}_{attempt.number}",
            action=action,
            order=charge.order,
            amount=charge.amount if action == "charge" else 0,
            currency=charge.currency if action == "charge" else "",
            run=run_of(JOURNAL, attempt.trial),
            attempt=str(attempt),
            at_ms=STARTED_MS,
        )

    def _request(self, effect: Effect) -> Request:
        return Request(
            attempt=effect.attempt,
            action=effect.action,
            order=effect.order,
            outcome=RequestOutcome.COMMITTED,
            status=201,
            effect=effect.id,
            received_ms=effect.at_ms,
            answered_ms=effect.at_ms,
        )


def told(experiment: Experiment, story: Callable[[Cell, int], Story], *, words: str = "") -> RunState:
    """The state after every trial of an experiment, and its end. ``story``: of a killed cell's trial, by its number."""
    teller = Teller(experiment=experiment, words=words)
    trials = (
        teller.trial(cell, number, Story.ONCE if cell.is_control else story(cell, number))
        for cell in plan(experiment, {}).cells
        for number in cell.numbers
    )
    return teller.ended(fold(RunState(), itertools.chain(teller.opening(), itertools.chain.from_iterable(trials))))


def summary_of(experiment: Experiment, state: RunState) -> ExperimentSummary:
    return summarize(run_from_state(experiment, plan(experiment, {}), state, journal=JOURNAL), PROVENANCE)
