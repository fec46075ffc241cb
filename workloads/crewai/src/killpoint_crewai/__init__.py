"""The worker that runs killpoint's workflows as CrewAI flows: with ``@persist``, or with Checkpointing.

Responsible for wiring the steps into flows, for keeping a flow's state where the cell says, and for saying where a
result is recorded. Must not decide what a result means, and must not let the framework write or call elsewhere.
"""

from __future__ import annotations

import os
from typing import NoReturn

from killpoint_crewai.program import PROGRAM, preload
from killpoint_worker import run_worker

__all__ = ["main"]


def main() -> NoReturn:
    """Carry out the assignment in the environment and end the process."""
    run_worker(PROGRAM)


if "KILLPOINT_ASSIGNMENT" not in os.environ:
    # Not an attempt but a process that will fork attempts: they shall find the framework loaded. An attempt that was
    # started cold loads it later, after its log's first line, and not at all to describe itself or look into a store.
    preload()
