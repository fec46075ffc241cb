"""The database's sessions: one that breaks off has disturbed trials, one that another engine opens has not."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from killpoint.engine import Engine
from killpoint.ports import SESSION
from tests.unit.engine.world import Crash, Sim, cell, experiment

SERVER = "2026-11-30 10:00:00+00"


def sim() -> Sim:
    """A run whose first engine dies when its control trial runs."""
    made = Sim(experiment(cell(at=("charge.after",))))
    made.journal.server = f"{SERVER}{SESSION}100"
    made.journal.crash_after = lambda events: any(type(event).__name__ == "AttemptLaunched" for event in events)
    with pytest.raises(Crash):
        step(made.engine(), 5)
    made.journal.crash_after = lambda _: False
    return made


def step(engine: Engine, count: int) -> None:
    async def steps() -> None:
        for _ in range(count):
            await engine.step()

    asyncio.run(steps())


def disturbances(engine: Engine) -> tuple[str, ...]:
    return tuple(words for trial in engine.state.trials.values() for words in trial.disturbances)


def test_the_session_of_another_engine_disturbs_nothing() -> None:
    """An operator that was killed is followed by one with a session of its own; what ran meanwhile ran undisturbed."""
    world = sim()
    world.journal.server = f"{SERVER}{SESSION}200"
    engine = world.engine()
    step(engine, 1)
    assert disturbances(engine) == ()


@pytest.mark.parametrize("later", [f"{SERVER}{SESSION}300", f"2026-11-30 11:00:00+00{SESSION}200"])
def test_a_session_that_broke_off_has_disturbed_what_ran(later: str) -> None:
    world = sim()
    world.journal.server = f"{SERVER}{SESSION}200"
    engine = world.engine()
    world.substrate.seen = {attempt: replace(seen, end=None) for attempt, seen in world.substrate.seen.items()}
    step(engine, 1)
    world.journal.server = later
    step(engine, 1)
    assert len(disturbances(engine)) == 1


def test_a_server_that_was_started_anew_meanwhile_has_disturbed_what_ran() -> None:
    world = sim()
    world.journal.server = f"2026-11-30 11:00:00+00{SESSION}200"
    engine = world.engine()
    step(engine, 1)
    assert len(disturbances(engine)) == 1
