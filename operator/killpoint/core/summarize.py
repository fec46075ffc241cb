"""Summarize: from the journal's state to what the status, the terminal and the reports show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from killpoint.core.decide import ABORTED, control_failed
from killpoint.core.expectations import differences, met, set_apart
from killpoint.core.plan import Plan, ordered_of, run_of
from killpoint.core.state import RunState, TrialState, evidence_of
from killpoint.model.cells import Cell, TrialId
from killpoint.model.evidence import AttemptEnd, LedgerView, TrialEvidence
from killpoint.model.experiment import Experiment
from killpoint.model.findings import Judgement, Result, Verdict
from killpoint.model.intervals import interval
from killpoint.model.rules import Rule, rule_for
from killpoint.model.summary import (
    CellSummary,
    Expected,
    ExperimentSummary,
    Provenance,
    Rate,
    Totals,
    TrialRecord,
)

REASONS_MAX = 5
"""Of a cell, in the sentence that says why the experiment came out as it did."""


_READ = LedgerView()


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTrial:
    """A trial's last take: its evidence, its judgement if there is one, and how many takes were spoiled before."""

    evidence: TrialEvidence
    judgement: Judgement | None
    retries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a summary is made of, whether it comes from the journal or from a file of evidence."""

    name: str
    journal: str
    workflow: str
    rules: Sequence[Rule]
    cells: Sequence[tuple[Cell, Sequence[JudgedTrial]]]
    blocked: frozenset[str] = frozenset()
    """Cells that were not run because their control came to no conclusion."""
    undiscovered: int = 0
    narrowed: bool = False
    """Whether only a part of the experiment was run."""
    over: bool
    aborted: bool = False


def run_from_state(experiment: Experiment, plan: Plan, state: RunState, *, journal: str, thin: bool = False) -> Run:
    """A run as the journal knows it. ``thin``: without the part of the evidence that no status shows."""
    return Run(
        name=experiment.name,
        journal=journal,
        workflow=experiment.workflow,
        rules=experiment.rules,
        cells=[(cell, list(trials_of(experiment, state, cell, journal=journal, thin=thin))) for cell in plan.cells],
        blocked=frozenset(cell.id for cell in plan.cells if not cell.is_control and _blocked(plan, state, cell)),
        undiscovered=len(plan.undiscovered),
        narrowed=experiment.narrowed,
        over=state.result is not None,
        aborted=state.aborted,
    )


def summarize(run: Run, provenance: Provenance) -> ExperimentSummary:
    """The whole of a run. ``result`` is None while the run is not over."""
    cells = tuple(_cell_summary(run, cell, trials) for cell, trials in run.cells)
    return ExperimentSummary(
        name=run.name,
        journal=run.journal,
        result=_result_of(run, cells) if run.over else None,
        reasons=_reasons(cells, run) if run.over else (),
        aborted=run.aborted,
        workflow=run.workflow,
        cells=cells,
        totals=_totals(cells),
        provenance=provenance,
    )


def verdict_on(run: Run) -> Result:
    """The word for the experiment, as it will stand when the run is over."""
    return _result_of(run, [_cell_summary(run, cell, trials) for cell, trials in run.cells])


def _result_of(run: Run, cells: Sequence[CellSummary]) -> Result:
    """Fail before Inconclusive before Pass. Nothing run, or a kill not confirmed, is never a Pass."""
    if any(cell.met is False for cell in cells):
        return Result.FAIL
    if not cells or run.undiscovered or any(cell.met is None for cell in cells) or _idle_rules(run):
        return Result.INCONCLUSIVE
    return Result.PASS


def _idle_rules(run: Run) -> list[str]:
    """The expectations that held for no cell of the whole: what they were about was never seen.

    Before a run this is known of all but those about a point at which "*" was to kill.
    """
    if run.narrowed or run.undiscovered:
        return []
    return [rule.expected.source for rule in run.rules if not any(rule.matches(cell) for cell, _ in run.cells)]


def trials_of(
    experiment: Experiment, state: RunState, cell: Cell, *, journal: str, thin: bool = False
) -> Iterator[JudgedTrial]:
    """The trials of a cell, one after another: of many thousand, the evidence is not to be held all at once."""
    expected = rule_for(cell, experiment.rules)
    for number in cell.numbers:
        last = state.last(cell.id, number)
        take = TrialState(id=TrialId(cell=cell.id, number=number))
        if last is not None:
            take = state.trials[_shown(state, last, expected)]
        judged = _judged(experiment, cell, take, journal=journal)
        if thin:
            judgement = state.judgements.get(take.id)  # the one that is held anyway
            judged = replace(judged, evidence=thinned(judged.evidence), judgement=judgement)
        yield judged


def _shown(state: RunState, last: TrialId, expected: Expected) -> TrialId:
    """The last take counts. Unless an earlier one showed harm, perhaps later: that is never thrown away."""
    takes = [replace(last, retry=retry) for retry in range(last.retry + 1)]
    harmed = (
        take
        for take in takes
        for judgement in (state.judgements.get(take),)
        if judgement is not None
        and judgement.verdict.severity > Verdict.INCONCLUSIVE.severity
        and met(judgement, expected) is False
    )
    return next(harmed, last)


def thinned(evidence: TrialEvidence) -> TrialEvidence:
    """Evidence with what a status shows of it: how attempts ended, and whether the ledger was read."""
    return replace(
        evidence,
        run="",
        ordered=(),
        attempts=tuple(
            replace(
                attempt,
                action="",
                scheduled=None,
                check=None,
                end=None if attempt.end is None else _thin_end(attempt.end),
            )
            for attempt in evidence.attempts
        ),
        ledger=None if evidence.ledger is None else _READ,
    )


def _thin_end(end: AttemptEnd) -> AttemptEnd:
    outcome = None if end.outcome is None else replace(end.outcome, claims=None, recorded=())
    return replace(end, points=(), fault=None, outcome=outcome)


def _judged(experiment: Experiment, cell: Cell, take: TrialState, *, journal: str) -> JudgedTrial:
    evidence = evidence_of(
        take, run=run_of(journal, take.id), coordinates=cell.coordinates, ordered=ordered_of(experiment.seed, take.id)
    )
    return JudgedTrial(evidence=evidence, judgement=take.judgement, retries=take.id.retry)


def _blocked(plan: Plan, state: RunState, cell: Cell) -> bool:
    control = plan.control(cell.id)
    return control is not None and state.last(cell.id, cell.first) is None and control_failed(state, control)


def _cell_summary(run: Run, cell: Cell, trials: Sequence[JudgedTrial]) -> CellSummary:
    expected = rule_for(cell, run.rules)
    summary = _with_met(cell, expected, [_record(trial, expected) for trial in trials])
    if cell.id in run.blocked:
        return replace(summary, reasons=("not run: its control came to no conclusion",))
    return summary


# --- one trial in its cell -------------------------------------------------------------------------------------


def _record(trial: JudgedTrial, expected: Expected) -> TrialRecord:
    evidence, judgement = trial.evidence, trial.judgement
    apart = None if judgement is None else set_apart(evidence, judgement, expected)
    as_expected = None if judgement is None or apart is not None else met(judgement, expected)
    return TrialRecord(evidence=evidence, judgement=judgement, set_apart=apart, met=as_expected, retries=trial.retries)


# --- one cell --------------------------------------------------------------------------------------------------


def _with_met(cell: Cell, expected: Expected, records: Sequence[TrialRecord]) -> CellSummary:
    unknown = _unknown(cell, records)
    broken = _broken(expected, records)
    rates = _rates(records)
    if not unknown:
        broken += _shares_broken(expected, rates)
    as_expected = False if broken else None if unknown else True
    return CellSummary(
        cell=cell,
        expected=expected,
        trials=tuple(records),
        met=as_expected,
        reasons=(*broken, *unknown),
        rates=rates,
    )


def _broken(expected: Expected, records: Sequence[TrialRecord]) -> list[str]:
    """What is not as expected, the worst first."""
    failed = [(record, record.judgement) for record in records if record.met is False and record.judgement is not None]
    found = []
    for record, judgement in sorted(failed, key=lambda item: -item[1].verdict.severity):
        words = differences(judgement, expected) or [judgement.verdict.value]
        found.append(f"trial {record.evidence.id}: {', '.join(words)}")
    apart = sum(record.set_apart is not None for record in records)
    if expected.framework_errors is not None and apart > expected.framework_errors.most:
        found.append(f"{apart} trials set apart, at most {expected.framework_errors.most} allowed")
    return found


def _unknown(cell: Cell, records: Sequence[TrialRecord]) -> list[str]:
    found = []
    unjudged = sum(record.judgement is None for record in records)
    if unjudged:
        found.append(f"{unjudged} of {cell.trials} trials not run to their end")
    for record in records:
        judgement = record.judgement
        if judgement is not None and record.set_apart is None and not judgement.conclusive:
            reason = next(finding.reason for finding in judgement.findings if finding.verdict is Verdict.INCONCLUSIVE)
            found.append(f"trial {record.evidence.id}: inconclusive: {reason}")
    if not records:
        found.append("no trial was planned")
    elif all(record.set_apart is not None for record in records):
        found.append("every trial was set apart")
    return found


def _counted(records: Sequence[TrialRecord]) -> list[Judgement]:
    return [
        record.judgement
        for record in records
        if record.judgement is not None and record.set_apart is None and record.judgement.conclusive
    ]


def _rates(records: Sequence[TrialRecord]) -> tuple[Rate, ...]:
    """The rate of each verdict that was seen, and of duplicates always: none in n says something too."""
    counted = _counted(records)
    if not counted:
        return ()
    counts = Counter(judgement.verdict for judgement in counted)
    shown = [verdict for verdict in Verdict if counts[verdict] or verdict is Verdict.DUPLICATE]
    return tuple(rate_of(verdict, counts[verdict], len(counted)) for verdict in shown)


def rate_of(verdict: Verdict, count: int, of: int) -> Rate:
    bounds = interval(count, of)
    return Rate(verdict=verdict, count=count, of=of, low=bounds.low, high=bounds.high)


def _shares_broken(expected: Expected, rates: Sequence[Rate]) -> list[str]:
    seen = {rate.verdict: rate for rate in rates}
    of = rates[0].of if rates else 0
    found = []
    for share in expected.shares:
        count = seen[share.verdict].count if share.verdict in seen else 0
        if of and not share.least <= count / of <= share.most:
            found.append(
                f"{share.verdict} in {count} of {of} trials, expected a share of {share.least:g} to {share.most:g}"
            )
    return found


# --- the whole -------------------------------------------------------------------------------------------------


def _totals(cells: Sequence[CellSummary]) -> Totals:
    records = [record for cell in cells for record in cell.trials]
    judged = [record for record in records if record.judgement is not None]
    counted = [record for record in judged if record.set_apart is None]
    read = [record for record in counted if record.evidence.ledger is not None]
    charges = [_charges(record) for record in read]
    return Totals(
        trials=len(records),
        judged=len(judged),
        controls=sum(len(cell.trials) for cell in cells if cell.cell.is_control),
        verdicts=tuple(
            sorted(
                Counter(record.judgement.verdict for record in counted if record.judgement is not None).items(),
                key=lambda item: -item[0].severity,
            )
        ),
        set_apart=len(judged) - len(counted),
        kills_planned=sum(len(cell.cell.coordinates.kill.at) * len(cell.trials) for cell in cells),
        kills_confirmed=sum(record.judgement.kills_confirmed for record in judged if record.judgement is not None),
        effects_ordered=len(read),
        effects_witnessed=sum(charges),
        effects_duplicate=sum(max(0, count - 1) for count in charges),
        effects_lost=sum(
            charge == 0
            and record.judgement is not None
            and any(finding.verdict is Verdict.LOST for finding in record.judgement.findings)
            for record, charge in zip(read, charges, strict=True)
        ),
        retries=sum(record.retries for record in records),
    )


def _charges(record: TrialRecord) -> int:
    return 0 if record.judgement is None else dict(record.judgement.effects).get("charge", 0)


def _reasons(cells: Sequence[CellSummary], run: Run) -> tuple[str, ...]:
    """Why the result is what it is, worst first; one sentence for each cell that is not met or not known."""
    found = [ABORTED] if run.aborted else []
    worst_first = sorted((cell for cell in cells if cell.met is not True), key=lambda cell: cell.rank)
    found += [f"{_where(cell)}: {_joined(cell.reasons)}" for cell in worst_first]
    found += [f"{source} is about no cell that was run" for source in _idle_rules(run)]
    if run.undiscovered:
        found.append(
            f'{run.undiscovered} cells at "*" were never unfolded: their controls ended badly or named too few points'
        )
    return tuple(found)


def _joined(reasons: Sequence[str]) -> str:
    """A cell's reasons in one sentence, which does not grow with its trials."""
    more = len(reasons) - REASONS_MAX
    return "; ".join((*reasons[:REASONS_MAX], *([f"and {more:,} more"] if more > 0 else [])))


def _where(cell: CellSummary) -> str:
    """A cell in words that --filter takes, so that each says of which axis it is: "none" is a key, and a kill."""
    return ", ".join(f"{axis}={word}" for axis, word in cell.cell.coordinates.words().items())
