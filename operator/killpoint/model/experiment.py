"""An experiment as everything after the specification knows it: its cells, its rules and its bounds."""

from __future__ import annotations

from dataclasses import dataclass

from killpoint.model.cells import Cell, Kill
from killpoint.model.limits import Limits
from killpoint.model.rules import Rule

EVERY_POINT = "*"
"""In the first place of ``Kill.at``: every point that the control of the cell passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """What is to be run. Made from a valid specification and the catalog, and from nothing else."""

    name: str
    digest: str
    """SHA-256, in hexadecimal, of the specification with its defaults, without what may change while it runs."""
    seed: int
    trials: int
    """Of each killed cell."""
    controls: int
    """Trials of each control cell."""
    parallelism: int
    workflow: str
    cells: tuple[Cell, ...]
    """Controls first, then the killed cells, both in the order of the matrix. Killed cells at ``"*"`` are templates."""
    rules: tuple[Rule, ...]
    limits: Limits
    fail_fast: bool
    suspended: bool = False
    """No trial is started for now; those that run go on to their end. May change while it runs."""
    aborted: bool = False
    """What runs is killed, and the run ends with what is judged by now. May be set while it runs, never taken back."""
    narrowed: bool = False
    """Whether it is a part of what its file says: rules may be about cells that are not in it."""
    left_out: tuple[str, ...] = ()
    """Combinations that were asked for and that a setup cannot run, one sentence each."""


def is_template(kill: Kill) -> bool:
    """Whether the kill stands for one at each point that the control passes, and can't be run as it is."""
    return kill.at[:1] == (EVERY_POINT,)
