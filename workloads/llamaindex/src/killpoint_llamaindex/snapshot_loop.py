"""Setup ``llamaindex``: the documented snapshot loop. The application saves the context whenever a step has ended."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from workflows import Context as WorkflowContext
from workflows.events import StepState, StepStateChanged

from killpoint_llamaindex.documents import effect_in, is_finished
from killpoint_llamaindex.snapshots import Snapshot
from killpoint_llamaindex.state import Job
from killpoint_llamaindex.stores import open_snapshots
from killpoint_llamaindex.workflow import ChargeWorkflow
from killpoint_steps import Driven, Steps, carry_out
from killpoint_worker import Receipt

if TYPE_CHECKING:
    from workflows.events import Event
    from workflows.handler import WorkflowHandler

    from killpoint_llamaindex.snapshots import SnapshotStore
    from killpoint_worker import Context, Outcome

PREDECESSOR = {"charge": "prepare", "finalize": "charge"}


class SnapshotMissingError(RuntimeError):
    """A step was about to begin although the snapshot after the step before it is not saved."""


def execute(context: Context) -> Outcome:
    """Start the run, or resume it from its newest snapshot."""
    with open_snapshots(context) as store:
        return carry_out(context, lambda steps: asyncio.run(SnapshotLoop(context, steps, store).drive()))


class SnapshotLoop:
    """One attempt's loop over the events of a run."""

    def __init__(self, context: Context, steps: Steps, store: SnapshotStore) -> None:
        self._context = context
        self._steps = steps
        self._store = store
        self._sequence = 0
        self._saved: str | None = None
        """The step whose end is in the newest snapshot."""

    async def drive(self) -> Driven:
        """Carry the run to its end. Raises what a step or a save raised."""
        snapshot = None if self._context.assignment.action == "start" else self._store.newest()
        if snapshot is not None and is_finished(snapshot.document) and self._context.assignment.continues:
            # Killed between the last snapshot and the application's own done row: the framework has nothing left to do.
            return _driven(effect_in(snapshot.document), snapshot)
        handler = self._run(snapshot)
        try:
            await self._save_until_the_end(handler)
        except Exception:
            await handler.cancel_run()
            raise
        await handler
        return _driven((await handler.ctx.store.get_state()).effect, snapshot)

    def _run(self, snapshot: Snapshot | None) -> WorkflowHandler:
        run = self._context.assignment.run
        workflow = ChargeWorkflow(
            self._steps,
            entering=self._require_saved,
            payload=self._context.assignment.coordinates.parameters.get("payload", "plain"),
        )
        job = Job(order=self._steps.order.id)
        if snapshot is None:
            return workflow.run(start_event=job, run_id=run)
        self._sequence, self._saved = snapshot.sequence, snapshot.step
        restored = WorkflowContext.from_dict(workflow, dict(snapshot.document))
        return workflow.run(ctx=restored, run_id=run, start_event=None if self._context.assignment.continues else job)

    async def _save_until_the_end(self, handler: WorkflowHandler) -> None:
        async for event in handler.stream_events(expose_internal=True):
            if not _ended_a_step(event):
                continue
            # Blocking, on purpose: while it saves, the event loop cannot begin the next step; an awaited save lets it.
            self._save(event.name, handler)
            if event.name == "charge":
                self._steps.recorded("charge")

    def _save(self, step: str, handler: WorkflowHandler) -> None:
        with self._context.time("checkpoint"):
            self._store.save(Snapshot(sequence=self._sequence + 1, step=step, document=handler.ctx.to_dict()))
        self._sequence += 1
        self._saved = step

    def _require_saved(self, step: str) -> None:
        """Called first in each step. Refuses one whose predecessor is not on record.

        The next step is already scheduled when a save fails, as with a state that does not serialize, and its effect
        would happen before the failure ends the run. It also turns "the save was done before" from a hope into a check.
        """
        predecessor = PREDECESSOR.get(step)
        if predecessor is not None and self._saved != predecessor:
            raise SnapshotMissingError(f"{step} begins, but no snapshot after {predecessor} is saved")


def _ended_a_step(event: Event) -> bool:
    """Whether a step ended with a result. A step that failed says NOT_RUNNING too, but names no output.

    The snapshot at that moment has ``is_running=False``: saved, it would make the run look finished.
    """
    return (
        isinstance(event, StepStateChanged)
        and event.step_state == StepState.NOT_RUNNING
        and event.output_event_name is not None
    )


def _driven(effect: str | None, snapshot: Snapshot | None) -> Driven:
    return Driven(
        receipt=None if effect is None else Receipt(id=effect, replayed=False),
        resumed_from=None if snapshot is None else str(snapshot.sequence),
    )
