"""From a summary to the status that a cluster stores and ``-o json`` prints. Pure."""

from __future__ import annotations

import shlex
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from killpoint.api.conditions import Standing, conditions_of
from killpoint.api.v1alpha1 import status as v1
from killpoint.model.cells import Cell, Kill
from killpoint.model.evidence import AttemptEvidence, OutcomeWord
from killpoint.model.findings import Finding
from killpoint.model.summary import CellSummary, ExperimentSummary, Provenance, Totals, TrialRecord

NAME_CHARACTERS_MAX = 512
COMMAND_CHARACTERS_MAX = 2048
ENTRIES_MAX = 32
_MET: Mapping[bool | None, v1.Known] = {True: "True", False: "False", None: "Unknown"}


def status_of(
    summary: ExperimentSummary,
    *,
    generation: int | None = None,
    report: v1.Report | None = None,
    standing: Standing | None = None,
) -> v1.Status:
    """The status of a run, never larger than ``BYTES_MAX`` as JSON: cells that there is no room for are counted."""
    provenance = summary.provenance
    started = time_of(provenance.started_ms)
    ended = None if provenance.ended_ms is None else time_of(provenance.ended_ms)
    base = v1.Status(
        observed_generation=generation,
        phase=_phase(summary),
        result=summary.result,
        reasons=tuple(_cut(reason) for reason in summary.reasons[: v1.REASONS_MAX]),
        conditions=conditions_of(summary, generation=generation, started=started, ended=ended, standing=standing),
        start_time=started,
        completion_time=ended,
        progress=f"{summary.totals.judged}/{summary.totals.trials}",
        trials=_trials(summary.totals),
        kills=v1.Kills(planned=summary.totals.kills_planned, confirmed=summary.totals.kills_confirmed),
        effects=_effects(summary.totals),
        failures=_failures(summary),
        report=report,
        journal_id=summary.journal or None,
        provenance=_provenance(provenance),
    )
    return _with_cells(base, summary)


def document_of(status: v1.Status) -> dict[str, object]:
    """A status as a JSON document. What is not known is absent."""
    return status.model_dump(mode="json", exclude_none=True)


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


def _provenance(provenance: Provenance) -> v1.ProvenanceStatus:
    return v1.ProvenanceStatus(
        killpoint=provenance.killpoint,
        substrate=provenance.substrate,
        seed=provenance.seed,
        versions={setup: _words(versions) for setup, versions in provenance.versions[:ENTRIES_MAX]},
        platform=_words(provenance.platform),
        command=_cut(provenance.command, COMMAND_CHARACTERS_MAX),
    )


# --- cells -----------------------------------------------------------------------------------------------------------


def _with_cells(status: v1.Status, summary: ExperimentSummary) -> v1.Status:
    """The cells, worst first, as long as there is room."""
    by_cell = {cell.cell.coordinates: cell for cell in summary.cells}
    shown = sorted(summary.cells, key=_badness)
    room = v1.BYTES_MAX - len(_json(status.model_copy(update={"cells_left_out": _left_out(shown)})))
    cells: list[v1.CellStatus] = []
    for cell in shown[: v1.CELLS_MAX]:
        entry = _cell(cell, by_cell.get(_control_of(cell.cell).coordinates))
        room -= len(_json(entry)) + len(",")
        if room < 0:
            break
        cells.append(entry)
    return status.model_copy(update={"cells": tuple(cells), "cells_left_out": _left_out(shown[len(cells) :])})


def _json(part: v1.Status | v1.CellStatus) -> bytes:
    return part.model_dump_json(exclude_none=True).encode()


def _badness(cell: CellSummary) -> tuple[int, int]:
    """Small is bad: cells that are not as expected, then those that are not known; among these by verdict."""
    verdicts = [record.judgement.verdict.severity for record in cell.trials if record.judgement is not None]
    return ((False, None, True).index(cell.met), -max(verdicts, default=0))


def _left_out(cells: Sequence[CellSummary]) -> v1.LeftOut:
    return v1.LeftOut(
        cells=len(cells),
        unmet=sum(cell.met is False for cell in cells),
        unknown=sum(cell.met is None for cell in cells),
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
        reasons=tuple(_cut(reason) for reason in summary.reasons[: v1.CELL_REASONS_MAX]),
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


def _failures(summary: ExperimentSummary) -> tuple[v1.Failure, ...]:
    """Examples: the worst verdicts first, and one trial of each cell before a second one of any."""
    failed = [
        (number, -record.judgement.verdict.severity, cell, record)
        for cell in summary.cells
        for number, record in enumerate(record for record in cell.trials if record.met is False)
        if record.judgement is not None
    ]
    failed.sort(key=lambda item: item[:2])
    return tuple(_failure(summary.name, cell, record) for _, _, cell, record in failed[: v1.FAILURES_MAX])


def _failure(name: str, cell: CellSummary, record: TrialRecord) -> v1.Failure:
    if record.judgement is None:
        raise ValueError(f"trial {record.evidence.id} has no judgement")
    worst: Finding = max(record.judgement.findings, key=lambda finding: finding.verdict.severity)
    return v1.Failure(
        trial=str(record.evidence.id),
        cell=cell.cell.id,
        verdict=worst.verdict,
        reason=_cut(worst.reason),
        replay=_cut(f"killpoint replay {shlex.quote(name)} {record.evidence.id}", NAME_CHARACTERS_MAX),
    )


def _words(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {name: _cut(value, NAME_CHARACTERS_MAX) for name, value in list(pairs)[:ENTRIES_MAX]}


def _cut(text: str, most: int = v1.REASON_CHARACTERS_MAX) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
