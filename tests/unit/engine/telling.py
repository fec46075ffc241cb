"""How the engine's tests read a simulated run."""

from __future__ import annotations

from collections.abc import Callable

from killpoint.core.summarize import summarize
from killpoint.engine import Engine
from killpoint.model.cells import AttemptId, Cell
from killpoint.model.summary import ExperimentSummary, Provenance, TrialRecord
from tests.unit.engine.world import Flaw, Sim, cell

PROVENANCE = Provenance(
    killpoint="0",
    substrate="sim",
    seed=1,
    started_ms=0,
    ended_ms=None,
    versions=(),
    platform=(),
    command="",
    replay="killpoint replay x",
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
