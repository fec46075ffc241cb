"""The LlamaIndex worker: the steps wired into LlamaIndex Workflows, as a snapshot loop and on the DBOS runtime.

Responsible for the workflow's wiring, for where its state is kept, and for placing ``charge.recorded`` where that is a
fact. Must not do what a step does, make a key, or judge anything.
"""

from __future__ import annotations

import os
from typing import NoReturn

from killpoint_llamaindex.program import Program
from killpoint_worker import run_worker

if "KILLPOINT_ASSIGNMENT" not in os.environ:
    # A parent that forks attempts imports this package before there is an assignment, and all its children profit from
    # what it has loaded. A process that has an assignment loads what its action needs: a look into a store needs none.
    from killpoint_llamaindex import snapshot_loop as _preloaded  # noqa: F401


def main() -> NoReturn:
    """Carry out the assignment in the environment."""
    run_worker(Program())
