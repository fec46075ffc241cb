"""LangGraph's own savers, in either store, with a look at what they have committed."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from psycopg import Connection
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool

from killpoint_langgraph.recording import Recording
from killpoint_worker import Context

VOLUME_FILE = "checkpoints.sqlite"

_CONNECT_SECONDS_MAX = 10
_SETUP_SECONDS_MAX = 60.0
_SETUP_PAUSE_SECONDS = 0.02
_SETUP_LOCK = 0x6B70_6C67
"""Session-level advisory lock for setup(): of several callers at once, all but one fail without it."""


class Watched(BaseCheckpointSaver[str]):
    """Tells the recording what was written, for a saver whose ``put`` and ``put_writes`` return when it is durable."""

    recording: Recording

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        with self.recording.timed():
            saved = super().put(config, checkpoint, metadata, new_versions)
        self.recording.committed_checkpoint(checkpoint["id"], checkpoint["channel_values"].items())
        return saved

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        with self.recording.timed():
            super().put_writes(config, writes, task_id, task_path)
        self.recording.committed_writes(config["configurable"]["checkpoint_id"], writes)


class WatchedPostgresSaver(Watched, PostgresSaver):
    """PostgresSaver; its writes return when the server has committed."""

    def __init__(self, pool: ConnectionPool[Connection[DictRow]], recording: Recording) -> None:
        PostgresSaver.__init__(self, pool)
        self.recording = recording


class WatchedSqliteSaver(Watched, SqliteSaver):
    """SqliteSaver; its writes return when the file's transaction is committed."""

    def __init__(self, connection: sqlite3.Connection, recording: Recording) -> None:
        SqliteSaver.__init__(self, connection)
        self.recording = recording


@contextmanager
def open_saver(context: Context, recording: Recording) -> Iterator[BaseCheckpointSaver[Any]]:
    """The saver of the assignment's store, set up."""
    if context.assignment.coordinates.store == "postgres":
        database_url = context.require_database_url()
        with _pool(database_url) as pool:
            saver = WatchedPostgresSaver(pool, recording)
            set_up_once(database_url, pool, saver)
            yield saver
    else:
        volume = context.require_volume()
        path = volume / VOLUME_FILE
        # The graph's executor writes from other threads; the saver has a lock of its own for that.
        with closing(sqlite3.connect(path, check_same_thread=False, timeout=_CONNECT_SECONDS_MAX)) as connection:
            watched = WatchedSqliteSaver(connection, recording)
            with _exclusive(volume / f"{VOLUME_FILE}.lock"):
                watched.setup()
            yield watched


def _pool(database_url: str) -> ConnectionPool[Connection[DictRow]]:
    """One connection, looked at before each use and replaced when it broke, as it may during a long step."""
    return ConnectionPool(
        database_url,
        connection_class=Connection[DictRow],
        # As PostgresSaver.from_conn_string makes them.
        kwargs={
            "autocommit": True,
            "prepare_threshold": 0,
            "row_factory": dict_row,
            "connect_timeout": _CONNECT_SECONDS_MAX,
        },
        min_size=1,
        max_size=1,
        num_workers=1,
        timeout=_CONNECT_SECONDS_MAX,
        check=ConnectionPool.check_connection,
        open=False,
    )


def set_up_once(database_url: str, pool: ConnectionPool[Connection[DictRow]], saver: PostgresSaver) -> None:
    """Migrate the checkpoint tables unless that is done. Raises TimeoutError when another's setup takes too long.

    The lock is tried again and again, never waited for: setup() builds indexes concurrently, which waits for every
    session that runs a statement, and one that waits for a lock runs one.
    """
    if _is_set_up(pool, saver):
        return
    deadline = time.monotonic() + _SETUP_SECONDS_MAX
    with Connection.connect(database_url, autocommit=True, connect_timeout=_CONNECT_SECONDS_MAX) as session:
        while not _try_lock(session):
            if time.monotonic() > deadline:
                raise TimeoutError(f"another worker's setup of the checkpoint tables took {_SETUP_SECONDS_MAX:.0f} s")
            time.sleep(_SETUP_PAUSE_SECONDS)
        if not _is_set_up(pool, saver):
            saver.setup()


def _is_set_up(pool: ConnectionPool[Connection[DictRow]], saver: PostgresSaver) -> bool:
    with pool.connection() as connection:
        found = connection.execute("SELECT to_regclass('checkpoint_migrations') IS NOT NULL AS there").fetchone()
        if found is None or not found["there"]:
            return False
        newest = connection.execute("SELECT max(v) AS v FROM checkpoint_migrations").fetchone()
    return newest is not None and newest["v"] == len(saver.MIGRATIONS) - 1


def _try_lock(session: Connection[Any]) -> bool:
    found = session.execute("SELECT pg_try_advisory_lock(%s)", (_SETUP_LOCK,)).fetchone()
    return bool(found is not None and found[0])


@contextmanager
def _exclusive(path: Path) -> Iterator[None]:
    """Keep other processes out of the block; a process that dies in it gives the lock back."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
