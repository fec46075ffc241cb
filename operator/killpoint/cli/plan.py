"""The plan as text: what an experiment will do, before it does anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from killpoint.cli.columns import aligned
from killpoint.core.plan import Plan, attempts_of, plan
from killpoint.model.catalog import Catalog
from killpoint.model.cells import Cell
from killpoint.model.experiment import Experiment, is_template
from killpoint.model.rules import rule_for
from killpoint.report.words import count


def plan_text(experiment: Experiment, catalog: Catalog) -> str:
    """Cells with their ids, coordinates, trials, attempts and what is expected of them."""
    planned = foreseen(experiment, catalog)
    axes = _axes(planned.cells)
    rows = [("CELL", *(axis.upper() for axis in axes), "TRIALS", "ATTEMPTS", "EXPECTED")]
    rows += [_row(experiment, cell, axes) for cell in planned.cells]
    return "\n".join([aligned(rows), "", *_totals(experiment, planned)])


def size_text(experiment: Experiment, catalog: Catalog) -> str:
    """How many cells and trials a run will have."""
    planned = foreseen(experiment, catalog)
    return f"{_about(experiment)}{count(len(planned.cells), 'cell')}, {count(planned.trials, 'trial')}"


def foreseen(experiment: Experiment, catalog: Catalog) -> Plan:
    """The plan if each control passes the points that its setup is said to have, each once."""
    points = {setup.name: setup.points for setup in catalog}
    controls = {cell.id: points[cell.coordinates.setup] for cell in experiment.cells if cell.is_control}
    return plan(experiment, controls)


def _about(experiment: Experiment) -> str:
    return "about " if _templates(experiment) else ""


def _templates(experiment: Experiment) -> int:
    return sum(is_template(cell.coordinates.kill) for cell in experiment.cells)


def _axes(cells: Sequence[Cell]) -> list[str]:
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


def _totals(experiment: Experiment, planned: Plan) -> list[str]:
    attempts = sum(attempts_of(cell) * cell.trials for cell in planned.cells)
    counts = ", ".join([count(len(planned.cells), "cell"), count(planned.trials, "trial"), count(attempts, "attempt")])
    about = _about(experiment).capitalize()
    lines = [f"{about}{counts}; {count(experiment.parallelism, 'trial')} at a time."]
    if templates := _templates(experiment):
        each = "its" if templates == 1 else "their"
        lines.append(
            f'{count(templates, "combination")} at "*": one cell for each point that {each} controls pass;'
            " foreseen are the points that the setup is known for."
        )
    lines += [f"Left out: {sentence}" for sentence in experiment.left_out]
    return lines
