"""killpoint_llamaindex whose charge step charges and then waits for an approval.

The first attempt ends as the wait begins; a resume brings the approval. With GUARD=state, the step looks into the
context's state first, whether it has charged.
"""

from __future__ import annotations

import asyncio
import os
from typing import NoReturn

from workflows import Context as WorkflowContext
from workflows import step
from workflows.events import Event, WorkflowIdleEvent

from killpoint_llamaindex import inspection
from killpoint_llamaindex.snapshots import Snapshot, SnapshotStore
from killpoint_llamaindex.state import Charged, ChargeState, Job, Prepared
from killpoint_llamaindex.stores import open_snapshots
from killpoint_llamaindex.workflow import ChargeWorkflow
from killpoint_steps import CHARGE_POINTS, Driven, Steps, carry_out
from killpoint_worker import Context, Description, Outcome, Receipt, Stopped, run_worker


class Approved(Event):  # type: ignore[misc]
    """What the charge step waits for."""


class UnapprovedError(Exception):
    """The workflow waits for an approval."""


class WaitingWorkflow(ChargeWorkflow):
    """The framework runs a step again from its beginning when the event that it waits for has come."""

    @step  # type: ignore[untyped-decorator]
    async def charge(self, ctx: WorkflowContext[ChargeState], ev: Prepared) -> Charged:  # noqa: ARG002 - the wiring
        before = await ctx.store.get_state()
        if before.effect is None or os.environ["GUARD"] != "state":
            receipt = await asyncio.to_thread(self._steps.charge, before.key)
            async with ctx.store.edit_state() as state:
                state.effect = receipt.id
        await ctx.wait_for_event(Approved, timeout=None)
        return Charged()


class Program:
    """Ends as ``waiting`` until it is resumed."""

    def describe(self) -> Description:
        return Description(worker="llamaindex-waiting", points=CHARGE_POINTS)

    def inspect(self, context: Context) -> dict[str, bool]:
        return dict(inspection.of_snapshots(context))

    def execute(self, context: Context) -> Outcome:
        with open_snapshots(context) as store:
            try:
                return carry_out(context, lambda steps: asyncio.run(drive(context, steps, store)))
            except UnapprovedError:
                return Stopped(word="waiting")


async def drive(context: Context, steps: Steps, store: SnapshotStore) -> Driven:
    workflow = WaitingWorkflow(steps, entering=lambda _: None, payload="plain")
    run, snapshot = context.assignment.run, store.newest()
    if snapshot is None:
        handler = workflow.run(start_event=Job(order=steps.order.id), run_id=run)
    else:
        handler = workflow.run(ctx=WorkflowContext.from_dict(workflow, dict(snapshot.document)), run_id=run)
        handler.ctx.send_event(Approved())
    async for event in handler.stream_events(expose_internal=True):
        if snapshot is None and isinstance(event, WorkflowIdleEvent):
            store.save(Snapshot(sequence=1, step="charge", document=handler.ctx.to_dict()))
            await handler.cancel_run()
            raise UnapprovedError
    await handler
    effect = (await handler.ctx.store.get_state()).effect
    return Driven(receipt=Receipt(id=effect), resumed_from=None if snapshot is None else str(snapshot.sequence))


def main() -> NoReturn:
    run_worker(Program())
