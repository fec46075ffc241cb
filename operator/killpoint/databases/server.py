"""A Postgres server as a value, and its faults in words."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import psycopg
from psycopg import AsyncConnection

from killpoint.databases import dsn as dsns
from killpoint.databases.errors import DatabaseError, PostgresRefused, PostgresUnreachable

CONNECT_SECONDS_MAX = 10
VERSION_MIN = 130_000
_REFUSALS = (
    "authentication failed",
    "no pg_hba.conf entry",
    "does not exist",
    "not permitted to log in",
    "no password supplied",
    "permission denied",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A Postgres that answers."""

    admin: str = field(repr=False)
    """The DSN of a login that may create databases and roles."""
    embedded: bool
    version: str
    connections_max: int
    secret: bytes | None = field(repr=False, default=None)
    """What lasting roles' passwords are derived from: only a server of our own has such roles."""

    @property
    def shown(self) -> str:
        return dsns.masked(self.admin)


async def given_postgres(dsn: str) -> Server:
    """The server of a given DSN. Raises PostgresUnreachable, PostgresRefused."""
    async with await connect(dsn) as connection:
        return await describe(connection, dsn=dsn, embedded=False)


async def describe(
    connection: AsyncConnection[tuple[object, ...]], *, dsn: str, embedded: bool, secret: bytes | None = None
) -> Server:
    """Look at a server: who we are there and whether that is enough."""
    shown = dsns.masked(dsn)
    if connection.info.server_version < VERSION_MIN:
        raise PostgresRefused(
            f"{shown}: PostgreSQL {_version(connection)} is too old", remedy="Use PostgreSQL 13 or later."
        )
    cursor = await connection.execute(
        "SELECT rolsuper OR rolcreatedb, rolsuper OR rolcreaterole, current_setting('max_connections')::int"
        " FROM pg_roles WHERE rolname = current_user"
    )
    row = await cursor.fetchone()
    databases, roles, connections = row if row is not None else (False, False, 0)
    missing = [word for word, has in (("CREATEDB", databases), ("CREATEROLE", roles)) if not has]
    if missing:
        user = connection.info.user
        raise PostgresRefused(
            f"{shown}: role {user} may not create databases and roles (it lacks {' and '.join(missing)})",
            remedy=f'As a superuser: ALTER ROLE "{user}" {" ".join(missing)};',
        )
    return Server(
        admin=_resolved(connection, dsn),
        embedded=embedded,
        version=_version(connection),
        connections_max=int(str(connections)),
        secret=secret,
    )


async def connect(dsn: str, *, seconds: float = CONNECT_SECONDS_MAX) -> AsyncConnection[tuple[object, ...]]:
    """Connect, with autocommit. Raises PostgresUnreachable or PostgresRefused."""
    dsns.parse(dsn)
    try:
        async with asyncio.timeout(seconds):
            return await AsyncConnection.connect(dsn, autocommit=True, connect_timeout=max(2, int(seconds)))
    except (psycopg.Error, OSError, TimeoutError) as error:
        raise in_words(error, dsn) from error


def in_words(error: Exception, dsn: str) -> DatabaseError:
    """What went wrong with a server, and what to do about it. Postgres' own messages hold no password."""
    shown = dsns.masked(dsn)
    detail = "    " + (str(error).strip().replace("\n", "\n    ") or type(error).__name__)
    if isinstance(error, psycopg.errors.DiskFull) or "No space left" in detail:
        return PostgresUnreachable(
            f"Postgres at {shown} has no space left",
            detail=detail,
            remedy="Free some disk space there; what is finished is kept.",
        )
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return PostgresRefused(
            f"Postgres at {shown} refuses it",
            detail=detail,
            remedy="Give a DSN whose role has CREATEDB and CREATEROLE.",
        )
    if isinstance(error, psycopg.errors.TooManyConnections) or "too many clients" in detail:
        return PostgresUnreachable(
            f"Postgres at {shown} has no connection free",
            detail=detail,
            remedy="End other clients, raise max_connections, or lower the experiment's parallelism.",
        )
    if any(word in detail for word in _REFUSALS):
        return PostgresRefused(
            f"Postgres at {shown} refuses the login", detail=detail, remedy="Check role, password and database."
        )
    return PostgresUnreachable(
        f"Postgres at {shown} does not answer",
        detail=detail,
        remedy="Check that it runs and that host and port are right.",
    )


def _resolved(connection: AsyncConnection[tuple[object, ...]], dsn: str) -> str:
    """The DSN with what the environment or libpq's defaults said, so that it means the same in a worker."""
    info = connection.info
    # The password may have come from PGPASSWORD or a .pgpass, which the payments service's process does not see.
    password = {"password": info.password} if info.password else {}
    place = {"host": info.host, "port": str(info.port), "user": info.user, "dbname": info.dbname}
    return dsns.build({**dsns.parse(dsn), **place, **password})


def _version(connection: AsyncConnection[tuple[object, ...]]) -> str:
    return str(connection.info.parameter_status("server_version") or connection.info.server_version)
