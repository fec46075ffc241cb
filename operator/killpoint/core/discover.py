"""Discover: which points the controls passed, so that "every boundary" has a meaning before anything is killed."""

from __future__ import annotations

from killpoint.core.contract import FOLDED
from killpoint.core.plan import Discovered, control_of
from killpoint.core.state import RunState
from killpoint.model.cells import Cell
from killpoint.model.experiment import Experiment, is_template


def discovered(experiment: Experiment, state: RunState) -> Discovered:
    """Control cell's id → the points that its trials passed, where a cell asks for them.

    A cell is absent whose controls are not through, passed no point, or left some out of their logs: to kill at
    "every point" of it would be to pass some over in silence.
    """
    found: dict[str, tuple[str, ...]] = {}
    asked = {control_of(cell).id for cell in experiment.cells if is_template(cell.coordinates.kill)}
    for cell in experiment.cells if asked else ():
        if cell.is_control and cell.id in asked and (points := _points_of(cell, state)) is not None:
            found[cell.id] = points
    return found


def _points_of(cell: Cell, state: RunState) -> tuple[str, ...] | None:
    points: dict[str, None] = {}
    for number in cell.numbers:
        take = state.latest(cell.id, number)
        if take is None or take.judgement is None:
            return None
        ends = [attempt.end for attempt in take.executors if attempt.end is not None]
        if any(end.points_left_out for end in ends):
            return None
        points.update(dict.fromkeys(passed.spec for end in ends for passed in end.points if passed.point != FOLDED))
    return tuple(points) or None
