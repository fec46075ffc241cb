"""LangGraph under killpoint: wires the sample application's steps into a StateGraph with a checkpointer.

Responsible for the graph, the saver in either store, the resume, and for saying where the charge is recorded. Must not
start a thread, a connection or an event loop at import: attempts are forked from a process that has imported this.
"""

from typing import NoReturn

from killpoint_langgraph.program import LangGraphProgram
from killpoint_worker import run_worker


def main() -> NoReturn:
    """Run one attempt, as the environment assigns it."""
    run_worker(LangGraphProgram())


__all__ = ["LangGraphProgram", "main"]
