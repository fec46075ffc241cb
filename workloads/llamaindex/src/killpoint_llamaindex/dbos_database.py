"""The database under DBOS: an engine whose sessions are the attempt's, and a schema that is made once.

DBOS and its LlamaIndex runtime open sessions of their own: a SQLAlchemy pool, a listener detached from it, and an
asyncpg pool whose address the runtime derives from the engine's. All carry the ``application_name`` of the connection
string, because this engine is DBOS's only one: an engine that DBOS makes itself is named ``dbos_transact``.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from importlib import metadata
from typing import TYPE_CHECKING, Any

import psycopg
import sqlalchemy
from psycopg.conninfo import conninfo_to_dict

from killpoint_llamaindex.stores import CONNECT_SECONDS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MIGRATION_LOCK = 0x6B70_6C69_0002
MIGRATION_SECONDS_MAX = 60
MIGRATION_LOOK_SECONDS = 0.05
POOL_SIZE = 4
"""One run and DBOS's own threads get by with it; its default of 20 for each attempt exhausts a small server."""

LOGIN = frozenset({"user", "password", "host", "port", "dbname"})
ASYNCPG_READS = frozenset(
    {
        "application_name",
        "options",
        "sslcert",
        "sslcrl",
        "sslkey",
        "sslmode",
        "sslnegotiation",
        "sslpassword",
        "sslrootcert",
        "target_session_attrs",
    }
)
"""Of libpq's parameters. It sends any other one, such as ``channel_binding``, as a setting that no server knows."""

UUID_EXTENSION = 'CREATE EXTENSION IF NOT EXISTS "uuid-ossp";'
"""In DBOS's first migration. Nothing of the extension is used since; a server without contrib modules lacks it."""


class SchemaNotMadeError(RuntimeError):
    """DBOS's schema is not complete, and another worker holds the lock under which it is made."""


@contextmanager
def open_engine(database_url: str) -> Iterator[sqlalchemy.Engine]:
    """The engine that DBOS is given, from a connection string of either of libpq's forms. Closed at the end."""
    parts = {name: str(value) for name, value in conninfo_to_dict(database_url).items() if value is not None}
    url = engine_url(parts)
    engine = sqlalchemy.create_engine(
        url,
        pool_size=POOL_SIZE,
        max_overflow=0,
        pool_pre_ping=True,
        connect_args={
            "connect_timeout": CONNECT_SECONDS_MAX,
            **{name: value for name, value in parts.items() if name not in ASYNCPG_READS | LOGIN},
        },
    )
    try:
        yield engine
    finally:
        engine.dispose()


def engine_url(parts: Mapping[str, str]) -> sqlalchemy.URL:
    """SQLAlchemy's URL, with what asyncpg reads as well: the runtime writes it out and hands it to asyncpg.

    A Unix socket's folder and port stand in the query, because in the host's place they could not be written out.
    """
    is_socket = parts.get("host", "").startswith("/")
    place = {name: parts[name] for name in ("host", "port") if name in parts}
    return sqlalchemy.URL.create(
        "postgresql+psycopg",
        username=parts.get("user"),
        password=parts.get("password"),
        host=None if is_socket else place.get("host"),
        port=int(place["port"]) if "port" in place and not is_socket else None,
        database=parts.get("dbname"),
        query={
            **(place if is_socket else {}),
            **{name: value for name, value in parts.items() if name in ASYNCPG_READS},
        },
    )


@contextmanager
def migration(database_url: str, engine: sqlalchemy.Engine) -> Iterator[bool]:
    """Around a launch: says whether it has to make the schema. One worker makes it while the others wait here.

    DBOS takes a lock of its own but looks at it once a second and goes on without it after thirty; and its schema and
    the runtime's are two. A comment on the schema says for which versions both are complete. Raises
    SchemaNotMadeError.
    """
    with psycopg.connect(database_url, autocommit=True, connect_timeout=CONNECT_SECONDS_MAX) as connection:
        if not _is_due(connection):
            yield False
            return
        if not _has_uuid_extension(connection):
            sqlalchemy.event.listen(engine, "before_cursor_execute", _without_uuid_extension, retval=True)
        yield True
        connection.execute(f"COMMENT ON SCHEMA dbos IS '{_mark()}'")
        # The lock ends with the session, also when the launch raised.


def _is_due(connection: psycopg.Connection[Any]) -> bool:
    """Whether the schema is this worker's to make: then its session holds the lock."""
    deadline = time.monotonic() + MIGRATION_SECONDS_MAX
    while not _is_made(connection):
        # Tried again and again rather than waited for: DBOS builds indexes concurrently, which waits until every
        # statement that runs has ended, and a waiting lock statement would be one. Neither would ever end.
        row = connection.execute("SELECT pg_try_advisory_lock(%s)", (MIGRATION_LOCK,)).fetchone()
        if row is not None and row[0]:
            return not _is_made(connection)
        if time.monotonic() > deadline:
            raise SchemaNotMadeError(f"another worker has been making DBOS's schema for {MIGRATION_SECONDS_MAX} s")
        time.sleep(MIGRATION_LOOK_SECONDS)
    return False


def _is_made(connection: psycopg.Connection[Any]) -> bool:
    row = connection.execute(
        "SELECT obj_description(to_regnamespace('dbos'), 'pg_namespace') = %s", (_mark(),)
    ).fetchone()
    return row is not None and bool(row[0])


def _mark() -> str:
    versions = " ".join(f"{name}-{metadata.version(name)}" for name in ("dbos", "llama-agents-dbos"))
    return f"complete for {versions}"


def _has_uuid_extension(connection: psycopg.Connection[Any]) -> bool:
    query = "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'uuid-ossp')"
    row = connection.execute(query).fetchone()
    return row is not None and bool(row[0])


def _without_uuid_extension(*call: object) -> tuple[str, object]:
    """SQLAlchemy's hook: connection, cursor, statement, parameters, context, executemany."""
    return str(call[2]).replace(UUID_EXTENSION, ""), call[3]
