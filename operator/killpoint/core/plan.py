"""Plan: which cells there are, which trials they have, and what each trial orders."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from killpoint.model.cells import Cell, Kill, TrialId
from killpoint.model.evidence import Ordered
from killpoint.model.experiment import EVERY_POINT, Experiment, is_template

CURRENCY = "EUR"

Discovered = Mapping[str, Sequence[str]]
"""Control cell's id → the points that its trials passed, in the order of their first passing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The cells of a run, controls first. ``undiscovered`` still wait for their controls' points."""

    cells: tuple[Cell, ...]
    undiscovered: tuple[Cell, ...] = ()
    by_id: Mapping[str, Cell] = field(init=False, repr=False, compare=False)
    """The cells once more: thousands of them are looked up in each pass."""
    controls: Mapping[str, str] = field(init=False, repr=False, compare=False)
    """Cell → its control, both by their ids, where the run has one."""

    def __post_init__(self) -> None:
        by_id = {cell.id: cell for cell in self.cells}
        controls = {cell: control for cell, known in by_id.items() if (control := control_of(known).id) in by_id}
        object.__setattr__(self, "by_id", MappingProxyType(by_id))
        object.__setattr__(self, "controls", MappingProxyType(controls))

    @property
    def trials(self) -> int:
        return sum(cell.trials for cell in self.cells)

    def cell(self, cell_id: str) -> Cell | None:
        return self.by_id.get(cell_id)

    def control(self, cell_id: str) -> Cell | None:
        """The control of a cell, where the run has one."""
        return self.by_id.get(self.controls.get(cell_id, ""))


def plan(experiment: Experiment, discovered: Discovered) -> Plan:
    """Unfold an experiment. Cells with ``"*"`` become one cell for each point that their control passed.

    Each combination stands once, whatever made it; its id is the same whatever else is in the plan.
    """
    cells: dict[str, Cell] = {}
    undiscovered: list[Cell] = []
    for cell in sorted(experiment.cells, key=lambda cell: not cell.is_control):
        if not is_template(cell.coordinates.kill):
            cells.setdefault(cell.id, cell)
            continue
        points = discovered.get(control_of(cell).id)
        if points is None:
            undiscovered.append(cell)
            continue
        for unfolded in _unfolded(cell, points):
            cells.setdefault(unfolded.id, unfolded)
    return Plan(cells=tuple(cells.values()), undiscovered=tuple(undiscovered))


def control_of(cell: Cell) -> Cell:
    """The cell with the same coordinates and no kill."""
    return replace(cell, coordinates=replace(cell.coordinates, kill=Kill()))


def _unfolded(cell: Cell, points: Sequence[str]) -> Iterator[Cell]:
    kill = cell.coordinates.kill
    for point in points:
        at = tuple(point if place == EVERY_POINT else place for place in kill.at)
        yield replace(cell, coordinates=replace(cell.coordinates, kill=replace(kill, at=at, name="+".join(at))))


def attempts_of(cell: Cell) -> int:
    """How many executors a trial of this cell has when all goes as planned: one for each kill, and the last."""
    return len(cell.coordinates.kill.at) + 1


def run_of(journal: str, trial: TrialId) -> str:
    """The run's id, which payments attributes effects to. A second take is another run."""
    return f"{journal}-{trial}"


def order_of(trial: TrialId) -> str:
    return f"order-{trial.cell}-{trial.number}"


def amount_of(seed: int, trial: TrialId) -> int:
    """10.00 to 99.99, another one for each trial: a charge that landed under another order is seen as such."""
    digest = hashlib.sha256(f"{seed}/{trial.cell}.{trial.number}".encode()).digest()
    return 1000 + int.from_bytes(digest[:4]) % 9000


def ordered_of(seed: int, trial: TrialId) -> tuple[Ordered, ...]:
    """What the workflow ``charge`` orders: one charge, and that the run's end is made known once."""
    order = order_of(trial)
    return (
        Ordered(action="charge", order=order, amount=amount_of(seed, trial), currency=CURRENCY),
        Ordered(action="finalize", order=order),
    )
