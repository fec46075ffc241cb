"""A look into the store: is the charge's result there? Read-only, in a process that ran nothing of the workflow."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from killpoint_langgraph.recording import CHARGE_CHANNEL
from killpoint_langgraph.savers import VOLUME_FILE
from killpoint_worker import Context

_CONNECT_SECONDS_MAX = 10

# Writes whose checkpoint was never committed are found by nobody, LangGraph included.
_IN_WRITES = """
SELECT EXISTS (
    SELECT FROM checkpoint_writes AS w
    JOIN checkpoints AS c USING (thread_id, checkpoint_ns, checkpoint_id)
    WHERE w.thread_id = %s AND w.checkpoint_ns = '' AND w.channel = %s
)
"""
_IN_CHECKPOINT = """
SELECT EXISTS (
    SELECT FROM checkpoints AS c
    JOIN checkpoint_blobs AS b
      ON b.thread_id = c.thread_id AND b.checkpoint_ns = c.checkpoint_ns
     AND b.version = c.checkpoint -> 'channel_versions' ->> b.channel
    WHERE c.thread_id = %s AND c.checkpoint_ns = '' AND b.channel = %s AND b.type <> 'empty'
)
"""


def is_charge_recorded(context: Context) -> bool:
    """Whether the charge step's result is in a checkpoint of the run, or in the writes that belong to one."""
    run = context.assignment.run
    if context.assignment.coordinates.store == "postgres":
        return _in_postgres(context.require_database_url(), run)
    return _in_file(context.require_volume() / VOLUME_FILE, run)


def _in_postgres(database_url: str, run: str) -> bool:
    with closing(psycopg.connect(database_url, connect_timeout=_CONNECT_SECONDS_MAX)) as connection:
        connection.read_only = True
        there = connection.execute("SELECT to_regclass('checkpoint_writes') IS NOT NULL").fetchone()
        if there is None or not there[0]:
            return False
        found = [connection.execute(query, (run, CHARGE_CHANNEL)).fetchone() for query in (_IN_WRITES, _IN_CHECKPOINT)]
    return any(row is not None and row[0] for row in found)


def _in_file(path: Path, run: str) -> bool:
    if not path.exists():
        return False
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=_CONNECT_SECONDS_MAX)) as connection:
        tables = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name IN ('checkpoints', 'writes')")
        if tables.fetchone()[0] < 2:  # noqa: PLR2004 - the two that are asked for
            return False
        written = connection.execute(
            "SELECT 1 FROM writes JOIN checkpoints USING (thread_id, checkpoint_ns, checkpoint_id)"
            " WHERE thread_id = ? AND checkpoint_ns = '' AND channel = ?",
            (run, CHARGE_CHANNEL),
        ).fetchone()
        if written is not None:
            return True
        rows = connection.execute(
            "SELECT type, checkpoint FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''", (run,)
        ).fetchall()
    # A checkpoint in the file is one serialized value: only the framework's own loader can look into it.
    serde = JsonPlusSerializer()
    return any(CHARGE_CHANNEL in serde.loads_typed((kind, data))["channel_values"] for kind, data in rows)
