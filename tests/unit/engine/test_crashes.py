"""The crash tester survives crashes: whatever dies under it, it ends with the same evidence."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from killpoint.engine import Engine
from killpoint.model.cells import AttemptId
from killpoint.model.events import Event
from killpoint.model.evidence import EndReason
from killpoint.model.findings import Verdict
from killpoint.model.observations import Observation
from killpoint.model.summary import ExperimentSummary
from killpoint.ports import Launch
from tests.unit.engine.telling import TABLE, killed, summary_of
from tests.unit.engine.world import LIMITS, Crash, FakeSubstrate, Flaw, Sim, cell, experiment


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


@dataclass
class Refusing(FakeSubstrate):
    """Takes an attempt only after so many refusals. It remembers them no longer than the engine that met them lives."""

    refusals: int = 0
    held: set[AttemptId] = field(default_factory=set)

    async def launch(self, launch: Launch) -> bool:
        if self.refusals == 0:
            self.held.discard(launch.attempt)
            return await super().launch(launch)
        self.refusals -= 1
        self.held.add(launch.attempt)
        return False

    async def observe(self, attempts: Sequence[AttemptId]) -> Mapping[AttemptId, Observation]:
        held = {of: Observation(attempt=of, waits="quota", made=False) for of in attempts if of in self.held}
        return {**await super().observe(attempts), **held}


def test_an_attempt_that_was_refused_is_asked_for_anew_after_a_crash() -> None:
    """To the next engine it has not vanished: it was never there. No take of the trial is lost for it."""
    sim = Sim(experiment(cell(at=("charge.after",)), limits=replace(LIMITS, inconclusive_retries=0)))
    substrate = sim.substrate = Refusing(clock=sim.clock, target=sim.target, refusals=3)

    async def scenario() -> Engine:
        for _ in range(3):
            engine = sim.engine()
            for _ in range(3):
                await engine.step()
            assert substrate.held
            substrate.held.clear()  # with the engine
        return await sim.drive()

    summary = summary_of(asyncio.run(scenario()))
    assert substrate.refusals == 0
    assert summary.totals.retries == 0
    assert len(substrate.launches) == len(set(substrate.launches)) == 3
    assert [record.judgement.verdict for record in killed(summary) if record.judgement] == [Verdict.DUPLICATE]


def test_what_was_seen_to_run_is_not_started_again_if_it_vanishes() -> None:
    """The engine died between starting it and saying so; the next one sees it run, and then it is gone."""
    sim = Sim(experiment(cell(at=("charge.after",))))
    first = True

    def crash(_: AttemptId) -> bool:
        nonlocal first
        crashes, first = first, False
        return crashes

    sim.substrate.crash_after_launch = crash
    sim.substrate.flaw = lambda attempt: Flaw.HANGS if attempt.trial.retry == 0 and attempt.number == 1 else Flaw.NONE
    engine = sim.engine()
    with pytest.raises(Crash):
        asyncio.run(engine.step())
    engine = sim.engine()
    asyncio.run(engine.step())
    sim.substrate.seen.clear()
    asyncio.run(engine.step())
    assert len(sim.substrate.launches) == 1
    [trial] = engine.state.trials.values()
    [attempt] = trial.attempts.values()
    assert attempt.end is not None
    assert attempt.end.reason is EndReason.VANISHED
