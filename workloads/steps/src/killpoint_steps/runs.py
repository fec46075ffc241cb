"""The application's own row for each run: framework state alone does not say whether a run is done."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

from killpoint_worker import Context

_CREATE = """
CREATE TABLE IF NOT EXISTS killpoint_runs (
    run text PRIMARY KEY, version text NOT NULL, status text NOT NULL, charge text
)
"""
_SETUP_LOCK = 0x6B70_7275
"""Advisory lock for making the table: CREATE TABLE IF NOT EXISTS fails when two sessions do it at once."""

_CONNECT_SECONDS_MAX = 10
_VOLUME_FILE = "runs.sqlite"


class WorkflowVersionError(RuntimeError):
    """The run was begun by another version of the workflow than the one that resumes it."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as the application knows it. ``charge`` is the id that its state held when it was done."""

    run: str
    version: str
    done: bool
    charge: str | None


class RunTable(Protocol):
    """Where the rows are."""

    def begin(self, run: str, version: str) -> RunRow:
        """Insert the run where it is new, and return its row as it stands."""

    def finish(self, run: str, charge: str | None) -> None:
        """Mark the run as done, durably."""


def open_run_table(context: Context) -> RunTable:
    """The table beside the framework's state: in the database, or in the volume."""
    if context.assignment.coordinates.store == "postgres":
        return PostgresRunTable(context.require_database_url())
    return VolumeRunTable(str(context.require_volume() / _VOLUME_FILE))


class PostgresRunTable:
    """Rows in Postgres. Each call opens a connection and closes it: none is held while the framework runs."""

    def __init__(self, database_url: str) -> None:
        self._database_url = database_url

    def begin(self, run: str, version: str) -> RunRow:
        with closing(self._connect()) as connection:
            if connection.execute("SELECT to_regclass('killpoint_runs')").fetchone()[0] is None:
                self._create(connection)
            connection.execute(
                "INSERT INTO killpoint_runs (run, version, status) VALUES (%s, %s, 'started') ON CONFLICT DO NOTHING",
                (run, version),
            )
            found = connection.execute(
                "SELECT run, version, status, charge FROM killpoint_runs WHERE run = %s", (run,)
            ).fetchone()
        return _row(found)

    def finish(self, run: str, charge: str | None) -> None:
        with closing(self._connect()) as connection:
            connection.execute("UPDATE killpoint_runs SET status = 'done', charge = %s WHERE run = %s", (charge, run))

    def _connect(self) -> Any:  # noqa: ANN401 - psycopg is installed in the environments of setups, not here
        import psycopg  # noqa: PLC0415 - only setups with a database have it

        return psycopg.connect(self._database_url, autocommit=True, connect_timeout=_CONNECT_SECONDS_MAX)

    def _create(self, connection: Any) -> None:  # noqa: ANN401 - as _connect
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_SETUP_LOCK,))
            connection.execute(_CREATE)


class VolumeRunTable:
    """Rows in a SQLite file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def begin(self, run: str, version: str) -> RunRow:
        with closing(self._connect()) as connection:
            connection.execute(_CREATE)
            connection.execute(
                "INSERT INTO killpoint_runs (run, version, status) VALUES (?, ?, 'started') ON CONFLICT DO NOTHING",
                (run, version),
            )
            found = connection.execute(
                "SELECT run, version, status, charge FROM killpoint_runs WHERE run = ?", (run,)
            ).fetchone()
        return _row(found)

    def finish(self, run: str, charge: str | None) -> None:
        with closing(self._connect()) as connection:
            connection.execute("UPDATE killpoint_runs SET status = 'done', charge = ? WHERE run = ?", (charge, run))

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=_CONNECT_SECONDS_MAX, isolation_level=None)


def _row(found: tuple[str, str, str, str | None]) -> RunRow:
    run, version, status, charge = found
    return RunRow(run, version, status == "done", charge)
