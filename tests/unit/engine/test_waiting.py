"""An attempt that does not start is told of, long before it is given up."""

from __future__ import annotations

import asyncio

from killpoint.engine import REFUSED_SECONDS, WAITING_SECONDS, Step
from tests.unit.engine.world import Flaw, Sim, cell, experiment


def waiting() -> Sim:
    """A run none of whose attempts starts."""
    sim = Sim(experiment(cell(at=("charge.after",), trials=1)))
    sim.substrate.flaw = lambda _: Flaw.WAITS
    return sim


def steps_after(sim: Sim, seconds: float) -> Step:
    """The pass that comes so long after attempts were asked for."""

    async def several() -> Step:
        engine = sim.engine()
        for _ in range(3):
            await engine.step()
        sim.clock.ms += int(seconds * 1000)
        return await engine.step()

    return asyncio.run(several())


def test_what_an_attempt_waits_for_is_told_once_it_should_have_started() -> None:
    step = steps_after(waiting(), WAITING_SECONDS)
    [attempt] = [of.id for trial in step.state.trials.values() for of in trial.running]
    assert step.waiting == (f"pod of {attempt} has no node",)


def test_a_moment_is_given_to_every_start() -> None:
    assert steps_after(waiting(), WAITING_SECONDS / 2).waiting == ()


def test_nothing_is_told_of_attempts_that_have_started() -> None:
    sim = waiting()
    sim.substrate.flaw = lambda _: Flaw.HANGS
    assert steps_after(sim, WAITING_SECONDS).waiting == ()


def test_a_start_that_has_failed_once_is_told_of_sooner() -> None:
    sim = waiting()
    sim.substrate.flaw = lambda _: Flaw.REFUSED
    assert steps_after(sim, REFUSED_SECONDS / 2).waiting == ()
    assert len(steps_after(sim, REFUSED_SECONDS).waiting) == 1
    assert steps_after(waiting(), REFUSED_SECONDS).waiting == ()


def test_what_is_waited_for_says_which_of_its_takes_a_trial_is_at() -> None:
    sim = waiting()
    sim.substrate.flaw = lambda attempt: Flaw.WAITS if attempt.trial.retry else Flaw.VANISHES

    async def several() -> tuple[str, ...]:
        engine = sim.engine()
        for _ in range(20):
            await engine.step()
            sim.clock.ms += int(WAITING_SECONDS * 1000 / 2)
            step = await engine.step()
            if step.waiting:
                return step.waiting
        return ()

    limit = sim.experiment.limits.inconclusive_retries
    assert [words.partition(" has no node")[2] for words in asyncio.run(several())] == [f" (take 2 of {limit + 1})"]
