"""The worker program of both setups. Imports the framework only where a flow is run."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from killpoint_crewai import checkpoints, states
from killpoint_crewai.surroundings import settle
from killpoint_steps import CHARGE_POINTS, Driven, Steps, carry_out
from killpoint_worker import Assignment, AssignmentError, Context, Description, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PERSIST = "crewai-persist"
CHECKPOINT = "crewai-checkpoint"
PARAMETERS: Mapping[str, Mapping[str, Sequence[str]]] = {
    PERSIST: {"payload": ("plain", "datetime", "unserializable")},
    CHECKPOINT: {"events": ("method_execution_finished", "task_completed")},
}


class CrewAIProgram:
    """Runs workflow ``charge``; the assignment's setup says how its state is kept."""

    def describe(self) -> Description:
        setup = _setup(Assignment.from_environment())
        return Description(
            worker=setup, points=CHARGE_POINTS, parameters=PARAMETERS[setup], distributions=("crewai", "psycopg")
        )

    def execute(self, context: Context) -> Outcome:
        setup = _setup(context.assignment)
        settle(context.require_volume() / "crewai-home")
        return carry_out(context, lambda steps: _drive(setup, context, steps))

    def inspect(self, context: Context) -> Mapping[str, bool]:
        if _setup(context.assignment) == PERSIST:
            return {"charge": any(state.method == "charge" for state in states.read(context))}
        return {"charge": any("charge" in checkpoint.completed for checkpoint in checkpoints.read(context))}


PROGRAM = CrewAIProgram()


def preload() -> None:
    """Load the framework for attempts that will be forked from this process. Starts no thread and opens nothing."""
    home = Path(tempfile.mkdtemp(prefix="killpoint-crewai-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    settle(home)
    import_module("killpoint_crewai.persistence")
    import_module("killpoint_crewai.checkpointing")


def _setup(assignment: Assignment) -> str:
    setup = assignment.coordinates.setup
    if setup not in PARAMETERS:
        raise AssignmentError(f"this worker is {' or '.join(PARAMETERS)}, the assignment asks for {setup!r}")
    if assignment.workflow.name != "charge":
        raise AssignmentError(f"this worker runs workflow charge, the assignment asks for {assignment.workflow.name!r}")
    return setup


def _drive(setup: str, context: Context, steps: Steps) -> Driven:
    if setup == PERSIST:
        from killpoint_crewai import persistence  # noqa: PLC0415 - loads the framework

        return persistence.drive(context, steps)
    from killpoint_crewai import checkpointing  # noqa: PLC0415 - loads the framework

    return checkpointing.drive(context, steps)
