"""The workflow as a graph: one node a step, each result in a channel of its own."""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from killpoint_langgraph.recording import CHARGE_CHANNEL, Recording
from killpoint_steps import Steps
from killpoint_worker import Receipt


class ChargeState(TypedDict, total=False):
    """The graph's channels. ``receipt`` is named by CHARGE_CHANNEL: it is what a recorded charge is known by."""

    order: str
    key: str | None
    receipt: dict[str, Any]
    finalized: bool


def build_graph(
    steps: Steps, recording: Recording, saver: BaseCheckpointSaver[Any]
) -> CompiledStateGraph[ChargeState, None, ChargeState, ChargeState]:
    """Compile prepare → charge → finalize over ``saver``."""

    def prepare(state: ChargeState) -> dict[str, Any]:  # noqa: ARG001 - LangGraph passes it by this name
        return {"key": steps.prepare().key}

    def charge(state: ChargeState) -> dict[str, Any]:
        receipt = steps.charge(state.get("key"))
        recording.expect(receipt)
        return {CHARGE_CHANNEL: receipt.state()}

    def finalize(state: ChargeState) -> dict[str, Any]:
        steps.finalize(Receipt.from_state(state["receipt"]))
        return {"finalized": True}

    graph = StateGraph(ChargeState)
    graph.add_node("prepare", prepare)
    graph.add_node("charge", charge)
    graph.add_node("finalize", finalize)
    graph.add_edge(START, "prepare")
    graph.add_edge("prepare", "charge")
    graph.add_edge("charge", "finalize")
    graph.add_edge("finalize", END)
    return graph.compile(checkpointer=saver)
