"""The plan as text: what an experiment will do, before it does anything."""

from __future__ import annotations

from collections import Counter

from killpoint.cli.columns import aligned
from killpoint.core.plan import attempts_of, plan
from killpoint.model.cells import Cell
from killpoint.model.experiment import Experiment
from killpoint.model.rules import rule_for
from killpoint.report.words import count


def plan_text(experiment: Experiment) -> str:
    """Cells with their ids, coordinates, trials, attempts and what is expected of them."""
    planned = plan(experiment, {})
    cells = [*planned.cells, *planned.undiscovered]
    axes = _axes(cells)
    rows = [("CELL", *(axis.upper() for axis in axes), "TRIALS", "ATTEMPTS", "EXPECTED")]
    rows += [_row(experiment, cell, axes) for cell in cells]
    return "\n".join([aligned(rows), "", *_totals(experiment, planned.cells, planned.undiscovered)])


def _axes(cells: list[Cell]) -> list[str]:
    """The axes on which cells differ, and the setup and the kill always."""
    seen: dict[str, set[str]] = {}
    for cell in cells:
        for axis, word in cell.coordinates.words().items():
            seen.setdefault(axis, set()).add(word)
    has = Counter(axis for cell in cells for axis in cell.coordinates.words())
    return [axis for axis in seen if axis in {"setup", "kill"} or len(seen[axis]) > 1 or has[axis] < len(cells)]


def _row(experiment: Experiment, cell: Cell, axes: list[str]) -> tuple[str, ...]:
    words = cell.coordinates.words()
    expected = rule_for(cell, experiment.rules)
    effects = "".join(f", {count} × {action}" for action, count in expected.effects)
    return (
        cell.id,
        *(words.get(axis, "-") for axis in axes),
        str(cell.trials),
        str(attempts_of(cell) * cell.trials),
        " or ".join(expected.verdicts) + effects,
    )


def _totals(experiment: Experiment, cells: tuple[Cell, ...], undiscovered: tuple[Cell, ...]) -> list[str]:
    trials = sum(cell.trials for cell in cells)
    attempts = sum(attempts_of(cell) * cell.trials for cell in cells)
    counts = ", ".join([count(len(cells), "cell"), count(trials, "trial"), count(attempts, "attempt")])
    least = "At least " if undiscovered else ""
    lines = [f"{least}{counts}; {count(experiment.parallelism, 'trial')} at a time."]
    if undiscovered:
        lines.append(f'{len(undiscovered)} cells at "*" unfold into one for each point that their controls pass.')
    lines += [f"Left out: {sentence}" for sentence in experiment.left_out]
    return lines
