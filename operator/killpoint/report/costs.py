"""What a setup costs: a normal run, a recovery, the writing of checkpoints. Counted from times in the evidence."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from killpoint.model.evidence import AttemptEvidence, OutcomeWord
from killpoint.model.summary import CellSummary, TrialRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Five numbers of a sample: its ends, its quarters and its middle."""

    n: int
    least: float
    lower: float
    median: float
    upper: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Of one setup, in milliseconds. None: no trial tells."""

    setup: str
    normal: Spread | None
    """A control's attempt, from the start of its process to its end."""
    recovery: Spread | None
    """The last attempt of a killed trial that finished, likewise."""
    checkpoint: Spread | None
    """What the worker says it spent on writing checkpoints, in each attempt of a control."""
    effects: float | None
    """The mean number of effects in a killed trial, where one is ordered."""


def costs_of(cells: Iterable[CellSummary], action: str) -> tuple[Costs, ...]:
    """A row for each setup, in the order in which they were planned."""
    by_setup: dict[str, list[CellSummary]] = {}
    for summary in cells:
        by_setup.setdefault(summary.cell.coordinates.setup, []).append(summary)
    return tuple(_costs(setup, kept, action) for setup, kept in by_setup.items())


def spread(sample: Sequence[float]) -> Spread | None:
    if not sample:
        return None
    least, most, median = min(sample), max(sample), statistics.median(sample)
    lower, upper = (median, median) if len(sample) == 1 else _quarters(sample)
    return Spread(n=len(sample), least=least, lower=lower, median=median, upper=upper, most=most)


def _quarters(sample: Sequence[float]) -> tuple[float, float]:
    lower, _, upper = statistics.quantiles(sample, n=4, method="inclusive")
    return lower, upper


def _costs(setup: str, cells: list[CellSummary], action: str) -> Costs:
    controls = [record for summary in cells if summary.cell.is_control for record in summary.trials]
    killed = [record for summary in cells if not summary.cell.is_control for record in summary.trials]
    effects = [
        number
        for summary in cells
        if not summary.cell.is_control
        for number in summary.effects(action)
        if number is not None
    ]
    return Costs(
        setup=setup,
        normal=spread(_times(controls, took, attempts=1)),
        recovery=spread(_times(killed, took, attempts=2)),
        checkpoint=spread(_times(controls, _checkpoint, attempts=1)),
        effects=statistics.fmean(effects) if effects else None,
    )


def _times(
    records: Iterable[TrialRecord], measure: Callable[[AttemptEvidence], float | None], *, attempts: int
) -> list[float]:
    """A measure of the last attempt of each judged trial that finished with at least so many attempts."""
    finished = (
        record.evidence.attempts[-1]
        for record in records
        if record.judgement is not None and len(record.evidence.attempts) >= attempts and _finished(record)
    )
    measured = (measure(attempt) for attempt in finished)
    return [time for time in measured if time is not None]


def _finished(record: TrialRecord) -> bool:
    end = record.evidence.attempts[-1].end
    return end is not None and end.outcome is not None and end.outcome.word is OutcomeWord.FINISHED


def took(attempt: AttemptEvidence) -> float | None:
    """From the start of an attempt to its end, in milliseconds."""
    if attempt.end is None:
        return None
    started = attempt.intended_ms if attempt.end.started_ms is None else attempt.end.started_ms
    return max(attempt.end.at_ms - started, 0)


def _checkpoint(attempt: AttemptEvidence) -> float | None:
    outcome = None if attempt.end is None else attempt.end.outcome
    return None if outcome is None else dict(outcome.timings_ms).get("checkpoint")
