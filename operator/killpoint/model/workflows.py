"""Workflows: what is run, and the points at which an execution of it can be killed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """A sequence of steps with named points, in the order in which an undisturbed run passes them."""

    name: str
    points: tuple[str, ...]
    actions: tuple[str, ...]
    """What a run of it orders, each once."""


CHARGE = Workflow(
    name="charge",
    points=(
        "prepare.before",
        "prepare.after",
        "charge.before",
        "charge.sent",
        "charge.after",
        "charge.recorded",
        "finalize.before",
        "finalize.after",
    ),
    actions=("charge", "finalize"),
)
"""prepare → charge → finalize: one charge is ordered, and one notice that it is final."""

WORKFLOWS = (CHARGE,)
