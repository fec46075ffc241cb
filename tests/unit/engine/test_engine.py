"""The engine in a world in memory: what it concludes, and that it concludes the same whatever dies under it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from killpoint.core.summarize import summarize
from killpoint.engine import Engine
from killpoint.model.cells import AttemptId, Cell, Method
from killpoint.model.events import Event
from killpoint.model.evidence import EndReason
from killpoint.model.findings import Cause, Result, Verdict
from killpoint.model.rules import Rule
from killpoint.model.summary import Expected, ExperimentSummary, FrameworkErrors, Provenance, TrialRecord
from killpoint.ports import Launch, LedgerUnavailableError
from tests.unit.engine.world import LIMITS, Flaw, Sim, cell, experiment

PROVENANCE = Provenance(
    killpoint="0", substrate="sim", seed=1, started_ms=0, ended_ms=None, versions=(), platform=(), command=""
)
TABLE = [
    cell(key=key, at=(point,))
    for key in ("none", "stable")
    for point in ("charge.before", "charge.after", "charge.recorded")
]


def summary_of(engine: Engine) -> ExperimentSummary:
    return summarize(engine.run(), PROVENANCE)


def killed(summary: ExperimentSummary) -> list[TrialRecord]:
    return [record for cell in summary.cells if not cell.cell.is_control for record in cell.trials]


def charges(summary: ExperimentSummary) -> dict[str, tuple[int | None, ...]]:
    return {f"{cell.cell.coordinates.key}/{cell.cell.coordinates.kill.name}": cell.effects() for cell in summary.cells}


def only_trial(sim: Sim) -> TrialRecord:
    [record] = killed(summary_of(sim.run()))
    return record


def with_flaw(sim: Sim, flaw: Flaw, when: Callable[[AttemptId, Cell | None], bool]) -> Sim:
    cells = {cell.id: cell for cell in sim.experiment.cells}
    sim.substrate.flaw = lambda attempt: flaw if when(attempt, cells.get(attempt.trial.cell)) else Flaw.NONE
    return sim


def in_killed_cells(attempt: AttemptId, cell: Cell | None) -> bool:
    return cell is not None and not cell.is_control and attempt.number == 1


def in_resumes(attempt: AttemptId, cell: Cell | None) -> bool:
    return cell is not None and attempt.number == 2


def test_the_table_comes_out_as_the_workers_behave() -> None:
    """Charged twice only where killed between the charge and its record, without a stable key."""
    summary = summary_of(Sim(experiment(*TABLE)).run())
    assert charges(summary) == {
        "none/none": (1,),
        "none/charge.before": (1,),
        "none/charge.after": (2,),
        "none/charge.recorded": (1,),
        "stable/none": (1,),
        "stable/charge.before": (1,),
        "stable/charge.after": (1,),
        "stable/charge.recorded": (1,),
    }
    assert summary.result is Result.FAIL
    assert (summary.totals.kills_planned, summary.totals.kills_confirmed) == (6, 6)


def test_an_expected_duplicate_is_a_pass() -> None:
    rule = Rule(
        where=(("key", ("none",)), ("kill", ("charge.after",))),
        expected=Expected(source="spec.expect[0]", verdicts=(Verdict.DUPLICATE,), effects=(("charge", 2),)),
    )
    summary = summary_of(Sim(experiment(*TABLE, rules=(rule,))).run())
    assert summary.result is Result.PASS
    assert summary.reasons == ()


def test_controls_are_through_before_their_cells_are_killed() -> None:
    sim = Sim(experiment(*TABLE))
    sim.run()
    controls = {cell.id for cell in sim.experiment.cells if cell.is_control}
    order = [attempt.trial.cell in controls for attempt in sim.substrate.launches if attempt.number == 1]
    assert order == sorted(order, reverse=True)


def test_a_resume_can_be_killed_too() -> None:
    sim = Sim(experiment(cell(at=("charge.after", "charge.after"))))
    record = only_trial(sim)
    assert record.judgement is not None
    assert record.judgement.kills_confirmed == 2
    assert dict(record.judgement.effects)["charge"] == 3


def silent(sim: Sim, **changes: object) -> Sim:
    """Attempts whose ends carry other points than they passed."""
    observe = sim.substrate.observe

    async def observed(attempts: Sequence[AttemptId]) -> object:
        seen = await observe(attempts)
        return {
            attempt: replace(one, end=None if one.end is None else replace(one.end, **changes))  # type: ignore[arg-type]
            for attempt, one in seen.items()
        }

    sim.substrate.observe = observed  # type: ignore[assignment,method-assign]
    return sim


@pytest.mark.parametrize("changes", [{"points": ()}, {"points_left_out": 3}], ids=["none", "left out"])
def test_every_point_of_a_control_that_tells_too_little_is_no_pass(changes: dict[str, object]) -> None:
    """No point, or not all of them: then "every point" has no meaning, and nothing was killed at it."""
    summary = summary_of(silent(Sim(experiment(cell(key="stable", at=("*",)))), **changes).run())
    assert summary.result is Result.INCONCLUSIVE
    assert any("never unfolded" in reason for reason in summary.reasons)


def test_what_a_duplicate_does_not_excuse_is_not_as_expected() -> None:
    """A cell may expect its duplicate: a lost finalization, or a resume that raises, is more than that."""
    rule = Rule(expected=Expected(verdicts=(Verdict.DUPLICATE,), effects=(("charge", 2),)))
    sim = with_flaw(Sim(experiment(cell(at=("charge.after",)), rules=(rule,))), Flaw.RAISES, in_resumes)
    record = only_trial(sim)
    assert record.judgement is not None
    assert record.judgement.verdict is Verdict.DUPLICATE
    assert record.met is False


def test_more_effects_than_expected_are_not_retried_away() -> None:
    rule = Rule(expected=Expected(verdicts=(Verdict.DUPLICATE,), effects=(("charge", 2),)))
    sim = Sim(experiment(cell(at=("charge.after", "charge.after")), rules=(rule,)))
    launch = sim.substrate.launch

    async def launch_and_restart(request: Launch) -> None:
        await launch(request)
        if request.attempt.number == 3:
            sim.target.boot = "boot-2"

    sim.substrate.launch = launch_and_restart  # type: ignore[assignment,method-assign]
    record = only_trial(sim)
    assert record.met is False
    assert record.retries == 0


def test_every_point_of_the_control_is_a_cell() -> None:
    summary = summary_of(Sim(experiment(cell(at=("*",)))).run())
    names = {cell.cell.coordinates.kill.name for cell in summary.cells if not cell.cell.is_control}
    assert names == {
        "prepare.before",
        "prepare.after",
        "charge.before",
        "charge.sent",
        "charge.after",
        "charge.recorded",
        "finalize.before",
        "finalize.after",
    }


METHODS = [Method.EXIT, Method.DELETE_POD, Method.EVICT]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_kills_with_its_own_proof(method: Method) -> None:
    record = only_trial(Sim(experiment(cell(at=("charge.after",), method=method))))
    assert record.judgement is not None
    assert (record.judgement.verdict, record.judgement.kills_confirmed) == (Verdict.DUPLICATE, 1)


def test_a_frozen_attempt_goes_on_after_another_took_over() -> None:
    """The zombie: it was stopped before its charge, and charges when it is let go, after the resume has finished."""
    record = only_trial(Sim(experiment(cell(at=("charge.before",), method=Method.FREEZE))))
    assert record.judgement is not None
    assert record.judgement.kills_confirmed == 1
    assert dict(record.judgement.effects)["charge"] == 2
    first, second = record.evidence.attempts
    assert first.end is not None
    assert second.end is not None
    assert first.end.at_ms > second.end.at_ms


def test_a_frozen_attempt_is_never_judged_away_while_it_lives() -> None:
    """Not quiet for too long: it is let go on to its end before the trial is judged."""
    sim = Sim(
        experiment(cell(at=("charge.before",), method=Method.FREEZE), limits=replace(LIMITS, inconclusive_retries=0))
    )
    observe = sim.substrate.observe

    async def observed(attempts: Sequence[AttemptId]) -> object:
        sim.target.in_flight = int(bool(sim.substrate.stopped))
        return await observe(attempts)

    sim.substrate.observe = observed  # type: ignore[assignment,method-assign]
    record = only_trial(sim)
    assert sim.substrate.stopped
    assert all(seen.end is not None for seen in sim.substrate.seen.values())
    assert record.judgement is not None
    assert not record.judgement.conclusive


def test_a_frozen_attempts_time_to_live_counts_from_its_release() -> None:
    """A zombie older than attemptSeconds goes on when it is let go; it is not killed for its age."""
    sim = Sim(experiment(cell(at=("charge.before",), method=Method.FREEZE)))
    release, observe = sim.substrate.release, sim.substrate.observe

    async def late(attempt: AttemptId) -> None:
        sim.clock.ms += LIMITS.attempt_seconds * 2000
        sim.substrate.slow.add(attempt)

    async def observed(attempts: Sequence[AttemptId]) -> object:
        seen = await observe(attempts)
        for attempt in list(sim.substrate.slow):
            sim.substrate.slow.discard(attempt)
            await release(attempt)
        return seen

    sim.substrate.release = late  # type: ignore[method-assign]
    sim.substrate.observe = observed  # type: ignore[assignment,method-assign]
    record = only_trial(sim)
    assert record.evidence.attempts[0].end is not None
    assert record.evidence.attempts[0].end.reason is EndReason.EXITED


def test_a_pod_that_somebody_else_deleted_is_not_our_kill() -> None:
    sim = Sim(
        experiment(cell(at=("charge.after",), method=Method.DELETE_POD), limits=replace(LIMITS, inconclusive_retries=0))
    )
    observe = sim.substrate.observe

    async def deleted(attempts: Sequence[AttemptId]) -> object:
        for attempt in sim.substrate.stopped:
            if sim.substrate.seen[attempt].end is None:
                await sim.substrate.kill(attempt, Method.DELETE_POD)
        return await observe(attempts)

    sim.substrate.observe = deleted  # type: ignore[assignment,method-assign]
    record = only_trial(sim)
    assert record.judgement is not None
    assert record.judgement.verdict is Verdict.INCONCLUSIVE
    assert record.judgement.findings[0].cause is Cause.INFRASTRUCTURE
    assert record.judgement.kills_confirmed == 0


FLAWS = [
    (Flaw.NEVER_DIES, "charge.after", Cause.NOT_KILLED),
    (Flaw.RECORDS_NOTHING, "charge.recorded", Cause.POINT_FALSE),
    (Flaw.CHARGES_EARLY, "charge.before", Cause.POINT_FALSE),
    (Flaw.HANGS, "charge.after", Cause.NOT_REACHED),
    (Flaw.RUBBISH, "charge.after", Cause.WORKER),
    (Flaw.VANISHES, "charge.after", Cause.INFRASTRUCTURE),
]


@pytest.mark.parametrize(("flaw", "point", "cause"), FLAWS, ids=[flaw.name.lower() for flaw, _, _ in FLAWS])
def test_a_kill_that_is_not_proven_is_inconclusive(flaw: Flaw, point: str, cause: Cause) -> None:
    """Whatever is wrong with the killed attempt, the trial is not exactly-once, and the run is not a Pass."""
    sim = with_flaw(Sim(experiment(cell(key="stable", at=(point,)))), flaw, in_killed_cells)
    engine = sim.run()
    summary = summary_of(engine)
    [record] = killed(summary)
    assert record.judgement is not None
    assert record.judgement.verdict is Verdict.INCONCLUSIVE
    assert cause in {finding.cause for finding in record.judgement.findings}
    assert summary.result is Result.INCONCLUSIVE
    assert record.judgement.kills_confirmed == 0


HARM = [
    (Flaw.CLAIMS_ANOTHER, Verdict.DIVERGENT),
    (Flaw.RAISES, Verdict.STRANDED),
    (Flaw.CHARGES_MORE, Verdict.WRONG_PAYLOAD),
    (Flaw.FORGETS_TO_CHARGE, Verdict.LOST),
]


@pytest.mark.parametrize(("flaw", "verdict"), HARM, ids=[flaw.name.lower() for flaw, _ in HARM])
def test_harm_in_a_resume_is_named(flaw: Flaw, verdict: Verdict) -> None:
    sim = with_flaw(Sim(experiment(cell(key="stable", at=("charge.before",)))), flaw, in_resumes)
    record = only_trial(sim)
    assert record.judgement is not None
    assert record.judgement.verdict is verdict
    assert record.met is False


def test_a_hanging_resume_is_ended_at_its_deadline_and_the_trial_says_so() -> None:
    sim = with_flaw(Sim(experiment(cell(key="stable", at=("charge.after",)))), Flaw.HANGS, in_resumes)
    record = only_trial(sim)
    assert record.judgement is not None
    assert record.judgement.verdict is Verdict.INCONCLUSIVE
    assert "past its deadline" in record.judgement.findings[0].reason


def test_only_infrastructure_is_retried_and_a_bounded_number_of_times() -> None:
    vanishing = with_flaw(Sim(experiment(cell(at=("charge.after",)))), Flaw.VANISHES, in_killed_cells)
    assert only_trial(vanishing).retries == LIMITS.inconclusive_retries
    deaf = with_flaw(Sim(experiment(cell(at=("charge.after",)))), Flaw.NEVER_DIES, in_killed_cells)
    assert only_trial(deaf).retries == 0


def test_a_retry_after_infrastructure_came_back_counts_alone() -> None:
    sim = Sim(experiment(cell(at=("charge.after",))))
    sim = with_flaw(
        sim, Flaw.VANISHES, lambda attempt, cell: in_killed_cells(attempt, cell) and not attempt.trial.retry
    )
    record = only_trial(sim)
    assert (record.retries, record.judgement and record.judgement.verdict) == (1, Verdict.DUPLICATE)
    assert record.evidence.ledger is not None
    assert len([effect for effect in record.evidence.ledger.effects if effect.action == "charge"]) == 2


def test_nothing_is_killed_where_no_control_came_to_a_conclusion() -> None:
    sim = with_flaw(
        Sim(experiment(cell(at=("charge.after",)))), Flaw.RUBBISH, lambda _, cell: cell is not None and cell.is_control
    )
    summary = summary_of(sim.run())
    [record] = killed(summary)
    assert record.judgement is None
    assert summary.result is Result.INCONCLUSIVE
    assert any("its control came to no conclusion" in reason for reason in summary.reasons)


def test_the_frameworks_own_error_is_set_apart_and_bounded() -> None:
    def run(most: int) -> ExperimentSummary:
        rule = Rule(expected=Expected(framework_errors=FrameworkErrors(match="dictionary changed", most=most)))
        sim = Sim(experiment(replace(cell(key="stable", at=("charge.before",)), trials=3), rules=(rule,)))
        return summary_of(
            with_flaw(sim, Flaw.RAISES, lambda at, cell: in_resumes(at, cell) and at.trial.number == 1).run()
        )

    tolerant = run(most=1)
    apart = [record for record in killed(tolerant) if record.set_apart]
    assert [record.set_apart for record in apart] == ["RuntimeError: dictionary changed size"]
    assert tolerant.totals.set_apart == 1
    assert tolerant.result is Result.PASS
    assert run(most=0).result is Result.FAIL


def test_another_error_than_the_named_one_is_not_set_apart() -> None:
    rule = Rule(expected=Expected(framework_errors=FrameworkErrors(match="no such words", most=9)))
    sim = with_flaw(Sim(experiment(cell(key="stable", at=("charge.before",)), rules=(rule,))), Flaw.RAISES, in_resumes)
    record = only_trial(sim)
    assert record.set_apart is None
    assert record.met is False


def test_a_session_that_stays_open_is_not_quiet() -> None:
    """The resume waits for the server to let go of the killed attempt; when it never does, that is said."""
    sim = Sim(experiment(cell(at=("charge.after",)), limits=replace(LIMITS, inconclusive_retries=0)))
    sim.substrate.open_sessions = 1
    summary = summary_of(sim.run())
    assert summary.result is Result.INCONCLUSIVE
    assert all(attempt.number == 1 for attempt in sim.substrate.launches)


def test_requests_in_flight_are_not_quiet() -> None:
    sim = Sim(experiment(cell(at=("charge.after",)), limits=replace(LIMITS, inconclusive_retries=0)))
    sim.target.in_flight = 1
    summary = summary_of(sim.run())
    assert summary.result is Result.INCONCLUSIVE
    assert summary.totals.verdicts == ((Verdict.INCONCLUSIVE, 1),)
    assert all(record.evidence.ledger is None for cell in summary.cells for record in cell.trials)


def test_what_is_committed_after_a_judgement_reopens_the_trial() -> None:
    sim = Sim(experiment(cell(key="stable", at=("charge.before",))))
    view, looks = sim.target.view, 0

    async def late(runs: Sequence[str]) -> object:
        nonlocal looks
        looks += 1
        if len(runs) > 1 and looks > 3 and not any(effect.id == "ch_late" for effect in sim.target.effects):
            first = next(effect for effect in sim.target.effects if effect.action == "charge")
            sim.target.effects.append(replace(first, id="ch_late"))
        return await view(runs)

    sim.target.view = late  # type: ignore[assignment,method-assign]
    summary = summary_of(sim.run())
    assert summary.result is Result.FAIL
    assert (Verdict.DUPLICATE, 1) in summary.totals.verdicts


@pytest.mark.parametrize("key", ["stable", "none"])
def test_a_service_that_was_started_anew_disturbs_only_the_open_trials(key: str) -> None:
    """Also one whose cell is about harm: what was expected is no reason to keep a trial that proves nothing."""
    rule = Rule(where=(("kill", ("charge.after",)),), expected=Expected(verdicts=(Verdict.DUPLICATE,)))
    one = replace(cell(key=key, at=("charge.after",)), trials=3)
    sim = Sim(experiment(one, parallelism=1, rules=(rule,) if key == "none" else ()))
    _start_payments_anew(sim, at_launch=3)
    summary = summary_of(sim.run())
    assert summary.totals.retries == 1
    assert summary.result is Result.PASS


def test_unexpected_harm_in_a_disturbed_trial_is_kept() -> None:
    sim = Sim(experiment(replace(cell(key="none", at=("charge.after",)), trials=3), parallelism=1))
    _start_payments_anew(sim, at_launch=3)
    summary = summary_of(sim.run())
    assert summary.totals.retries == 0
    assert summary.result is Result.FAIL


def _start_payments_anew(sim: Sim, *, at_launch: int) -> None:
    launch = sim.substrate.launch

    async def launch_and_restart(request: object) -> None:
        await launch(request)  # type: ignore[arg-type]
        if len(sim.substrate.launches) == at_launch:
            sim.target.boot = "boot-2"

    sim.substrate.launch = launch_and_restart  # type: ignore[assignment,method-assign]


def test_interruptions_of_killpoint_use_up_no_retries() -> None:
    """Stopped and started again more often than infrastructure may fail: the run goes on all the same."""
    sim = Sim(experiment(cell(key="stable", at=("charge.after",)), limits=replace(LIMITS, inconclusive_retries=0)))
    incarnations = itertools.count(1)
    sim.incarnation = lambda: f"process-{next(incarnations)}"
    crashes = 0

    def crash(_: AttemptId) -> bool:
        nonlocal crashes
        crashes += 1
        return crashes <= 4

    sim.substrate.crash_after_launch = crash
    summary = summary_of(sim.run())
    assert summary.result is Result.PASS
    assert summary.totals.retries > LIMITS.inconclusive_retries


def test_a_ledger_that_never_answers_is_inconclusive_not_empty() -> None:
    sim = Sim(experiment(cell(at=("charge.after",)), limits=replace(LIMITS, inconclusive_retries=0)))

    async def away(runs: Sequence[str]) -> object:
        if runs:
            raise LedgerUnavailableError("payments does not answer")
        return {}

    sim.target.view = away  # type: ignore[assignment,method-assign]
    summary = summary_of(sim.run())
    assert summary.result is Result.INCONCLUSIVE
    assert summary.totals.effects_ordered == 0


def test_fail_fast_starts_nothing_after_the_first_surprise() -> None:
    sim = Sim(experiment(replace(cell(at=("charge.after",)), trials=50), fail_fast=True, parallelism=1))
    summary = summary_of(sim.run())
    assert summary.result is Result.FAIL
    assert summary.totals.judged == 2


def test_a_resume_that_the_runs_own_deadline_ends_is_inconclusive() -> None:
    limits = replace(LIMITS, deadline_seconds=30, inconclusive_retries=0)
    sim = with_flaw(Sim(experiment(cell(key="stable", at=("charge.after",)), limits=limits)), Flaw.HANGS, in_resumes)
    record = only_trial(sim)
    assert record.judgement is not None
    assert record.judgement.verdict is Verdict.INCONCLUSIVE


def test_past_its_deadline_a_run_ends_and_says_what_is_missing() -> None:
    slow = replace(LIMITS, deadline_seconds=1)
    sim = with_flaw(
        Sim(experiment(replace(cell(at=("charge.after",)), trials=9), limits=slow)), Flaw.HANGS, in_killed_cells
    )
    summary = summary_of(sim.run())
    assert summary.result is Result.INCONCLUSIVE
    assert summary.totals.judged < summary.totals.trials


# --- the crash tester survives crashes -----------------------------------------------------------------------------


def verdicts(summary: ExperimentSummary) -> list[tuple[str, str, tuple[int | None, ...]]]:
    return [
        (cell.cell.id, record.judgement.verdict.value if record.judgement else "none", cell.effects())
        for cell in summary.cells
        for record in cell.trials
    ]


def boundaries() -> int:
    sim = Sim(experiment(*TABLE, parallelism=2))
    appends = 0
    append = sim.journal.append

    async def counted(events: Sequence[Event]) -> object:
        nonlocal appends
        appends += 1
        return await append(events)

    sim.journal.append = counted  # type: ignore[assignment,method-assign]
    sim.run()
    return appends


@pytest.mark.parametrize("side", ["before", "after"])
def test_killed_at_any_boundary_of_the_journal_it_ends_with_the_same_evidence(side: str) -> None:
    """The engine dies before, or right after, each append in turn: same verdicts, nothing run twice."""
    undisturbed = verdicts(summary_of(Sim(experiment(*TABLE, parallelism=2)).run()))
    count = boundaries()
    assert count > 20
    for boundary in range(1, count + 1):
        sim = Sim(experiment(*TABLE, parallelism=2))
        seen = 0

        def crash(_: Sequence[Event], boundary: int = boundary) -> bool:
            nonlocal seen
            seen += 1
            return seen == boundary

        setattr(sim.journal, f"crash_{side}", crash)
        engine = sim.run()
        assert verdicts(summary_of(engine)) == undisturbed, f"killed {side} append {boundary}"
        assert len(sim.substrate.launches) == len(set(sim.substrate.launches))


def test_killed_right_after_each_launch_it_adopts_what_it_started() -> None:
    undisturbed = verdicts(summary_of(Sim(experiment(*TABLE, parallelism=1)).run()))
    sim = Sim(experiment(*TABLE, parallelism=1))
    crashed: set[AttemptId] = set()

    def crash(attempt: AttemptId) -> bool:
        if attempt in crashed:
            return False
        crashed.add(attempt)
        return True

    sim.substrate.crash_after_launch = crash
    assert verdicts(summary_of(sim.run())) == undisturbed
    assert len(sim.substrate.launches) == len(set(sim.substrate.launches))
