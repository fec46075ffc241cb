"""Chooses the setup that an assignment names. Imports a framework only when a run is carried out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from killpoint_steps import CHARGE_POINTS
from killpoint_worker import Assignment, AssignmentError, Description

if TYPE_CHECKING:
    from collections.abc import Mapping

    from killpoint_worker import Context, Outcome

SNAPSHOT_LOOP = "llamaindex"
DBOS = "llamaindex-dbos"

DISTRIBUTIONS = {
    SNAPSHOT_LOOP: ("llama-index-workflows", "psycopg"),
    DBOS: ("llama-index-workflows", "llama-agents-dbos", "dbos", "psycopg"),
}
PARAMETERS = {
    SNAPSHOT_LOOP: {"payload": ("plain", "unserializable")},
    DBOS: {"payload": ("plain", "unserializable"), "recoveries": ("100", "2")},
}


@dataclass(frozen=True, slots=True)
class Program:
    """Both setups of this worker."""

    def describe(self) -> Description:
        setup = _setup(Assignment.from_environment())
        return Description(
            worker=setup, points=CHARGE_POINTS, parameters=PARAMETERS[setup], distributions=DISTRIBUTIONS[setup]
        )

    def execute(self, context: Context) -> Outcome:
        _require_charge(context.assignment)
        if _setup(context.assignment) == DBOS:
            from killpoint_llamaindex import dbos_runtime  # noqa: PLC0415 - DBOS takes a second to import

            return dbos_runtime.execute(context)
        from killpoint_llamaindex import snapshot_loop  # noqa: PLC0415 - an inspection needs no framework

        return snapshot_loop.execute(context)

    def inspect(self, context: Context) -> Mapping[str, bool]:
        from killpoint_llamaindex import inspection  # noqa: PLC0415 - psycopg takes a moment that describe can do without

        look = inspection.of_dbos if _setup(context.assignment) == DBOS else inspection.of_snapshots
        return look(context)


def _setup(assignment: Assignment) -> str:
    setup = assignment.coordinates.setup
    if setup not in DISTRIBUTIONS:
        raise AssignmentError(f"this worker is {' or '.join(DISTRIBUTIONS)}, the assignment asks for {setup!r}")
    return setup


def _require_charge(assignment: Assignment) -> None:
    if assignment.workflow.name != "charge":
        raise AssignmentError(f"this worker runs workflow charge, the assignment asks for {assignment.workflow.name!r}")
