"""The plan: complete, without duplicates, and with ids that stay."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from killpoint.core.plan import amount_of, control_of, ordered_of, plan, run_of
from killpoint.model.cells import Cell, Coordinates, Kill, TrialId
from killpoint.model.experiment import is_template
from tests.unit.core.strategies import POINTS, cells
from tests.unit.engine.world import experiment

some_cells = st.lists(cells, min_size=1, max_size=8)


@given(some_cells)
def test_every_cell_is_in_the_plan_once(given_cells: list[Cell]) -> None:
    asked = experiment(*given_cells)
    made = plan(asked, {})
    ids = [cell.id for cell in made.cells]
    assert len(ids) == len(set(ids))
    assert {cell.id for cell in asked.cells if not is_template(cell.coordinates.kill)} == set(ids)


@given(some_cells, st.lists(st.sampled_from(POINTS), unique=True, min_size=1))
def test_every_point_unfolds_once(given_cells: list[Cell], points: list[str]) -> None:
    asked = experiment(*given_cells)
    discovered = {control_of(cell).id: points for cell in asked.cells}
    made = plan(asked, discovered)
    assert made.undiscovered == ()
    assert len({cell.id for cell in made.cells}) == len(made.cells)
    for template in (cell for cell in asked.cells if is_template(cell.coordinates.kill)):
        for point in points:
            wanted = replace(template.coordinates, kill=Kill(at=(point,), name=point))
            assert Cell(coordinates=wanted, trials=1).id in {cell.id for cell in made.cells}


@given(some_cells)
def test_planning_again_changes_nothing(given_cells: list[Cell]) -> None:
    asked = experiment(*given_cells)
    assert plan(asked, {}) == plan(asked, {})


@given(some_cells)
def test_controls_come_first(given_cells: list[Cell]) -> None:
    kinds = [cell.is_control for cell in plan(experiment(*given_cells), {}).cells]
    assert kinds == sorted(kinds, reverse=True)


def test_ids_are_what_they_were_when_they_were_first_published() -> None:
    """An id hashes the non-default coordinates alone: a new axis, or a new default, must not change these."""
    published = {
        "b575330a": Coordinates(setup="langgraph", key="none", kill=Kill(at=("charge.after",), name="charge.after")),
    }
    assert {Cell(coordinates=place, trials=5).id: place for place in published.values()} == published


@given(cells)
def test_the_name_of_a_kill_and_the_number_of_trials_are_not_in_the_id(cell: Cell) -> None:
    kill = cell.coordinates.kill
    renamed = replace(cell, coordinates=replace(cell.coordinates, kill=replace(kill, name="x")), trials=99)
    assert renamed.id == cell.id


@given(st.integers(0, 2**31), st.integers(1, 1000))
def test_what_is_ordered_depends_on_the_seed_and_the_trial_alone(seed: int, number: int) -> None:
    trial = TrialId(cell="7f31e2c0", number=number)
    again = replace(trial, retry=2)
    assert ordered_of(seed, trial) == ordered_of(seed, again)
    assert 1000 <= amount_of(seed, trial) < 10_000


def test_a_second_take_is_another_run() -> None:
    trial = TrialId(cell="7f31e2c0", number=3)
    assert run_of("j1", trial) == "j1-7f31e2c0.3"
    assert run_of("j1", replace(trial, retry=1)) == "j1-7f31e2c0.3r1"
