"""A substrate that cannot be asked for a while: nothing is started twice, and nothing is concluded from it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from killpoint.engine import Engine
from killpoint.model.events import AttemptLaunched
from killpoint.model.findings import Result
from killpoint.ports import SubstrateUnavailableError
from tests.unit.engine.world import Sim, cell, experiment


@dataclass
class Flaky:
    """Does what it wraps, and fails in chosen calls: before it was done, or after."""

    does: Callable[..., Awaitable[Any]]
    fails: Callable[[int], bool]
    after: bool = False
    calls: int = 0

    async def __call__(self, *arguments: Any) -> Any:  # noqa: ANN401 - whatever the wrapped call takes and gives
        self.calls += 1
        failing = self.fails(self.calls)
        if failing and not self.after:
            raise SubstrateUnavailableError("nobody there")
        result = await self.does(*arguments)
        if failing:
            raise SubstrateUnavailableError("nobody there")
        return result


def patient(sim: Sim) -> tuple[Engine, int]:
    """Drive a run as drivers do: a pass that met nobody is made again. The engine, and how many those were."""

    async def drive() -> tuple[Engine, int]:
        engine, refused = sim.engine(), 0
        for _ in range(400):
            try:
                step = await engine.step()
            except SubstrateUnavailableError:
                refused += 1
                continue
            if step.wake_after_seconds is None:
                return engine, refused
            sim.clock.ms += int(step.wake_after_seconds * 20_000)
        raise AssertionError("the run did not end")

    return asyncio.run(drive())


@pytest.mark.parametrize("name", ["launch", "observe", "sessions", "clean_up"])
@pytest.mark.parametrize("after", [False, True])
def test_every_other_call_fails_and_the_run_comes_out_the_same(
    name: str,
    after: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    sim = Sim(experiment(cell(at=("charge.before",), trials=3)))
    setattr(sim.substrate, name, Flaky(getattr(sim.substrate, name), lambda call: call % 2 == 1, after=after))
    engine, refused = patient(sim)
    assert engine.state.result is Result.PASS
    assert refused > 0
    assert len(sim.substrate.launches) == len(set(sim.substrate.launches))


def test_what_was_started_beside_one_that_was_not_is_on_record() -> None:
    sim = Sim(experiment(cell(at=("charge.before",), trials=3)))
    setattr(sim.substrate, "launch", Flaky(sim.substrate.launch, lambda call: call == 3))  # noqa: B010 - it is a method
    patient(sim)
    recorded = [kind for _, _, kind, _ in sim.journal.stored]
    # The control, then three trials of which the second is refused once: two are recorded together, then that one.
    assert recorded.count(AttemptLaunched.__name__) == len(sim.substrate.launches)
    assert len(sim.substrate.launches) == len(set(sim.substrate.launches))
