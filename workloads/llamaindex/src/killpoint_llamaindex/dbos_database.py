"""The database under DBOS: an engine whose sessions are the attempt's, and a schema that is made once.

DBOS and its LlamaIndex runtime open sessions of their own: a SQLAlchemy pool, a listener detached from it, and an
asyncpg pool whose address the runtime derives from the engine's. All carry the ``application_name`` of the connection
string, because this engine is DBOS's only one: an engine that DBOS makes itself is named ``dbos_transact``.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib import metadata
from typing import TYPE_CHECKING, Any

import psycopg
import sqlalchemy

from killpoint_llamaindex.stores import CONNECT_SECONDS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator

MIGRATION_LOCK = 0x6B70_6C69_0002
POOL_SIZE = 5
"""A run of one workflow has never needed more; the default of 20 for each attempt exhausts a small server."""

UUID_EXTENSION = 'CREATE EXTENSION IF NOT EXISTS "uuid-ossp";'
"""In DBOS's first migration. Nothing of the extension is used since; a server without contrib modules lacks it."""


@contextmanager
def open_engine(database_url: str) -> Iterator[sqlalchemy.Engine]:
    """The engine that DBOS is given; its sessions are closed at the end."""
    engine = sqlalchemy.create_engine(
        sqlalchemy.make_url(database_url).set(drivername="postgresql+psycopg"),
        pool_size=POOL_SIZE,
        max_overflow=0,
        pool_pre_ping=True,
        connect_args={"connect_timeout": CONNECT_SECONDS_MAX},
    )
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def migration(database_url: str, engine: sqlalchemy.Engine) -> Iterator[bool]:
    """Around a launch: says whether it has to make the schema. One worker makes it while the others wait here.

    DBOS takes a lock of its own but looks at it once a second and goes on without it after thirty; and its schema and
    the runtime's are two. A comment on the schema says for which versions both are complete.
    """
    with psycopg.connect(database_url, autocommit=True, connect_timeout=CONNECT_SECONDS_MAX) as connection:
        if _is_made(connection):
            yield False
            return
        connection.execute("SELECT pg_advisory_lock(%s)", (MIGRATION_LOCK,))
        if _is_made(connection):
            connection.execute("SELECT pg_advisory_unlock(%s)", (MIGRATION_LOCK,))
            yield False
            return
        if not _has_uuid_extension(connection):
            sqlalchemy.event.listen(engine, "before_cursor_execute", _without_uuid_extension, retval=True)
        yield True
        connection.execute(f"COMMENT ON SCHEMA dbos IS '{_mark()}'")
        # The lock ends with the session, also when the launch raised.


def _is_made(connection: psycopg.Connection[Any]) -> bool:
    row = connection.execute("SELECT obj_description(to_regnamespace('dbos'), 'pg_namespace') = %s", (_mark(),)).fetchone()
    return row is not None and bool(row[0])


def _mark() -> str:
    versions = " ".join(f"{name}-{metadata.version(name)}" for name in ("dbos", "llama-agents-dbos"))
    return f"complete for {versions}"


def _has_uuid_extension(connection: psycopg.Connection[Any]) -> bool:
    query = "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'uuid-ossp')"
    row = connection.execute(query).fetchone()
    return row is not None and bool(row[0])


def _without_uuid_extension(*call: Any) -> tuple[str, Any]:
    """SQLAlchemy's hook: connection, cursor, statement, parameters, context, executemany."""
    statement, parameters = call[2], call[3]
    return statement.replace(UUID_EXTENSION, ""), parameters
