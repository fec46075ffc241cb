"""What became of a trial and of a cell, in the words that every format uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

from killpoint.api.replays import replay_words
from killpoint.model.findings import Verdict
from killpoint.model.summary import CellSummary, Expected, ExperimentSummary, TrialRecord
from killpoint.report.words import count, listing, percent, printable

HARM = frozenset(
    {
        Verdict.PHANTOM,
        Verdict.WRONG_PAYLOAD,
        Verdict.DUPLICATE,
        Verdict.LOST,
        Verdict.DIVERGENT,
        Verdict.STRANDED,
    }
)
"""Verdicts that say that something went wrong outside, expected or not."""

HARMLESS = frozenset({Verdict.EXACTLY_ONCE, Verdict.WITHHELD, Verdict.INCONCLUSIVE})

MEANINGS = {
    Verdict.PHANTOM: "an effect that nothing valid ordered",
    Verdict.WRONG_PAYLOAD: "another amount, order or currency than ordered",
    Verdict.DUPLICATE: "an operation more than once",
    Verdict.LOST: "finished is claimed, an ordered effect is missing",
    Verdict.DIVERGENT: "claims and ledger do not reconcile",
    Verdict.INCONCLUSIVE: "proves nothing",
    Verdict.STRANDED: "neither finished nor a declared stop",
    Verdict.WITHHELD: "a declared stop, and no effect beyond what was valid",
    Verdict.EXACTLY_ONCE: "as ordered, and finished",
}


class Standing(StrEnum):
    """Where a trial counts."""

    EXPECTED = "as expected"
    UNEXPECTED = "not expected"
    INCONCLUSIVE = "inconclusive"
    SET_APART = "set apart"
    PENDING = "not judged"


class Mark(StrEnum):
    """Whether a cell's expectation is met. Never MET where it is not known."""

    MET = "="
    UNMET = "≠"
    UNKNOWN = "?"
    PENDING = "…"


def standing(record: TrialRecord) -> Standing:
    if record.judgement is None:
        return Standing.PENDING
    if record.set_apart is not None:
        return Standing.SET_APART
    if record.met is False:
        # Harm that nobody expected counts, whatever became of the kill.
        return Standing.UNEXPECTED
    return Standing.EXPECTED if record.met and record.judgement.conclusive else Standing.INCONCLUSIVE


def mark(cell: CellSummary) -> Mark:
    if cell.met is not None:
        return Mark.MET if cell.met else Mark.UNMET
    pending = any(standing(record) is Standing.PENDING for record in cell.trials) or not cell.trials
    return Mark.PENDING if pending else Mark.UNKNOWN


def counted(cell: CellSummary) -> tuple[TrialRecord, ...]:
    """The trials that the cell's verdict rests on."""
    return tuple(r for r in cell.trials if standing(r) in {Standing.EXPECTED, Standing.UNEXPECTED})


def tally(records: Iterable[TrialRecord]) -> tuple[tuple[Verdict, int], ...]:
    """Verdict → number of trials, worst first. Trials that are not judged are left out."""
    counts = Counter(record.judgement.verdict for record in records if record.judgement is not None)
    return tuple(sorted(counts.items(), key=lambda item: -item[0].severity))


def verdict_words(cell: CellSummary) -> str:
    """``duplicate``, ``2 duplicate, 3 exactly-once``; the standing of its trials where none counts."""
    verdicts = tally(counted(cell))
    if len(verdicts) == 1:
        return verdicts[0][0].value
    if verdicts:
        return ", ".join(f"{number} {verdict}" for verdict, number in verdicts)
    standings = {standing(record) for record in cell.trials}
    return standings.pop().value if len(standings) == 1 else "not known" if standings else "not run"


def notes(cell: CellSummary) -> tuple[str, ...]:
    """What a cell's verdict leaves out: ``1 set apart``, ``2 inconclusive``."""
    standings = Counter(standing(record) for record in cell.trials)
    shown = (Standing.SET_APART, Standing.INCONCLUSIVE, Standing.PENDING)
    words = [f"{standings[one]} {one}" for one in shown if standings[one] and standings[one] < len(cell.trials)]
    unproven = [r for r in cell.trials if standing(r) is Standing.INCONCLUSIVE]
    harm = [(verdict, number) for verdict, number in tally(unproven) if verdict in HARM]
    return (*words, *(f"{number} of them {verdict}" for verdict, number in harm))


def expected_words(expected: Expected) -> str:
    """``exactly-once``, ``duplicate, 2 charges``: what a rule allows."""
    words = [listing((verdict.value for verdict in expected.verdicts), "or")]
    words += [count(number, action) for action, number in expected.effects]
    if expected.outcomes:
        words.append("outcome " + listing(expected.outcomes, "or"))
    words += [
        f"{percent(share.least)} to {percent(share.most)} of trials {share.verdict.value}" for share in expected.shares
    ]
    if expected.framework_errors is not None:
        words.append(f"at most {expected.framework_errors.most} set apart")
    return ", ".join(words)


def primary_action(summary: ExperimentSummary) -> str:
    """The action whose effects the matrix shows: ``charge`` where it is ordered, else the first that is."""
    ordered = ordered_actions(summary)
    return "charge" if not ordered or "charge" in ordered else ordered[0]


def ordered_actions(summary: ExperimentSummary) -> tuple[str, ...]:
    """Every action that a job orders, in the order of the jobs."""
    return tuple(
        dict.fromkeys(
            ordered.action for cell in summary.cells for record in cell.trials for ordered in record.evidence.ordered
        )
    )


def ledger_words(summary: ExperimentSummary) -> str:
    """``237 ordered, 286 witnessed, 49 duplicate, 0 lost``."""
    totals = summary.totals
    return (
        f"{totals.effects_ordered:,} ordered, {totals.effects_witnessed:,} witnessed, "
        f"{totals.effects_duplicate:,} duplicate, {totals.effects_lost:,} lost"
    )


def other_reasons(summary: ExperimentSummary) -> tuple[str, ...]:
    """The result's reasons that are not a cell's own: those stand with the cell."""
    own = tuple(reason for cell in summary.cells if cell.met is not True for reason in cell.reasons)
    return tuple(reason for reason in summary.reasons if not any(part in reason for part in own))


def example(cell: CellSummary) -> TrialRecord | None:
    """The trial that shows best what is wrong with a cell, or None where nothing is."""
    order = (Standing.UNEXPECTED, Standing.INCONCLUSIVE, Standing.SET_APART)
    found = [record for record in cell.trials if standing(record) in order]
    return min(found, key=lambda record: order.index(standing(record)), default=None)


def replay(summary: ExperimentSummary, record: TrialRecord) -> str:
    """The command that runs a trial again, or why there is none."""
    return printable(replay_words(summary.provenance, record.evidence))
