"""The worker's side of the killpoint contract, in the standard library alone.

Responsible for reading an assignment, passing points, dying where that is scheduled, leaving a termination log
and talking to payments. Must not know of any framework, and must not decide what a result means.
"""

from killpoint_worker.assignment import (
    Assignment,
    AssignmentError,
    Coordinates,
    Environment,
    Job,
    Order,
    Scheduled,
    Versions,
    Workflow,
)
from killpoint_worker.log import TerminationLog
from killpoint_worker.payments import PaymentsClient, PaymentsError, PaymentsRefused, PaymentsUnavailable, Receipt
from killpoint_worker.points import Points
from killpoint_worker.program import (
    Claim,
    Context,
    Description,
    Finished,
    Outcome,
    Stopped,
    Timings,
    WorkerProgram,
)
from killpoint_worker.run import run_worker

__all__ = [
    "Assignment",
    "AssignmentError",
    "Claim",
    "Context",
    "Coordinates",
    "Description",
    "Environment",
    "Finished",
    "Job",
    "Order",
    "Outcome",
    "PaymentsClient",
    "PaymentsError",
    "PaymentsRefused",
    "PaymentsUnavailable",
    "Points",
    "Receipt",
    "Scheduled",
    "Stopped",
    "TerminationLog",
    "Timings",
    "Versions",
    "WorkerProgram",
    "Workflow",
    "run_worker",
]
