"""Tables in the experiment's Postgres: asking whether they are there, and making them. No framework."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql

if TYPE_CHECKING:
    from typing import LiteralString

SETUP_LOCK = 0x6B70_6361_0001
"""Advisory lock: ``CREATE TABLE IF NOT EXISTS`` by several workers at once raises a unique violation in all but one."""

_CONNECT_SECONDS_MAX = 10

Connection = psycopg.Connection[Any]


def connect(url: str) -> Connection:
    """A connection on which each statement is a transaction of its own. The name to be seen by is in ``url``."""
    # Nothing is prepared on the server: a pooler that hands out connections by transaction would lose it.
    return psycopg.connect(url, autocommit=True, prepare_threshold=None, connect_timeout=_CONNECT_SECONDS_MAX)


def has_table(connection: Connection, table: str) -> bool:
    row = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (table,)).fetchone()
    return row is not None and bool(row[0])


def create_table(connection: Connection, table: LiteralString, columns: LiteralString) -> None:
    """Create ``table`` where it is missing. Any number of workers may do this at once."""
    if has_table(connection, table):
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (SETUP_LOCK,))
        statement = sql.SQL("CREATE TABLE IF NOT EXISTS {} (" + columns + ")")
        connection.execute(statement.format(sql.Identifier(table)))
