"""The matrix as a table: which cell stands in which row and column. Shared by every format."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from killpoint.model.cells import Cell, Kill
from killpoint.model.summary import CellSummary

NO_VALUE = "-"
"""Shown where a setup does not have an axis that others have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One combination of the row axes. ``slots[i]`` are the cells in column ``i``: one, or none where it has none."""

    values: tuple[str, ...]
    slots: tuple[tuple[CellSummary, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The rows of a setup."""

    setup: str
    rows: tuple[Row, ...]

    @property
    def cells(self) -> tuple[CellSummary, ...]:
        return tuple(cell for row in self.rows for slot in row.slots for cell in slot)


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Rows are setups, each by the axes that vary; columns are kills, the control first."""

    axes: tuple[str, ...]
    columns: tuple[Kill, ...]
    groups: tuple[Group, ...]


def arrange(cells: Iterable[CellSummary]) -> Matrix:
    """Lay out cells, rows and columns in the order in which they were planned."""
    planned = tuple(cells)
    axes = row_axes(planned)
    kills = dict.fromkeys(summary.cell.coordinates.kill for summary in planned)
    columns = tuple(sorted(kills, key=lambda kill: not kill.is_control))
    setups = dict.fromkeys(summary.cell.coordinates.setup for summary in planned)
    groups = tuple(
        Group(setup=setup, rows=_rows(tuple(c for c in planned if c.cell.coordinates.setup == setup), axes, columns))
        for setup in setups
    )
    return Matrix(axes=axes, columns=columns, groups=groups)


def row_axes(cells: Iterable[CellSummary]) -> tuple[str, ...]:
    """The axes that vary, but for setup and kill, which have places of their own. ``key`` where none does."""
    seen: dict[str, set[str | None]] = {}
    everything = [summary.cell.coordinates.words() for summary in cells]
    names = dict.fromkeys(name for words in everything for name in words)
    for name in names:
        seen[name] = {words.get(name) for words in everything}
    # The key leads: it is what people compare. Further axes follow in their own order.
    varying = sorted((name for name in names if len(seen[name]) > 1), key=lambda name: name != "key")
    return tuple(name for name in varying if name not in {"setup", "kill"}) or ("key",)


def row_values(cell: Cell, axes: Iterable[str]) -> tuple[str, ...]:
    words = cell.coordinates.words()
    return tuple(words.get(axis, NO_VALUE) for axis in axes)


def kill_name(kill: Kill) -> str:
    """A column's head."""
    return "no kill" if kill.is_control else kill.name


def cell_name(cell: Cell, axes: Iterable[str]) -> str:
    """``crewai-persist, none, charge.after``: a cell in words, by the axes that vary."""
    return ", ".join((cell.coordinates.setup, *row_values(cell, axes), kill_name(cell.coordinates.kill)))


def _rows(cells: tuple[CellSummary, ...], axes: tuple[str, ...], columns: tuple[Kill, ...]) -> tuple[Row, ...]:
    slots: dict[tuple[str, ...], dict[Kill, list[CellSummary]]] = {}
    for summary in cells:
        kill = summary.cell.coordinates.kill
        slots.setdefault(row_values(summary.cell, axes), {}).setdefault(kill, []).append(summary)
    return tuple(
        Row(values=values, slots=tuple(tuple(by_kill.get(kill, ())) for kill in columns))
        for values, by_kill in slots.items()
    )
