"""What ``@persist`` left of a run, read in the store's plain format. No framework; changes nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from killpoint_crewai.database import connect, has_table

if TYPE_CHECKING:
    from pathlib import Path

    from killpoint_worker import Context

TABLE = "crewai_flow_states"
"""Our table in Postgres: id, flow_uuid, method_name, state, saved_at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedState:
    """A row: the state as it was when ``method`` had returned. Numbers grow within a store."""

    number: int
    method: str


def in_volume(volume: Path) -> Path:
    """The SQLite file that the framework's own backend writes."""
    return volume / "crewai-flow-states.sqlite3"


def read(context: Context) -> tuple[SavedState, ...]:
    """The run's states, oldest first."""
    run = context.assignment.run
    if context.assignment.coordinates.store == "postgres":
        return read_database(context.require_database_url(), run)
    return read_volume(context.require_volume(), run)


def read_database(url: str, run: str) -> tuple[SavedState, ...]:
    """The run's states in Postgres, oldest first."""
    with connect(url) as connection:
        if not has_table(connection, TABLE):
            return ()
        rows = connection.execute(
            f"SELECT id, method_name FROM {TABLE} WHERE flow_uuid = %s ORDER BY id",  # noqa: S608 - our own name
            (run,),
        )
        return tuple(SavedState(number=number, method=method) for number, method in rows)


def read_volume(volume: Path, run: str) -> tuple[SavedState, ...]:
    """The run's states in the SQLite file, oldest first."""
    path = in_volume(volume)
    if not path.is_file():
        return ()
    # A reader of a write-ahead database makes that log where there is none, unless it is told that nobody writes. Where
    # a killed writer left one, it holds what was committed last and is read.
    how = "mode=ro" if path.with_name(path.name + "-wal").exists() else "immutable=1"
    with closing(sqlite3.connect(f"{path.as_uri()}?{how}", uri=True)) as connection:
        query = "SELECT id, method_name FROM flow_states WHERE flow_uuid = ? ORDER BY id"
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'flow_states'").fetchone() is None:
            return ()
        return tuple(SavedState(number=number, method=method) for number, method in connection.execute(query, (run,)))
