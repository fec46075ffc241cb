"""The crash tester survives crashes: whatever dies under it, it ends with the same evidence."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from killpoint.model.cells import AttemptId
from killpoint.model.events import Event
from killpoint.model.summary import ExperimentSummary
from tests.unit.engine.telling import TABLE, summary_of
from tests.unit.engine.world import Sim, experiment


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
