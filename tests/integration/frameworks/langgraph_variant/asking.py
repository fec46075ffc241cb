"""killpoint_langgraph where a person is asked twice before the order is finalized, in the node that ASKS names.

An attempt ends where a question is open; a resume brings the answer to that one.
"""

from __future__ import annotations

import os
from typing import Any, NoReturn

from langgraph.types import Command, interrupt

from killpoint_langgraph import LangGraphProgram
from killpoint_langgraph.graph import build_graph
from killpoint_langgraph.recording import Recording
from killpoint_langgraph.savers import open_saver
from killpoint_steps import Driven, Steps, carry_out
from killpoint_worker import Context, Outcome, Receipt, Stopped, run_worker


class UnansweredError(Exception):
    """The graph stopped at a question."""


class AskingSteps(Steps):
    """The steps; LangGraph runs a node again from its beginning after each answer."""

    def charge(self, saved_key: str | None) -> Receipt:
        receipt = super().charge(saved_key)
        self._ask_in("charge")
        return receipt

    def finalize(self, receipt: Receipt) -> None:
        self._ask_in("finalize")
        super().finalize(receipt)

    def _ask_in(self, node: str) -> None:
        if os.environ["ASKS"] == node:
            interrupt("May the order be shipped?")
            interrupt("Is the address right?")


class AskingProgram(LangGraphProgram):
    """Ends as ``waiting`` while a question is open."""

    def execute(self, context: Context) -> Outcome:
        try:
            return carry_out(context, lambda _: drive(context, AskingSteps(context)))
        except UnansweredError:
            return Stopped(word="waiting")


def drive(context: Context, steps: Steps) -> Driven:
    recording = Recording(lambda: steps.recorded("charge"), lambda: context.time("checkpoint"))
    config = {"configurable": {"thread_id": context.assignment.run}}
    begins = context.assignment.action == "start"
    with open_saver(context, recording) as saver:
        graph: Any = build_graph(steps, recording, saver)
        graph.invoke({"order": steps.order.id} if begins else Command(resume="yes"), config, durability="sync")
        state = graph.get_state(config)
    if state.interrupts:
        raise UnansweredError
    return Driven(receipt=Receipt.from_state(state.values["receipt"]))


def main() -> NoReturn:
    run_worker(AskingProgram())
