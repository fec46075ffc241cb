"""Quiet before truth: waits, retries, disturbances and deadlines."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import pytest

from killpoint.model.cells import AttemptId
from killpoint.model.findings import Result, Verdict
from killpoint.model.rules import Rule
from killpoint.model.summary import Expected
from killpoint.ports import Launch, LedgerUnavailableError
from tests.unit.engine.telling import in_killed_cells, in_resumes, only_trial, summary_of, with_flaw
from tests.unit.engine.world import LIMITS, Flaw, Sim, cell, experiment


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
    faults = [record.evidence.ledger_fault for cell in summary.cells for record in cell.trials]
    assert "payments still has 1 requests of the run in flight" in faults


def test_harm_that_shows_before_it_is_quiet_is_not_run_again() -> None:
    """Another take without it would hide it: what the ledger has is there, whatever may still come."""
    sim = Sim(experiment(cell(key="stable", at=("charge.before",))))
    _charge_again_in_the_first_take(sim)

    async def stays(attempts: Sequence[AttemptId]) -> object:
        return {attempt: int(not attempt.trial.retry and attempt.number == 2) for attempt in attempts}

    sim.substrate.sessions = stays  # type: ignore[assignment,method-assign]
    summary = summary_of(sim.run())
    assert (summary.result, summary.totals.retries) == (Result.FAIL, 0)
    assert (Verdict.DUPLICATE, 1) in summary.totals.verdicts


def test_what_is_not_there_before_it_is_quiet_is_not_lost() -> None:
    sim = Sim(experiment(cell(key="stable", at=("charge.before",)), limits=replace(LIMITS, inconclusive_retries=0)))
    view = sim.target.view

    async def nothing_yet(runs: Sequence[str]) -> object:
        return {run: replace(seen, effects=(), in_flight=1) for run, seen in (await view(runs)).items()}

    sim.target.view = nothing_yet  # type: ignore[assignment,method-assign]
    summary = summary_of(sim.run())
    assert summary.result is Result.INCONCLUSIVE
    assert Verdict.LOST not in dict(summary.totals.verdicts)


def test_harm_in_a_take_that_was_not_read_in_time_is_found_before_the_end() -> None:
    killed = cell(key="stable", at=("charge.before",))
    sim = Sim(experiment(killed))
    _charge_again_in_the_first_take(sim)
    view = sim.target.view

    async def away_at_first(runs: Sequence[str]) -> object:
        if any(f"{killed.id}.1" in run for run in runs) and len(sim.substrate.launches) == 3 and not _has_retried(sim):
            raise LedgerUnavailableError("payments does not answer")
        return await view(runs)

    sim.target.view = away_at_first  # type: ignore[assignment,method-assign]
    summary = summary_of(sim.run())
    assert summary.result is Result.FAIL
    assert (Verdict.DUPLICATE, 1) in summary.totals.verdicts


def _has_retried(sim: Sim) -> bool:
    return any(attempt.trial.retry for attempt in sim.substrate.launches)


def _charge_again_in_the_first_take(sim: Sim) -> None:
    """Its resume charges once more, past the key; no take after it does."""
    launch = sim.substrate.launch

    async def launch_and_charge(request: Launch) -> bool:
        done = await launch(request)
        if request.attempt.number == 2 and not request.attempt.trial.retry:
            charge = next(found for found in sim.target.effects if found.run == request.run)
            sim.target.effects.append(replace(charge, id="ch_again"))
        return done

    sim.substrate.launch = launch_and_charge  # type: ignore[assignment,method-assign]


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

    async def launch_and_restart(request: Launch) -> bool:
        done = await launch(request)
        if len(sim.substrate.launches) == at_launch:
            sim.target.boot = "boot-2"
        return done

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
