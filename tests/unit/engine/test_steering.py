"""What may change while a run goes on: it is suspended, it goes on, it is aborted, it gets more room."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from killpoint.core.decide import ABORTED
from killpoint.core.summarize import summarize
from killpoint.engine import Engine, Step
from killpoint.model.cells import AttemptId, Method
from killpoint.model.experiment import Experiment
from killpoint.model.findings import Result
from killpoint.model.summary import ExperimentSummary
from killpoint.ports import LedgerUnavailableError
from tests.unit.engine.telling import PROVENANCE
from tests.unit.engine.world import Crash, Flaw, Sim, cell, experiment

HOUR_MS = 3_600_000
TRIALS = 3


def steered(engine: Engine, sim: Sim, **changes: bool | int) -> Engine:
    sim.experiment = replace(sim.experiment, **changes)  # type: ignore[arg-type] # any field of an Experiment
    engine.steer(sim.experiment)
    return engine


def steps(engine: Engine, count: int) -> Step:
    async def several() -> Step:
        for _ in range(count - 1):
            await engine.step()
        return await engine.step()

    return asyncio.run(several())


def to_the_end(engine: Engine) -> ExperimentSummary:
    for _ in range(200):
        if steps(engine, 1).wake_after_seconds is None:
            return summarize(engine.run(), PROVENANCE)
    raise AssertionError("the run did not end")


def hanging(**changes: int) -> Sim:
    """A run whose killed trials never end by themselves."""
    sim = Sim(one_cell(**changes))
    control = next(cell.id for cell in sim.experiment.cells if cell.is_control)
    sim.substrate.flaw = lambda attempt: Flaw.NONE if attempt.trial.cell == control else Flaw.HANGS
    return sim


def one_cell(**changes: int) -> Experiment:
    return experiment(cell(at=("charge.after",), trials=TRIALS), **changes)


def fresh_starts(sim: Sim) -> list[AttemptId]:
    return [attempt for attempt in sim.substrate.launches if attempt.number == 1]


def test_a_suspended_run_starts_nothing_and_does_not_end() -> None:
    sim = Sim(one_cell(suspended=True))
    step = steps(sim.engine(), 10)
    assert sim.substrate.launches == []
    assert step.wake_after_seconds
    assert step.state.result is None


def test_what_runs_when_a_run_is_suspended_goes_on_to_its_end() -> None:
    sim = Sim(one_cell(parallelism=1))
    engine = sim.engine()
    while len(fresh_starts(sim)) < 2:
        steps(engine, 1)
    state = steps(steered(engine, sim, suspended=True), 30).state
    assert len(fresh_starts(sim)) == 2, "the control and one trial"
    assert all(trial.judgement is not None for trial in state.trials.values())
    assert state.result is None


def test_a_run_that_goes_on_comes_to_the_same_result() -> None:
    undisturbed = summarize(Sim(one_cell()).run().run(), PROVENANCE)
    sim = Sim(one_cell(suspended=True))
    engine = sim.engine()
    steps(engine, 5)
    summary = to_the_end(steered(engine, sim, suspended=False))
    assert summary.totals == undisturbed.totals
    assert summary.result is undisturbed.result


def test_the_time_of_suspension_does_not_count_towards_the_deadline() -> None:
    sim = Sim(one_cell(suspended=True))
    engine = sim.engine()
    for _ in range(3):
        steps(engine, 2)
        sim.clock.ms += HOUR_MS
    steered(engine, sim, suspended=False)
    assert to_the_end(engine).totals.judged == TRIALS + 1


def test_the_deadline_holds_for_the_time_before_and_after_a_suspension() -> None:
    sim = hanging()
    engine = sim.engine()
    steps(engine, 20)
    steps(steered(engine, sim, suspended=True), 2)
    sim.clock.ms += HOUR_MS
    steps(steered(engine, sim, suspended=False), 2)
    sim.clock.ms += HOUR_MS + 1000
    assert to_the_end(engine).result is Result.INCONCLUSIVE


def test_another_engine_knows_that_the_run_was_suspended() -> None:
    sim = Sim(one_cell(suspended=True))
    steps(sim.engine(), 2)
    sim.clock.ms += 2 * HOUR_MS
    assert steps(sim.engine(), 2).state.ran_ms(sim.clock.ms) < HOUR_MS


def test_an_aborted_run_kills_what_lives_and_ends() -> None:
    sim = hanging()
    engine = sim.engine()
    steps(engine, 20)
    living = [attempt for attempt, seen in sim.substrate.seen.items() if seen.end is None]
    assert living, "nothing would be shown"
    summary = to_the_end(steered(engine, sim, aborted=True))
    assert all(sim.substrate.seen[attempt].end is not None for attempt in living)
    assert (summary.result, summary.aborted, summary.reasons[0]) == (Result.INCONCLUSIVE, True, ABORTED)
    assert summary.totals.judged == 1, "only the control has a judgement; what was killed for this has none"


def test_an_abort_kills_what_is_frozen() -> None:
    """A frozen executor waits for its release, which is not to come any more."""
    sim = Sim(experiment(cell(at=("charge.after",), method=Method.FREEZE)))
    sim.substrate.flaw = lambda attempt: Flaw.HANGS if attempt.number == 2 else Flaw.NONE
    engine = sim.engine()
    steps(engine, 20)
    assert [attempt.number for attempt, seen in sim.substrate.seen.items() if seen.end is None] == [1, 2]
    assert to_the_end(steered(engine, sim, aborted=True)).aborted
    assert all(seen.end is not None for seen in sim.substrate.seen.values())


def test_a_run_can_be_aborted_before_anything_is_started() -> None:
    sim = Sim(one_cell(aborted=True))
    summary = to_the_end(sim.engine())
    assert sim.substrate.launches == []
    assert (summary.result, summary.aborted) == (Result.INCONCLUSIVE, True)


def test_a_suspended_run_can_be_aborted() -> None:
    sim = Sim(one_cell(suspended=True))
    engine = sim.engine()
    steps(engine, 3)
    assert to_the_end(steered(engine, sim, aborted=True)).aborted


def test_what_an_aborted_run_had_shown_stays_shown() -> None:
    """A duplicate without a rule that allows it is a Fail, whatever became of the other trials."""
    sim = Sim(one_cell(parallelism=1))
    engine = sim.engine()
    while len(fresh_starts(sim)) < 3:
        steps(engine, 1)
    summary = to_the_end(steered(engine, sim, aborted=True))
    assert (summary.result, summary.aborted) == (Result.FAIL, True)


def test_an_abort_after_everything_was_run_changes_nothing() -> None:
    sim = Sim(one_cell())
    engine = sim.engine()
    while sum(trial.judgement is not None for trial in engine.state.trials.values()) < TRIALS + 1:
        steps(engine, 1)
    assert engine.state.result is None
    assert not to_the_end(steered(engine, sim, aborted=True)).aborted


def test_an_abort_does_not_wait_for_payments() -> None:
    async def away(*_: object) -> str:
        raise LedgerUnavailableError("payments does not answer")

    sim = hanging()
    engine = sim.engine()
    steps(engine, 20)
    sim.target.incarnation = away  # type: ignore[method-assign] # the service goes away in mid-run
    sim.target.view = away  # type: ignore[method-assign,assignment]
    assert to_the_end(steered(engine, sim, aborted=True)).aborted


def test_an_abort_goes_on_where_it_was_broken_off() -> None:
    """The engine dies after it has journaled the intent of a launch: the attempt never came to be."""
    sim = hanging()
    sim.journal.crash_after = lambda events: any(type(event).__name__ == "AttemptIntended" for event in events)
    with pytest.raises(Crash):
        steps(sim.engine(), 5)
    sim.journal.crash_after = lambda _: False
    sim.experiment = replace(sim.experiment, aborted=True)
    summary = to_the_end(sim.engine())
    assert sim.substrate.launches == []
    assert summary.aborted


def test_more_room_counts_at_once() -> None:
    sim = hanging(parallelism=1)
    engine = sim.engine()
    steps(engine, 20)
    before = len(fresh_starts(sim))
    steps(steered(engine, sim, parallelism=3), 3)
    assert (before, len(fresh_starts(sim))) == (2, 4)


def test_a_run_does_not_go_on_under_another_specification() -> None:
    sim = Sim(one_cell())
    engine = sim.engine()
    with pytest.raises(ValueError, match="another specification"):
        engine.steer(replace(sim.experiment, digest="1" * 64))
