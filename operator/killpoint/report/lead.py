"""The result in a sentence or two: what happened, how much of it was expected, and what was not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from killpoint.model.findings import Result, Verdict
from killpoint.model.summary import CellSummary, ExperimentSummary, TrialRecord
from killpoint.report.layout import arrange
from killpoint.report.resends import resend_words
from killpoint.report.scope import scope_of
from killpoint.report.standing import (
    HARM,
    Standing,
    expected_words,
    primary_action,
    standing,
    tally,
)
from killpoint.report.words import count, listing

HAPPENED = {
    Verdict.PHANTOM: "had an effect that nobody ordered",
    Verdict.WRONG_PAYLOAD: "had a wrong payload",
    Verdict.DUPLICATE: "had an operation more than once",
    Verdict.LOST: "lost an effect",
    Verdict.DIVERGENT: "claimed other than the ledger shows",
    Verdict.STRANDED: "stranded",
}
RUNNING = "Running"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece of the sentence. ``alarm``: what was not expected."""

    text: str
    alarm: bool = False


def result_word(result: Result | None) -> str:
    return RUNNING if result is None else result.value


def lead(summary: ExperimentSummary) -> tuple[Part, ...]:
    """The sentences under the name of the experiment."""
    match summary.result:
        case None:
            judged = f"{summary.totals.judged:,} of {count(summary.totals.trials, 'trial')} judged so far. "
            return (Part(text=judged), *_what_happened(summary), *_unexpected(summary))
        case Result.ERROR:
            none = "No trial was judged. " if summary.totals.judged == 0 else ""
            why = summary.reasons[0] if summary.reasons else "The experiment could not be executed."
            return (Part(text=none + why),)
        case Result.FAIL:
            return (*_what_happened(summary), *_unexpected(summary))
        case Result.INCONCLUSIVE:
            return (*_proven(summary), *_what_happened(summary), *_unexpected(summary))
        case Result.PASS:
            return (*_what_happened(summary), Part(text=_why_harm(summary)))


def lead_text(summary: ExperimentSummary) -> str:
    return "".join(part.text for part in lead(summary)).strip()


def _records(cells: Iterable[CellSummary]) -> list[TrialRecord]:
    return [record for cell in cells for record in cell.trials]


def _what_happened(summary: ExperimentSummary) -> tuple[Part, ...]:
    judged = [record for record in _records(summary.cells) if standing(record) is not Standing.PENDING]
    kept = [record for record in judged if standing(record) is not Standing.SET_APART]
    harm = [(verdict, number) for verdict, number in tally(kept) if verdict in HARM]
    if not kept:
        return ()
    if not harm:
        once = sum(number for verdict, number in tally(kept) if verdict is Verdict.EXACTLY_ONCE)
        return (Part(text=f"{once:,} of {count(len(judged), 'trial')} had each effect exactly once, none did harm. "),)
    (verdict, number), *others = harm
    first = f"{number:,} of {count(len(judged), 'trial')} {_verb(summary, kept, verdict)}"
    words = listing([first, *(f"{times:,} {_verb(summary, kept, other)}" for other, times in others)])
    as_expected = ", as expected. " if sum(times for _, times in harm) == 1 else ", all as expected. "
    end = as_expected if summary.result is Result.PASS else ". "
    return (Part(text=words + end),)


def _verb(summary: ExperimentSummary, records: list[TrialRecord], verdict: Verdict) -> str:
    """``charged twice`` where every duplicate is that, else what happened in general words."""
    action = primary_action(summary)
    if verdict is not Verdict.DUPLICATE or action != "charge":
        return HAPPENED[verdict]
    doubled = [record.judgement for record in records if record.judgement and record.judgement.verdict is verdict]
    charges = {dict(judgement.effects).get(action, 0) for judgement in doubled}
    return "charged twice" if charges == {2} else "charged more than once" if min(charges) > 1 else HAPPENED[verdict]


def _unexpected(summary: ExperimentSummary) -> tuple[Part, ...]:
    cells = [cell for cell in summary.cells if cell.met is False]
    if not cells:
        return ()
    trials = sum(standing(record) is Standing.UNEXPECTED for record in _records(cells))
    where = scope_of(arrange(summary.cells)).name(cells)
    said = f"{count(len(cells), 'cell')} did not meet the expectation"
    number = f"{trials:,} {'was' if trials == 1 else 'were'} not as expected" if trials else said
    seen = _seen(record for record in _records(cells) if standing(record) is Standing.UNEXPECTED)
    asked = listing(dict.fromkeys(expected_words(cell.expected) for cell in cells), "or")
    return (Part(text=number, alarm=True), Part(text=f": {where}. {seen}{'E' if not seen else 'e'}xpected {asked}."))


def _seen(records: Iterable[TrialRecord]) -> str:
    """``Seen duplicate, ``, ``Seen 49 duplicate and 3 stranded, ``; empty where no single trial is to blame."""
    verdicts = tally(records)
    if len(verdicts) == 1:
        return f"Seen {verdicts[0][0]}, "
    return f"Seen {listing(f'{number:,} {verdict}' for verdict, number in verdicts)}, " if verdicts else ""


def _proven(summary: ExperimentSummary) -> tuple[Part, ...]:
    totals = summary.totals
    nothing = sum(standing(record) is Standing.INCONCLUSIVE for record in _records(summary.cells))
    kills = f"{totals.kills_confirmed:,} of {count(totals.kills_planned, 'kill')} confirmed. "
    trials = f"{count(nothing, 'trial')} {'proves' if nothing == 1 else 'prove'} nothing. " if nothing else ""
    contrary = any(cell.met is False for cell in summary.cells)
    return (Part(text=kills + trials + ("" if contrary else "No trial contradicts its expectation. ")),)


def _why_harm(summary: ExperimentSummary) -> str:
    doubled = [
        record
        for record in _records(summary.cells)
        if record.judgement is not None and not record.set_apart and record.judgement.verdict is Verdict.DUPLICATE
    ]
    return resend_words(doubled, primary_action(summary), part=True) if doubled else ""
