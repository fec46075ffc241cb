"""killpoint_langgraph with a fault from a public report; runs in LangGraph's environment. VARIANT names the fault."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import psycopg

from killpoint_langgraph import main as main_of_langgraph
from killpoint_langgraph import program
from killpoint_langgraph.recording import CHARGE_CHANNEL, Recording
from killpoint_langgraph.savers import open_saver
from killpoint_steps import Steps
from killpoint_worker import Context, Receipt

DELAY_SECONDS = 0.3


def main() -> NoReturn:
    for fault in os.environ.get("VARIANT", "").split():
        FAULTS[fault]()
    main_of_langgraph()


def with_points_and_delays(*, before_put: float = 0.0, before_writes: float = 0.0) -> None:
    """``charge.put``: a checkpoint with the charge is about to be written; ``charge.written``: its writes have been."""

    @contextmanager
    def opened(context: Context, recording: Recording) -> Iterator[Any]:
        with open_saver(context, recording) as saver:
            inner: Any = saver
            put, put_writes = inner.put, inner.put_writes

            def watched_put(config: object, checkpoint: dict[str, Any], *further: object) -> object:
                if CHARGE_CHANNEL in checkpoint["channel_values"]:
                    context.points.passed("charge.put")
                time.sleep(before_put)
                return put(config, checkpoint, *further)

            def watched_put_writes(
                config: object, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
            ) -> None:
                time.sleep(before_writes)
                put_writes(config, writes, task_id, task_path)
                if any(channel == CHARGE_CHANNEL for channel, _ in writes):
                    context.points.passed("charge.written")

            inner.put, inner.put_writes = watched_put, watched_put_writes
            yield inner

    program.open_saver = opened  # type: ignore[attr-defined]


def sessions_end_during_the_charge() -> None:
    """Every session of the attempt is terminated by the server while its charge step runs."""
    charge = Steps.charge

    def charge_and_lose_connections(steps: Steps, saved_key: str | None) -> Receipt:
        receipt = charge(steps, saved_key)
        url = os.environ["KILLPOINT_DATABASE_URL"]
        with psycopg.connect(url, autocommit=True) as session:
            ended = session.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE application_name = %s AND pid <> pg_backend_pid()",
                (session.info.get_parameters()["application_name"],),
            ).fetchone()
        if ended is None or not ended[0]:
            raise AssertionError("there was no session to be lost")
        return receipt

    Steps.charge = charge_and_lose_connections  # type: ignore[method-assign, assignment]


def result_cannot_be_serialized() -> None:
    """The charge step's result holds a lock."""
    state = Receipt.state
    Receipt.state = lambda receipt: {**state(receipt), "lock": threading.Lock()}  # type: ignore[method-assign, assignment]


FAULTS = {
    "points": with_points_and_delays,
    "slow-put": lambda: with_points_and_delays(before_put=DELAY_SECONDS),
    "slow-writes": lambda: with_points_and_delays(before_writes=DELAY_SECONDS),
    "sessions-end": sessions_end_during_the_charge,
    "unserializable": result_cannot_be_serialized,
}
