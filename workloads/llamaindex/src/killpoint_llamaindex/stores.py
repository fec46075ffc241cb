"""Opens the snapshot store that a cell asks for."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg

from killpoint_llamaindex.snapshots import FileSnapshots, PostgresSnapshots

if TYPE_CHECKING:
    from collections.abc import Iterator

    from killpoint_llamaindex.snapshots import SnapshotStore
    from killpoint_worker import Context

CONNECT_SECONDS_MAX = 10


@contextmanager
def open_snapshots(context: Context, *, prepare: bool = True) -> Iterator[SnapshotStore]:
    """The run's snapshots in the database or in the volume. ``prepare=False`` only looks and makes no table."""
    run = context.assignment.run
    if context.assignment.coordinates.store != "postgres":
        yield FileSnapshots(context.require_volume(), run)
        return
    with psycopg.connect(
        context.require_database_url(), autocommit=True, connect_timeout=CONNECT_SECONDS_MAX
    ) as connection:
        store = PostgresSnapshots(connection, run)
        if prepare:
            store.prepare()
        yield store
