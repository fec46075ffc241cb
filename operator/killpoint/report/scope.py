"""Names for sets of cells: "every setup, keys none and fresh, charge.after" instead of eight cells in a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from killpoint.model.cells import Cell
from killpoint.model.summary import CellSummary
from killpoint.report.layout import Matrix, kill_name, row_values
from killpoint.report.words import listing

PARTS_MAX = 5
"""More parts than this are not read by anybody; the rest is counted."""

Place = tuple[str, str, str]
"""Setup, row and kill of a cell, as words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The whole matrix, by whose extent a set of cells is named."""

    axes: tuple[str, ...]
    setups: tuple[str, ...]
    rows: tuple[str, ...]
    kills: tuple[str, ...]

    def name(self, cells: Iterable[CellSummary]) -> str:
        """A set of cells in words: one product of axes where it is one, else a product for each kind of setup."""
        places = {self.place(summary.cell) for summary in cells}
        whole = self._product(places)
        if whole is not None:
            return whole
        words = [
            name for part in _merge(self._ordered(places), lambda place: place[0]) for name in self._products(part)
        ]
        more = len(words) - PARTS_MAX
        return "; ".join(words[:PARTS_MAX]) + (f"; and {more} more" if more > 0 else "")

    def place(self, cell: Cell) -> Place:
        row = ", ".join(row_values(cell, self.axes))
        return cell.coordinates.setup, row, kill_name(cell.coordinates.kill)

    def _products(self, places: set[Place]) -> Iterator[str]:
        """The set as products: of one kind of setup, that is one for each kind of kill at the most."""
        whole = self._product(places)
        if whole is not None:
            yield whole
            return
        for part in _merge(self._ordered(places), lambda place: place[2]):
            yield self._product(part) or "; ".join(", ".join(place) for place in self._ordered(part))

    def _product(self, places: set[Place]) -> str | None:
        """The set as one product of axes, or None where it is not one."""
        setups = [setup for setup in self.setups if any(place[0] == setup for place in places)]
        rows = [row for row in self.rows if any(place[1] == row for place in places)]
        kills = [kill for kill in self.kills if any(place[2] == kill for place in places)]
        if len(places) != len(setups) * len(rows) * len(kills):
            return None
        return ", ".join((self._setups(setups), self._rows(rows), listing(kills)))

    def _ordered(self, places: Iterable[Place]) -> list[Place]:
        """As planned."""
        orders = tuple({name: at for at, name in enumerate(axis)} for axis in (self.setups, self.rows, self.kills))
        return sorted(places, key=lambda place: tuple(order[word] for order, word in zip(orders, place, strict=True)))

    def _setups(self, setups: list[str]) -> str:
        return "every setup" if len(setups) == len(self.setups) > 1 else listing(setups)

    def _rows(self, rows: list[str]) -> str:
        by_key = self.axes == ("key",)
        if len(rows) == len(self.rows) > 1:
            return "every key" if by_key else "every row"
        if by_key:
            return ("key " if len(rows) == 1 else "keys ") + listing(rows)
        return " / ".join(rows)


def scope_of(matrix: Matrix) -> Scope:
    return Scope(
        axes=matrix.axes,
        setups=tuple(group.setup for group in matrix.groups),
        rows=tuple(dict.fromkeys(", ".join(row.values) for group in matrix.groups for row in group.rows)),
        kills=tuple(kill_name(kill) for kill in matrix.columns),
    )


def _merge(places: Iterable[Place], by: Callable[[Place], str]) -> list[set[Place]]:
    """Places in parts by one coordinate, in their order; parts that are alike in the two others become one."""
    parts: dict[str, set[Place]] = {}
    for place in places:
        parts.setdefault(by(place), set()).add(place)
    alike: dict[frozenset[tuple[str, ...]], set[Place]] = {}
    for name, part in parts.items():
        others = frozenset(tuple(word for word in place if word != name) for place in part)
        alike.setdefault(others, set()).update(part)
    return list(alike.values())
