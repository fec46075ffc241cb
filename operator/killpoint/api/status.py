"""From a summary to the status that a cluster stores and ``-o json`` prints. Pure."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from killpoint.api.conditions import MESSAGE_CHARACTERS_MAX, Standing, conditions_of
from killpoint.api.replays import replay_words
from killpoint.api.v1alpha1 import status as v1
from killpoint.model.cells import Cell, Kill
from killpoint.model.evidence import AttemptEvidence, OutcomeWord
from killpoint.model.findings import Finding
from killpoint.model.lines import one_line
from killpoint.model.summary import CellSummary, ExperimentSummary, Provenance, Totals, TrialRecord

NAME_CHARACTERS_MAX = 512
COMMAND_CHARACTERS_MAX = 2048
ENTRIES_MAX = 32
MESSAGE_FACTOR = MESSAGE_CHARACTERS_MAX // v1.REASON_CHARACTERS_MAX
"""How many times as long as a reason the message of a condition may be."""
BASE_BYTES_MAX = v1.BYTES_MAX * 6 // 10
"""Of all but the cells, so that there is room for the worst of them."""
TEXT_CHARACTERS = (v1.REASON_CHARACTERS_MAX, 256, 128, 64)
"""How long a text may be: the first one with which there is room enough."""
_MET: Mapping[bool | None, v1.Known] = {True: "True", False: "False", None: "Unknown"}


def status_of(
    summary: ExperimentSummary,
    *,
    generation: int | None = None,
    report: v1.Report | None = None,
    standing: Standing | None = None,
) -> v1.Status:
    """The status of a run, never larger than ``BYTES_MAX`` as JSON: cells that there is no room for are counted."""
    tries = (
        _without_cells(summary, generation=generation, report=report, standing=standing, characters=characters)
        for characters in TEXT_CHARACTERS
    )
    status = next(tries)
    while bytes_of(document_of(status)) > BASE_BYTES_MAX and (shorter := next(tries, None)) is not None:
        status = shorter
    return _with_cells(status, summary)


def _without_cells(
    summary: ExperimentSummary,
    *,
    generation: int | None,
    report: v1.Report | None,
    standing: Standing | None,
    characters: int,
) -> v1.Status:
    """All that does not grow with the experiment, with texts of at most so many characters."""
    failures, counted = _failures(summary)
    provenance = summary.provenance
    started = time_of(provenance.started_ms)
    ended = None if provenance.ended_ms is None else time_of(provenance.ended_ms)
    conditions = conditions_of(summary, generation=generation, started=started, ended=ended, standing=standing)
    return v1.Status(
        observed_generation=generation,
        phase=_phase(summary),
        result=summary.result,
        reasons=_some(summary.reasons, v1.REASONS_MAX, characters),
        conditions=tuple(
            condition.model_copy(update={"message": _cut(condition.message, characters * MESSAGE_FACTOR)})
            for condition in conditions
        ),
        start_time=started,
        completion_time=ended,
        progress=f"{summary.totals.judged}/{summary.totals.trials}",
        trials=_trials(summary.totals),
        kills=v1.Kills(planned=summary.totals.kills_planned, confirmed=summary.totals.kills_confirmed),
        effects=_effects(summary.totals),
        failures=tuple(_failure(summary.provenance, cell, record, characters) for cell, record in failures),
        failures_left_out=counted - len(failures),
        report=report,
        journal_id=summary.journal or None,
        provenance=_provenance(provenance, characters),
    )


def document_of(status: v1.Status) -> dict[str, object]:
    """A status as a JSON document. What is not known is absent."""
    return status.model_dump(mode="json", exclude_none=True)


def bytes_of(document: object) -> int:
    """How large a document is in the largest of the ways in which it is written as JSON.

    A client may escape all that is not ASCII, and Go escapes what has a meaning in HTML.
    """
    text = json.dumps(document)
    return len(text) + sum(map(text.count, "<>&")) * (len("\\u003c") - 1)


def fitted(document: Mapping[str, Any]) -> dict[str, Any]:
    """A status with as many of its cells, the worst first, as there is room for. The others are counted."""
    cells = list(document.get("cells", ()))
    left = v1.LeftOut.model_validate(document.get("cellsLeftOut", {}))
    fits = dict(document)
    while cells and bytes_of(fits) > v1.BYTES_MAX:
        cell = cells.pop()
        left = v1.LeftOut(
            cells=left.cells + 1,
            unmet=left.unmet + (cell["met"] == "False"),
            unknown=left.unknown + (cell["met"] == "Unknown"),
            trials=left.trials + cell["trials"],
        )
        fits |= {"cells": cells, "cellsLeftOut": left.model_dump(mode="json")}
    return fits


def time_of(milliseconds: int) -> str:
    """A time as Kubernetes writes it: UTC, in seconds."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _phase(summary: ExperimentSummary) -> v1.Phase:
    if summary.result is not None:
        return "Complete"
    started = any(record.evidence.attempts for cell in summary.cells for record in cell.trials)
    return "Running" if started else "Pending"


def _trials(totals: Totals) -> v1.Trials:
    return v1.Trials(
        planned=totals.trials,
        judged=totals.judged,
        controls=totals.controls,
        set_apart=totals.set_apart,
        retries=totals.retries,
        verdicts={verdict.value: count for verdict, count in totals.verdicts},
    )


def _effects(totals: Totals) -> v1.Effects:
    return v1.Effects(
        ordered=totals.effects_ordered,
        witnessed=totals.effects_witnessed,
        duplicate=totals.effects_duplicate,
        lost=totals.effects_lost,
    )


def _provenance(provenance: Provenance, characters: int) -> v1.ProvenanceStatus:
    return v1.ProvenanceStatus(
        killpoint=provenance.killpoint,
        substrate=provenance.substrate,
        seed=provenance.seed,
        versions={setup: _words(versions, characters) for setup, versions in provenance.versions[:ENTRIES_MAX]},
        platform=_words(provenance.platform, characters),
        command=_cut(provenance.command, COMMAND_CHARACTERS_MAX),
    )


# --- cells -----------------------------------------------------------------------------------------------------------


def _with_cells(status: v1.Status, summary: ExperimentSummary) -> v1.Status:
    """The cells, worst first, as long as there is room."""
    by_cell = {cell.cell.coordinates: cell for cell in summary.cells}
    shown = sorted(summary.cells, key=lambda cell: cell.rank)
    room = v1.BYTES_MAX - _bytes(status.model_copy(update={"cells_left_out": _left_out(shown)}))
    cells: list[v1.CellStatus] = []
    for cell in shown[: v1.CELLS_MAX]:
        entry = _cell(cell, by_cell.get(_control_of(cell.cell).coordinates))
        room -= _bytes(entry) + len(", ")
        if room < 0:
            break
        cells.append(entry)
    return status.model_copy(update={"cells": tuple(cells), "cells_left_out": _left_out(shown[len(cells) :])})


def _bytes(part: v1.Status | v1.CellStatus) -> int:
    return bytes_of(part.model_dump(mode="json", exclude_none=True))


def _left_out(cells: Sequence[CellSummary]) -> v1.LeftOut:
    return v1.LeftOut(
        cells=len(cells),
        unmet=sum(cell.met is False for cell in cells),
        unknown=sum(cell.met is None for cell in cells),
        trials=sum(len(cell.trials) for cell in cells),
    )


def _cell(summary: CellSummary, control: CellSummary | None) -> v1.CellStatus:
    counted = [record for record in summary.trials if record.judgement is not None and record.set_apart is None]
    verdicts = Counter(record.judgement.verdict.value for record in counted if record.judgement is not None)
    return v1.CellStatus(
        id=summary.cell.id,
        coordinates=_words(summary.cell.coordinates.words().items()),
        control=summary.cell.is_control,
        met=_MET[summary.met],
        trials=len(summary.trials),
        judged=sum(record.judgement is not None for record in summary.trials),
        set_apart=sum(record.set_apart is not None for record in summary.trials),
        verdicts=dict(verdicts),
        effects=_histograms(summary),
        expected=v1.ExpectedStatus(
            source=summary.expected.source,
            verdicts=summary.expected.verdicts,
            effects=dict(summary.expected.effects),
        ),
        rates=tuple(
            v1.RateStatus(
                verdict=rate.verdict, count=rate.count, of=rate.of, low=round(rate.low, 4), high=round(rate.high, 4)
            )
            for rate in summary.rates
        ),
        milliseconds=_times(summary, control),
        reasons=_some(summary.reasons, v1.CELL_REASONS_MAX),
    )


def _histograms(summary: CellSummary) -> tuple[v1.Histogram, ...]:
    judged = [record.judgement for record in summary.trials if record.judgement is not None]
    actions = dict.fromkeys(action for judgement in judged for action, _ in judgement.effects)
    entries = (
        v1.Histogram(action=action, count=count, trials=trials)
        for action in actions
        for count, trials in sorted(Counter(summary.effects(action)).items(), key=_count_of)
        if count is not None
    )
    return tuple(entries)[:64]


def _count_of(item: tuple[int | None, int]) -> int:
    return -1 if item[0] is None else item[0]


# --- times -----------------------------------------------------------------------------------------------------------


def _times(summary: CellSummary, control: CellSummary | None) -> v1.Times:
    records = [record for record in summary.trials if _finished(record)]
    controls = [record for record in (control.trials if control else ()) if _finished(record)]
    attempts = [attempt for record in records for attempt in record.evidence.attempts]
    return v1.Times(
        normal=_median(_took(record.evidence.attempts[-1]) for record in controls),
        recovery=None
        if summary.cell.is_control
        else _median(_took(record.evidence.attempts[-1]) for record in records if len(record.evidence.attempts) > 1),
        checkpoint=_median(_checkpoint(attempt) for attempt in attempts),
    )


def _control_of(cell: Cell) -> Cell:
    return replace(cell, coordinates=replace(cell.coordinates, kill=Kill()))


def _median(times: Iterable[float | None]) -> int | None:
    known = [time for time in times if time is not None]
    return round(statistics.median(known)) if known else None


def _finished(record: TrialRecord) -> bool:
    attempts = record.evidence.attempts
    end = attempts[-1].end if record.judgement is not None and attempts else None
    return end is not None and end.outcome is not None and end.outcome.word is OutcomeWord.FINISHED


def _took(attempt: AttemptEvidence) -> float | None:
    if attempt.end is None:
        return None
    started = attempt.intended_ms if attempt.end.started_ms is None else attempt.end.started_ms
    return max(attempt.end.at_ms - started, 0)


def _checkpoint(attempt: AttemptEvidence) -> float | None:
    outcome = None if attempt.end is None else attempt.end.outcome
    return None if outcome is None else dict(outcome.timings_ms).get("checkpoint")


# --- failures --------------------------------------------------------------------------------------------------------


def _failures(summary: ExperimentSummary) -> tuple[Sequence[tuple[CellSummary, TrialRecord]], int]:
    """Examples, and how many failures there are: one trial of each cell before a second one of any, the worst first."""
    failed = [
        (number, -severity, cell, record)
        for cell in summary.cells
        for number, (severity, record) in enumerate(_worst_first(cell))
    ]
    failed.sort(key=lambda item: item[:2])
    return [(cell, record) for _, _, cell, record in failed[: v1.FAILURES_MAX]], len(failed)


def _worst_first(cell: CellSummary) -> list[tuple[int, TrialRecord]]:
    """The trials of a cell that are not as expected, each with how bad it is."""
    failed = [
        (record.judgement.verdict.severity, record)
        for record in cell.trials
        if record.met is False and record.judgement is not None
    ]
    return sorted(failed, key=lambda item: -item[0])


def _failure(provenance: Provenance, cell: CellSummary, record: TrialRecord, characters: int) -> v1.Failure:
    if record.judgement is None:
        raise ValueError(f"trial {record.evidence.id} has no judgement")
    worst: Finding = max(record.judgement.findings, key=lambda finding: finding.verdict.severity)
    return v1.Failure(
        trial=str(record.evidence.id),
        cell=cell.cell.id,
        verdict=worst.verdict,
        reason=_cut(one_line(worst.reason), characters),
        replay=_cut(replay_words(provenance, record.evidence), NAME_CHARACTERS_MAX),
    )


def _words(pairs: Iterable[tuple[str, str]], characters: int = NAME_CHARACTERS_MAX) -> dict[str, str]:
    return {name: _cut(value, characters) for name, value in list(pairs)[:ENTRIES_MAX]}


def _some(reasons: Sequence[str], most: int, characters: int = v1.REASON_CHARACTERS_MAX) -> tuple[str, ...]:
    """All of them, or the first ones and how many more there are."""
    first = reasons if len(reasons) <= most else reasons[: most - 1]
    shown = tuple(_cut(one_line(reason), characters) for reason in first)
    return shown if len(first) == len(reasons) else (*shown, f"and {len(reasons) - len(first):,} more")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
