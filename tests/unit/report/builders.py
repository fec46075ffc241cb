"""Summaries to render: the published crash table with evidence as a run gives it, and the ugly ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from killpoint.model.cells import Cell, Coordinates, Kill, TrialId
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
    TrialEvidence,
)
from killpoint.model.findings import Cause, Finding, Judgement, Result, Verdict
from killpoint.model.intervals import interval
from killpoint.model.summary import (
    CellSummary,
    Expected,
    ExperimentSummary,
    FrameworkErrors,
    Provenance,
    Rate,
    Totals,
    TrialRecord,
)
from tests.unit.report.telling import ALL_POINTS, STARTED_MS, Story, tell

SETUPS = ("langgraph", "llamaindex", "crewai-persist", "crewai-checkpoint")
KEYS = ("none", "fresh", "stable")
POINTS = ("charge.before", "charge.after", "charge.recorded")
CONTROL_KILL = Kill()
KILLS = tuple(Kill(at=(point,), name=point) for point in POINTS)
WRITER_ERROR = "RuntimeError: dictionary changed size during iteration"


def crash_table(*, trials: int = 5, set_apart: bool = True) -> ExperimentSummary:
    """The published table: every cell as it was measured, three resumes set apart."""
    apart = {("crewai-checkpoint", key, point): number for key, point, number in APART} if set_apart else {}
    cells = []
    for setup in SETUPS:
        for key in KEYS:
            cells.append(cell(setup=setup, key=key, kill=CONTROL_KILL, trials=trials))
            for kill in KILLS:
                failing = apart.get((setup, key, kill.name))
                cells.append(cell(setup=setup, key=key, kill=kill, trials=trials, failing=failing))
    return summary("crash-table", cells)


APART = (("fresh", "charge.after", 3), ("stable", "charge.after", 5), ("none", "charge.recorded", 1))


def expected_story(coordinates: Coordinates) -> Story:
    """What the published table says of a cell."""
    if coordinates.kill.is_control:
        return Story(killed=False)
    point, persist = coordinates.kill.name, coordinates.setup == "crewai-persist"
    early = point.startswith("prepare") or point == "charge.before"
    resent = point in {"charge.after", "charge.sent"} or (point == "charge.recorded" and persist)
    doubled = resent and coordinates.key in {"none", "fresh", "saved-random"}
    restart = persist or point.startswith("prepare")
    return Story(charges=2 if doubled else 1, resent=resent or early, restart=restart)


def expectation(coordinates: Coordinates) -> Expected:
    """The rules of the published experiment."""
    errors = FrameworkErrors(match="dictionary changed size", most=5) if "checkpoint" in coordinates.setup else None
    story = expected_story(coordinates)
    if story.charges == 1:
        return Expected(framework_errors=errors)
    source = "spec.expect[0]" if coordinates.kill.name == "charge.after" else "spec.expect[1]"
    return Expected(source=source, verdicts=(Verdict.DUPLICATE,), effects=(("charge", 2),), framework_errors=errors)


def cell(
    *,
    setup: str,
    key: str = "stable",
    kill: Kill = CONTROL_KILL,
    trials: int = 5,
    store: str = "postgres",
    resume: str = "continue",
    parameters: tuple[tuple[str, str], ...] = (),
    expected: Expected | None = None,
    stories: Mapping[int, Story] | None = None,
    story: Story | None = None,
    failing: int | None = None,
) -> CellSummary:
    """A cell whose trials go as published, but for ``story`` (all of them) or ``stories`` (by number)."""
    coordinates = Coordinates(setup=setup, store=store, key=key, resume=resume, kill=kill, parameters=parameters)
    plan = Cell(coordinates=coordinates, trials=trials)
    usual = story or expected_story(coordinates)
    rule = expected or expectation(coordinates)
    records = []
    for number in range(1, trials + 1):
        told = (stories or {}).get(number, usual)
        if number == failing:
            told = replace(told, error=WRITER_ERROR, charges=1)
        records.append(record(plan, rule, number=number, story=told))
    return cell_of(plan, rule, records)


def cell_of(plan: Cell, rule: Expected, records: Iterable[TrialRecord]) -> CellSummary:
    kept = tuple(records)
    judged = [r for r in kept if r.met is not None and r.judgement is not None]
    unmet = [r for r in judged if r.met is False]
    met = (
        False
        if unmet
        else True
        if judged and len(judged) + sum(r.set_apart is not None for r in kept) == len(kept)
        else None
    )
    reasons = []
    if unmet:
        seen = Counter(r.judgement.verdict.value for r in unmet if r.judgement is not None)
        words = ", ".join(f"{number} {verdict}" for verdict, number in seen.items())
        reasons.append(f"{words} of {len(judged)} trials, expected {rule.verdicts[0].value}")
    elif met is None:
        reasons.append(f"{len(judged)} of {len(kept)} trials are conclusive")
    return CellSummary(
        cell=plan, expected=rule, trials=kept, met=met, reasons=tuple(reasons), rates=tuple(_rates(judged))
    )


def _rates(judged: list[TrialRecord]) -> Iterable[Rate]:
    seen = Counter(r.judgement.verdict for r in judged if r.judgement is not None)
    for verdict, number in seen.items():
        bound = interval(number, len(judged))
        yield Rate(verdict=verdict, count=number, of=len(judged), low=bound.low, high=bound.high)


def record(plan: Cell, rule: Expected, *, number: int, story: Story) -> TrialRecord:
    evidence = tell(plan, number=number, story=story)
    judgement = judge(evidence, story)
    apart = story.error if story.error and rule.framework_errors else None
    met = judgement.verdict in rule.verdicts if apart is None and judgement.conclusive else None
    return TrialRecord(evidence=evidence, judgement=judgement, set_apart=apart, met=met)


def judge(evidence: TrialEvidence, story: Story) -> Judgement:
    planned = len(evidence.coordinates.kill.at)
    charges = story.charges
    findings = []
    if story.ledger_fault:
        findings.append(Finding(verdict=Verdict.INCONCLUSIVE, reason=story.ledger_fault, cause=Cause.LEDGER))
    if planned and not story.killed:
        reason = f"attempt 1 never passed {evidence.coordinates.kill.name}"
        findings.append(Finding(verdict=Verdict.INCONCLUSIVE, reason=reason, cause=Cause.NOT_REACHED))
    if charges > 1:
        findings.append(Finding(verdict=Verdict.DUPLICATE, reason=f"charge of order: {charges} effects, 1 ordered"))
    elif charges == 0:
        findings.append(Finding(verdict=Verdict.LOST, reason="charge of order: finished is claimed, no effect"))
    if story.error:
        findings.append(Finding(verdict=Verdict.STRANDED, reason=f"attempt 2 failed: {story.error}"))
    if not findings:
        findings.append(Finding(verdict=Verdict.EXACTLY_ONCE, reason="each ordered operation once, and finished"))
    return Judgement(
        findings=tuple(findings),
        effects=() if story.ledger_fault else (("charge", charges), ("finalize", 0 if story.error else 1)),
        kills_planned=planned,
        kills_confirmed=planned if story.killed else 0,
        outcome="failed" if story.error else "finished",
    )


def summary(
    name: str, cells: Iterable[CellSummary], *, result: Result | None = Result.PASS, reasons: tuple[str, ...] = ()
) -> ExperimentSummary:
    kept = tuple(cells)
    ended = STARTED_MS + 577_000 if result is not None else None
    return ExperimentSummary(
        name=name,
        journal="jr-01jdz4k9v7",
        result=result,
        reasons=reasons,
        workflow="charge",
        cells=kept,
        totals=totals(kept),
        provenance=Provenance(
            killpoint="0.1.0",
            substrate="local",
            seed=1,
            started_ms=STARTED_MS,
            ended_ms=ended,
            versions=tuple(
                (setup, VERSIONS[setup]) for setup in SETUPS if any(setup == c.cell.coordinates.setup for c in kept)
            ),
            platform=(("Python", "3.12.8"), ("Postgres", "15.14"), ("Machine", "2 cores, x86_64, Linux 6.8")),
            command=f"killpoint run experiments/{name}.yaml",
            replay=f"killpoint replay {name}",
        ),
    )


VERSIONS = {
    "langgraph": (("langgraph", "1.2.24"), ("langgraph-checkpoint-postgres", "3.2.0")),
    "llamaindex": (("llama-index-workflows", "2.26.1"),),
    "crewai-persist": (("crewai", "1.15.30"),),
    "crewai-checkpoint": (("crewai", "1.15.30"),),
}


def totals(cells: tuple[CellSummary, ...]) -> Totals:
    records = [r for c in cells for r in c.trials]
    judged = [r for r in records if r.judgement is not None]
    counting = [r for r in judged if r.set_apart is None]
    read = [r for r in counting if r.evidence.ledger is not None]
    witnessed = [dict(r.judgement.effects).get("charge", 0) for r in read if r.judgement is not None]
    verdicts = Counter(r.judgement.verdict for r in counting if r.judgement is not None)
    return Totals(
        trials=sum(c.cell.trials for c in cells),
        judged=len(judged),
        controls=sum(c.cell.trials for c in cells if c.cell.is_control),
        verdicts=tuple(verdicts.items()),
        set_apart=len(judged) - len(counting),
        kills_planned=sum(r.judgement.kills_planned for r in judged if r.judgement is not None),
        kills_confirmed=sum(r.judgement.kills_confirmed for r in judged if r.judgement is not None),
        effects_ordered=len(read),
        effects_witnessed=sum(witnessed),
        effects_duplicate=sum(max(0, number - 1) for number in witnessed),
        effects_lost=sum(number == 0 for number in witnessed),
        retries=sum(r.retries for r in records),
    )


# --- Ugly ones -------------------------------------------------------------------------------------------------------


def reasons_of(cells: Iterable[CellSummary]) -> tuple[str, ...]:
    """What a summary says of its cells that are not met, or not known: their places and their reasons."""
    kept = tuple(cells)
    return tuple(
        f"{', '.join(one.cell.coordinates.words().values())}: {'; '.join(one.reasons)}"
        for state in (False, None)
        for one in kept
        if one.met is state
    )


def failing() -> ExperimentSummary:
    """The crash table with a fourth key whose cells are not as expected."""
    once = Expected()
    cells = list(crash_table().cells)
    for kill in (CONTROL_KILL, *KILLS):
        for setup in SETUPS:
            persist = setup == "crewai-persist" and not kill.is_control
            doubled = persist and kill.name != "charge.before"
            story = (
                Story(charges=2, resent=True, restart=True)
                if doubled
                else Story(killed=not kill.is_control, resent=kill.name in {"charge.before", "charge.after"})
            )
            cells.append(cell(setup=setup, key="saved-random", kill=kill, expected=once, story=story))
    ordered = [c for setup in SETUPS for c in cells if c.cell.coordinates.setup == setup]
    return summary("crash-table", ordered, result=Result.FAIL, reasons=reasons_of(ordered))


def inconclusive() -> ExperimentSummary:
    """A point not reached, a ledger not read: nothing contradicts, too little is proven."""
    missed = Story(killed=False)
    unread = Story(ledger_fault="payments did not answer within 30 s")
    cells = [
        cell(setup="langgraph", kill=CONTROL_KILL),
        cell(setup="langgraph", kill=KILLS[0]),
        cell(setup="langgraph", kill=KILLS[1], story=missed),
        cell(setup="langgraph", kill=KILLS[2], stories={2: missed, 4: unread}),
    ]
    return summary("unproven", cells, result=Result.INCONCLUSIVE, reasons=reasons_of(cells))


def running() -> ExperimentSummary:
    """Half of it is judged."""
    cells = []
    for number, planned in enumerate(crash_table().cells):
        records = tuple(
            record_
            if number < 20
            else replace(
                record_,
                judgement=None,
                met=None,
                set_apart=None,
                evidence=replace(record_.evidence, attempts=(), ledger=None),
            )
            for record_ in planned.trials
        )
        cells.append(cell_of(planned.cell, planned.expected, records[:3] if number == 20 else records))
    return summary("crash-table", cells, result=None)


def nothing_judged() -> ExperimentSummary:
    """It could not be executed: no cell has a trial."""
    cells = [
        CellSummary(cell=planned.cell, expected=planned.expected, trials=(), met=None)
        for planned in crash_table().cells
    ]
    reason = "No worker environment: langgraph could not be installed (no network)."
    return summary("crash-table", cells, result=Result.ERROR, reasons=(reason,))


def many_trials() -> ExperimentSummary:
    """Forty trials a cell, one of them a race."""
    raced = {number: Story(charges=2, resent=True) for number in range(1, 23)}
    raced |= {23: Story(killed=False), 24: Story(killed=False)}
    either = Expected(source="spec.expect[0]", verdicts=(Verdict.DUPLICATE, Verdict.EXACTLY_ONCE))
    cells = [
        cell(setup="langgraph", key=key, kill=kill, trials=40)
        for key in ("fresh", "stable")
        for kill in (CONTROL_KILL, *KILLS[:2])
    ]
    cells.append(cell(setup="langgraph", key="fresh", kill=KILLS[2], trials=40, expected=either, stories=raced))
    cells.append(cell(setup="langgraph", key="stable", kill=KILLS[2], trials=40))
    return summary("race", cells, result=Result.INCONCLUSIVE, reasons=reasons_of(cells))


def all_axes() -> ExperimentSummary:
    """Every axis varies, one setup has a parameter that the other lacks, and there are seven kills."""
    kills = tuple(Kill(at=(point,), name=point) for point in ALL_POINTS[:5])
    twice = Kill(at=("charge.after", "charge.after#2"), name="twice after the charge")
    cells = [
        cell(setup=setup, store=store, key=key, resume=resume, kill=kill, trials=2, parameters=parameters)
        for setup, parameters in (
            ("langgraph", (("durability", "async"),)),
            ("langgraph", (("durability", "exit"),)),
            ("llamaindex", ()),
        )
        for store in ("postgres", "volume")
        for key in ("none", "stable")
        for resume in ("continue", "resend")
        for kill in (*kills, CONTROL_KILL)
    ]
    story = Story(charges=1)
    cells.append(cell(setup="langgraph", kill=twice, trials=2, story=replace(story, killed=False)))
    return summary("all-axes", cells, result=Result.INCONCLUSIVE, reasons=reasons_of(cells))


HOSTILE = "<script>alert(\"1\")</script> & 'quoted' ]]> | `tick` \x1b[31m\x00 | [x](http://evil.example)"


def hostile() -> ExperimentSummary:
    """Everything that a framework, a worker or a file can put into a report says something nasty."""
    rule = Expected(framework_errors=FrameworkErrors(match="script", most=1))
    plan = Cell(
        coordinates=Coordinates(
            setup=HOSTILE, key=HOSTILE, kill=Kill(at=(HOSTILE,), name=HOSTILE), parameters=((HOSTILE, HOSTILE),)
        ),
        trials=2,
    )
    records = []
    for number in (1, 2):
        told = tell(
            replace(plan, coordinates=replace(plan.coordinates, kill=KILLS[1])), number=number, story=Story(resent=True)
        )
        end = AttemptEnd(
            reason=EndReason.EXITED,
            exit_code=1,
            at_ms=STARTED_MS + 900,
            points=(PointPassed(point=HOSTILE, at_ms=None),),
            fault=HOSTILE,
            outcome=Outcome(
                word=OutcomeWord.FAILED,
                error_class=HOSTILE,
                error_message=HOSTILE,
                resumed_from=HOSTILE,
                claims=(Claim(action=HOSTILE, order=HOSTILE, effect=HOSTILE),),
            ),
        )
        attempt = replace(told.attempts[1], end=end, check=PointCheck(point=HOSTILE, held=None, detail=HOSTILE))
        effects = (
            Effect(
                id=HOSTILE,
                action=HOSTILE,
                order=HOSTILE,
                item=HOSTILE,
                currency=HOSTILE,
                key=HOSTILE,
                run="r",
                attempt=HOSTILE,
                at_ms=STARTED_MS,
            ),
        )
        evidence = replace(
            told,
            coordinates=plan.coordinates,
            attempts=(told.attempts[0], attempt),
            ledger=LedgerView(effects=effects, requests=told.ledger.requests if told.ledger else ()),
            id=TrialId(cell=plan.id, number=number),
        )
        judgement = Judgement(
            findings=(Finding(verdict=Verdict.STRANDED, reason=HOSTILE),),
            effects=(("charge", 1),),
            kills_planned=1,
            kills_confirmed=1,
            outcome=HOSTILE,
        )
        apart = HOSTILE if number == 1 else None
        records.append(
            TrialRecord(evidence=evidence, judgement=judgement, set_apart=apart, met=None if apart else False)
        )
    made = summary(HOSTILE, [cell_of(plan, rule, records)], result=Result.FAIL, reasons=(HOSTILE,))
    provenance = replace(
        made.provenance,
        command=HOSTILE,
        substrate=HOSTILE,
        versions=((HOSTILE, ((HOSTILE, HOSTILE),)),),
        platform=((HOSTILE, HOSTILE),),
    )
    return replace(made, provenance=provenance, workflow=HOSTILE, journal=HOSTILE)


EVERY = {
    "crash-table": crash_table,
    "failing": failing,
    "inconclusive": inconclusive,
    "running": running,
    "nothing-judged": nothing_judged,
    "many-trials": many_trials,
    "all-axes": all_axes,
    "hostile": hostile,
}
