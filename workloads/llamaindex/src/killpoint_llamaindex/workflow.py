"""The workflow ``charge`` as LlamaIndex has it: three steps, joined by events, with a typed state store."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from workflows import Context, Workflow, step
from workflows.events import StopEvent

from killpoint_llamaindex.state import Charged, ChargeState, Job, Prepared
from killpoint_worker import Receipt

if TYPE_CHECKING:
    from collections.abc import Callable

    from workflows.runtime.types.plugin import Runtime

    from killpoint_steps import Steps

UNSERIALIZABLE = "unserializable"
"""Value of the parameter ``payload``: prepare puts something into the state that cannot be saved."""


class ChargeWorkflow(Workflow):
    """prepare → charge → finalize.

    The steps themselves block on HTTP and, where it is scheduled, on a parked point: they run on a thread, so that the
    framework's event loop goes on meanwhile. ``entering`` is called as the first line of each step with its name.
    """

    def __init__(
        self, steps: Steps, *, entering: Callable[[str], None], payload: str, runtime: Runtime | None = None
    ) -> None:
        # The harness has deadlines of its own; a timeout of the framework's would be a second, hidden one.
        super().__init__(timeout=None, workflow_name="charge", runtime=runtime)
        self._steps = steps
        self._entering = entering
        self._payload = payload

    @step
    async def prepare(self, ctx: Context[ChargeState], ev: Job) -> Prepared:  # noqa: ARG002 - its type is the wiring
        self._entering("prepare")
        prepared = await asyncio.to_thread(self._steps.prepare)
        async with ctx.store.edit_state() as state:
            state.key = prepared.key
            if self._payload == UNSERIALIZABLE:
                state.attachment = threading.Lock()
        return Prepared()

    @step
    async def charge(self, ctx: Context[ChargeState], ev: Prepared) -> Charged:  # noqa: ARG002 - as above
        self._entering("charge")
        key = (await ctx.store.get_state()).key
        receipt = await asyncio.to_thread(self._steps.charge, key)
        async with ctx.store.edit_state() as state:
            state.effect = receipt.id
        return Charged()

    @step
    async def finalize(self, ctx: Context[ChargeState], ev: Charged) -> StopEvent:  # noqa: ARG002 - as above
        self._entering("finalize")
        effect = (await ctx.store.get_state()).effect or ""
        await asyncio.to_thread(self._steps.finalize, Receipt(id=effect, replayed=False))
        return StopEvent(result=effect)
