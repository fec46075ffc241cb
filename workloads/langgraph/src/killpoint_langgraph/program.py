"""The worker program: one attempt of the workflow in LangGraph."""

from __future__ import annotations

from typing import Any, Literal, get_args

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver

from killpoint_langgraph.graph import build_graph
from killpoint_langgraph.inspection import is_charge_recorded
from killpoint_langgraph.recording import CHARGE_CHANNEL, Recording
from killpoint_langgraph.savers import open_saver
from killpoint_steps import CHARGE_POINTS, Driven, Steps, carry_out
from killpoint_worker import AssignmentError, Context, Description, Outcome, Receipt

Durability = Literal["async", "sync", "exit"]
DURABILITIES: tuple[Durability, ...] = get_args(Durability)
DEFAULT_DURABILITY: Durability = "async"

DISTRIBUTIONS = (
    "langgraph",
    "langgraph-checkpoint",
    "langgraph-checkpoint-postgres",
    "langgraph-checkpoint-sqlite",
    "psycopg",
)


class StoppedShortError(RuntimeError):
    """The graph came back before its end."""


class LangGraphProgram:
    """Setup ``langgraph``."""

    def describe(self) -> Description:
        return Description(
            worker="langgraph",
            points=CHARGE_POINTS,
            parameters={"durability": DURABILITIES},
            distributions=DISTRIBUTIONS,
        )

    def execute(self, context: Context) -> Outcome:
        durability = _durability(context)
        return carry_out(context, lambda steps: _drive(context, steps, durability))

    def inspect(self, context: Context) -> dict[str, bool]:
        return {"charge": is_charge_recorded(context)}


def _drive(context: Context, steps: Steps, durability: Durability) -> Driven:
    recording = Recording(lambda: steps.recorded("charge"), lambda: context.time("checkpoint"))
    config: RunnableConfig = {"configurable": {"thread_id": context.assignment.run}}
    with open_saver(context, recording) as saver:
        checkpoint = _checkpoint_to_continue(context, saver, config)
        if checkpoint is not None:
            recording.found_checkpoint(checkpoint)
        graph: Any = build_graph(steps, recording, saver)
        # None asks LangGraph to go on from the thread's newest checkpoint; an input begins at the graph's start.
        graph_input = {"order": steps.order.id} if checkpoint is None else None
        graph.invoke(graph_input, config, durability=durability)
        state = graph.get_state(config)
    # No next alone does not mean finished: a task whose writes were saved, but not applied, is not among them.
    if state.next or state.tasks:
        raise StoppedShortError(f"the graph stopped before {', '.join(state.next) or 'applying its last writes'}")
    receipt = state.values.get(CHARGE_CHANNEL)
    return Driven(receipt=None if receipt is None else Receipt.from_state(receipt), resumed_from=checkpoint)


def _checkpoint_to_continue(context: Context, saver: BaseCheckpointSaver[Any], config: RunnableConfig) -> str | None:
    """The checkpoint's id; None when the input has to be sent: a start, a resend, or nothing was ever saved."""
    if not context.assignment.continues:
        return None
    found = saver.get_tuple(config)
    return None if found is None else str(found.config["configurable"]["checkpoint_id"])


def _durability(context: Context) -> Durability:
    value = context.assignment.coordinates.parameters.get("durability", DEFAULT_DURABILITY)
    if value not in DURABILITIES:
        raise AssignmentError(f"durability {value!r} is unknown: one of {', '.join(DURABILITIES)} is wanted")
    return value
