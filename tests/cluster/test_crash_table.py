"""The published crash table, as pods: 36 cells, each with the charges that were published for it.

One trial of each cell by default; KILLPOINT_CRASH_TABLE_TRIALS=5 runs the whole of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.experiments import apply, assert_passed, completed, effects, installed
from tests.cluster.providers import Provider

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

TRIALS = int(os.environ.get("KILLPOINT_CRASH_TABLE_TRIALS", "1"))
SECONDS_MAX = 600.0 + 600.0 * TRIALS
KILLS = ("charge.before", "charge.after", "charge.recorded")
PUBLISHED = {
    ("langgraph", "none"): (1, 2, 1),
    ("langgraph", "fresh"): (1, 2, 1),
    ("langgraph", "stable"): (1, 1, 1),
    ("llamaindex", "none"): (1, 2, 1),
    ("llamaindex", "fresh"): (1, 2, 1),
    ("llamaindex", "stable"): (1, 1, 1),
    ("crewai-persist", "none"): (1, 2, 2),
    ("crewai-persist", "fresh"): (1, 2, 2),
    ("crewai-persist", "stable"): (1, 1, 1),
    ("crewai-checkpoint", "none"): (1, 2, 1),
    ("crewai-checkpoint", "fresh"): (1, 2, 1),
    ("crewai-checkpoint", "stable"): (1, 1, 1),
}
"""Setup and key → charges of each trial when killed before the charge, after it, and after its record."""
CHARGES = {(*row, kill): count for row, counts in PUBLISHED.items() for kill, count in zip(KILLS, counts, strict=True)}
VERDICTS = {1: "exactly-once", 2: "duplicate"}

Cells = dict[tuple[str, str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def status(provider: Provider) -> Iterator[dict[str, Any]]:
    """That of the table at its end."""
    with installed(provider) as kubectl:
        apply(kubectl, "crash-table", trials=TRIALS)
        yield completed(kubectl, "crash-table", seconds_max=SECONDS_MAX)


@pytest.fixture(scope="module")
def cells(status: dict[str, Any]) -> Cells:
    """Setup, key and kill → the cell. Controls are not among them."""
    killed = [cell for cell in status["cells"] if not cell["control"]]
    return {tuple(cell["coordinates"][axis] for axis in ("setup", "key", "kill")): cell for cell in killed}


def test_it_passes_with_every_kill_proven(status: dict[str, Any]) -> None:
    assert_passed(status)
    assert status["trials"]["judged"] == status["trials"]["planned"] == len(CHARGES) * TRIALS + 12 * 1
    assert status["effects"]["lost"] == 0


def test_it_has_the_cells_of_the_published_one(cells: Cells) -> None:
    assert cells.keys() == CHARGES.keys()


@pytest.mark.parametrize(("setup", "key", "kill"), CHARGES)
def test_a_cell_charges_as_published(cells: Cells, setup: str, key: str, kill: str) -> None:
    """A trial that CrewAI's own checkpoint writer spoiled counts in neither, as it did not there."""
    cell, charges = cells[setup, key, kill], CHARGES[setup, key, kill]
    counted = TRIALS - cell["setApart"]
    assert counted > 0
    assert cell["verdicts"] == {VERDICTS[charges]: counted}
    assert effects(cell, "charge") == {charges: counted}
