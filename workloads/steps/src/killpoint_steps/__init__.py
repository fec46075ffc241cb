"""The sample application: prepare, charge, finalize, and its own row for each run.

Responsible for the steps' effects, their points but for ``recorded``, idempotency keys and the run table. Must not
know of any framework: the setups wire these steps into theirs and say where a result is recorded.
"""

from killpoint_steps.carry_out import Driven, carry_out
from killpoint_steps.keys import KEYS, MissingSavedKeyError, key_for, saved_key_for
from killpoint_steps.runs import RunRow, RunTable, WorkflowVersionError, open_run_table
from killpoint_steps.steps import CHARGE_POINTS, Prepared, Steps

__all__ = [
    "CHARGE_POINTS",
    "KEYS",
    "Driven",
    "MissingSavedKeyError",
    "Prepared",
    "RunRow",
    "RunTable",
    "Steps",
    "WorkflowVersionError",
    "carry_out",
    "key_for",
    "open_run_table",
    "saved_key_for",
]
