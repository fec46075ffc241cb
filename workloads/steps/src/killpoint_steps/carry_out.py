"""Carries out one attempt: looks at the run's row, lets the framework drive the steps, marks the run as done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from killpoint_steps.runs import WorkflowVersionError, open_run_table
from killpoint_steps.steps import Steps
from killpoint_worker import Claim, Context, Finished, Outcome, Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class Driven:
    """How a framework ended a run that it carried to its end.

    ``receipt`` is what the framework's own state holds of the charge, None where it holds nothing: the claim is the
    framework's, not the application's. ``resumed_from`` names the checkpoint that the run went on from.
    """

    receipt: Receipt | None
    resumed_from: str | None = None


def carry_out(context: Context, drive: Callable[[Steps], Driven]) -> Outcome:
    """Run the workflow through ``drive`` unless the run is done already. Returns only when the framework ended it.

    ``drive`` raises when the framework stops short of the end: that is a failed attempt, not a finished run.
    Raises WorkflowVersionError.
    """
    assignment = context.assignment
    table = open_run_table(context)
    version = assignment.workflow.versions.graph
    row = table.begin(assignment.run, version)
    steps = Steps(context)
    if row.done:
        return Finished(claims=_claims(steps, row.charge))
    if row.version != version:
        raise WorkflowVersionError(f"run {row.run} was begun by graph version {row.version}, this worker has {version}")
    driven = drive(steps)
    charge = None if driven.receipt is None else driven.receipt.id
    table.finish(assignment.run, charge)
    return Finished(resumed_from=driven.resumed_from, claims=_claims(steps, charge))


def _claims(steps: Steps, charge: str | None) -> tuple[Claim, ...]:
    return () if charge is None else (Claim(action="charge", order=steps.order.id, effect=charge),)
