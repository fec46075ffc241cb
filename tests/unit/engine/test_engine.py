"""The engine in a world in memory: what it concludes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from killpoint.model.cells import AttemptId
from killpoint.model.findings import Cause, Result, Verdict
from killpoint.model.rules import Rule
from killpoint.model.summary import Expected, ExperimentSummary, FrameworkErrors
from killpoint.ports import Launch
from tests.unit.engine.telling import (
    TABLE,
    charges,
    in_killed_cells,
    in_resumes,
    killed,
    only_trial,
    summary_of,
    with_flaw,
)
from tests.unit.engine.world import Flaw, Sim, cell, experiment


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

    async def launch_and_restart(request: Launch) -> bool:
        done = await launch(request)
        if request.attempt.number == 3:
            sim.target.boot = "boot-2"
        return done

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


def test_a_rule_about_a_point_that_no_control_passed_is_not_forgotten() -> None:
    """Before the run it may be about one that "*" stands for; what it expects there was never seen."""
    lenient = Rule(expected=Expected(source="spec.expect[0]", verdicts=(Verdict.EXACTLY_ONCE, Verdict.DUPLICATE)))
    strict = Rule(where=(("kill", ("charge.after#7",)),), expected=Expected(source="spec.expect[1]"))
    every = experiment(cell(at=("*",)), rules=(lenient, strict))
    summary = summary_of(Sim(every).run())
    assert summary.result is Result.INCONCLUSIVE
    assert summary.reasons == ("spec.expect[1] is about no cell that was run",)
    part = summary_of(Sim(replace(every, narrowed=True)).run())
    assert part.result is Result.PASS


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


def test_nothing_is_killed_where_no_control_came_to_a_conclusion() -> None:
    sim = with_flaw(
        Sim(experiment(cell(at=("charge.after",)))), Flaw.RUBBISH, lambda _, cell: cell is not None and cell.is_control
    )
    summary = summary_of(sim.run())
    [record] = killed(summary)
    assert record.judgement is None
    assert summary.result is Result.INCONCLUSIVE
    assert any("its control came to no conclusion" in reason for reason in summary.reasons)


def test_a_cell_without_a_trial_shows_nothing() -> None:
    sim = Sim(experiment(cell(key="stable", at=("charge.after",)), replace(cell(at=("charge.before",)), trials=0)))
    summary = summary_of(sim.run())
    assert [one.met for one in summary.cells if not one.trials] == [None]
    assert summary.result is Result.INCONCLUSIVE


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


def test_a_control_that_the_frameworks_own_error_spoiled_is_run_again() -> None:
    rule = Rule(control=True, expected=Expected(framework_errors=FrameworkErrors(match="dictionary changed", most=1)))
    sim = Sim(experiment(cell(key="stable", at=("charge.before",)), rules=(rule,)))
    sim = with_flaw(
        sim, Flaw.RAISES, lambda attempt, cell: cell is not None and cell.is_control and not attempt.trial.retry
    )
    summary = summary_of(sim.run())
    assert summary.result is Result.PASS
    assert summary.totals.retries == 1


def test_another_error_than_the_named_one_is_not_set_apart() -> None:
    rule = Rule(expected=Expected(framework_errors=FrameworkErrors(match="no such words", most=9)))
    sim = with_flaw(Sim(experiment(cell(key="stable", at=("charge.before",)), rules=(rule,))), Flaw.RAISES, in_resumes)
    record = only_trial(sim)
    assert record.set_apart is None
    assert record.met is False
