"""Rules: which expectation holds for which cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from killpoint.model.cells import Cell
from killpoint.model.summary import Expected

BUILT_IN = Expected()
"""Holds where no rule matches: the run finishes and each ordered operation happened exactly once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """An expectation for the cells that have one of the words on each axis named."""

    where: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Axis, or parameter, → the words that match. A cell that lacks the parameter is not matched."""
    control: bool = False
    """Whether it is about control cells, and about these only."""
    expected: Expected

    def matches(self, cell: Cell) -> bool:
        if cell.is_control is not self.control:
            return False
        words = cell.coordinates.words()
        return all(words.get(axis) in allowed for axis, allowed in self.where)


def rule_for(cell: Cell, rules: Sequence[Rule]) -> Expected:
    """What is expected of a cell: the last rule that matches it holds, the built-in one where none does."""
    return next((rule.expected for rule in reversed(rules) if rule.matches(cell)), BUILT_IN)
