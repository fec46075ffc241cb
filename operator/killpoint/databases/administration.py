"""Databases and roles on a server: the journal's, the payments service's, and one for each experiment run.

Everything here may be done again. Workers get a role that can connect to their run's database and to no other.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, TypeVar

import psycopg
from psycopg import AsyncConnection, sql

from killpoint.databases import dsn as dsns
from killpoint.databases.server import Server, connect, in_words

JOURNAL = "killpoint_journal"
PAYMENTS = "killpoint_payments"
EXPERIMENT_PREFIX = "killpoint_run_"
HARNESS_CONNECTIONS = 40
"""Kept free of workers: journal, payments, and looking at sessions."""

_SECONDS_MAX = 30.0
_LOCK = 0x6B696C6C  # "kill": one killpoint at a time changes databases on a server
_T = TypeVar("_T")
_Connection = AsyncConnection[tuple[object, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentDatabase:
    """The database of one experiment run, for its workers."""

    name: str
    dsn: str = field(repr=False)

    def for_attempt(self, attempt: str) -> str:
        """The DSN for one attempt: its sessions bear its name."""
        return dsns.with_application(self.dsn, attempt)


class Databases:
    """What killpoint has on a server. One connection, opened when it is needed and again when it broke."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._connection: _Connection | None = None
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def ensure_service(self, name: str) -> str:
        """The DSN of a lasting database of the harness's own (JOURNAL, PAYMENTS).

        On the embedded server its owner is a role of the same name. On a given one it is the given login: two
        killpoints with different homes, which know no common secret, share such a server.
        """
        secret = self.server.secret
        if secret is None:
            await self._administer(lambda connection: _ensure_database(connection, name, owner=None))
            return dsns.with_database(self.server.admin, name)
        return await self.ensure_owned(name, hmac.digest(secret, name.encode(), "sha256").hex())

    async def ensure_owned(self, name: str, password: str) -> str:
        """The DSN of a lasting database whose owner is a role of its name, with this password."""
        await self._administer(lambda connection: _ensure_owned(connection, name, password, connections=-1))
        return dsns.with_login(self.server.admin, user=name, password=password, database=name)

    async def ensure_experiment(
        self, journal: str, *, password: str | None = None, note: str | None = None
    ) -> ExperimentDatabase:
        """The database of a run, and the password of its role.

        None: a new one, since what an earlier one was given to is dead. Where workers outlive the harness, it gives
        the same one each time. ``note``: kept with the database, for whoever finds it later.
        """
        name = experiment_database(journal)
        password = password or secrets.token_hex(16)
        limit = max(10, self.server.connections_max - HARNESS_CONNECTIONS)

        async def ensure(connection: _Connection) -> None:
            await _ensure_owned(connection, name, password, connections=limit)
            if note is not None:
                comment = sql.SQL("COMMENT ON DATABASE {} IS {}")
                await connection.execute(comment.format(sql.Identifier(name), sql.Literal(note)))

        await self._administer(ensure)
        dsn = dsns.with_login(self.server.admin, user=name, password=password, database=name)
        return ExperimentDatabase(name=name, dsn=dsn)

    async def drop_experiment(self, journal: str) -> None:
        """Drop a run's database and role. Nothing to drop is a success."""
        name = experiment_database(journal)
        await self._administer(lambda connection: _drop(connection, name))

    async def notes(self) -> Sequence[str]:
        """What was noted of the databases of runs that are there. Raises DatabaseError."""

        async def read(connection: _Connection) -> list[str]:
            cursor = await connection.execute(
                "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE starts_with(datname, %s)",
                (EXPERIMENT_PREFIX,),
            )
            return [str(note) for (note,) in await cursor.fetchall() if note is not None]

        return await self._run(read)

    async def sessions(self, database: str, names: Sequence[str]) -> Mapping[str, int]:
        """How many sessions each application name has in a database now. Raises DatabaseError when nobody answers."""

        async def count(connection: _Connection) -> dict[str, int]:
            cursor = await connection.execute(
                "SELECT application_name, count(*) FROM pg_stat_activity"
                " WHERE datname = %s AND application_name = ANY(%s) GROUP BY 1",
                (database, list(names)),
            )
            return {str(name): int(str(number)) for name, number in await cursor.fetchall()}

        found = await self._run(count)
        return {name: found.get(name, 0) for name in names}

    async def _administer(self, change: Callable[[_Connection], Awaitable[None]]) -> None:
        """Make a change while no other killpoint makes one on this server."""

        async def locked(connection: _Connection) -> None:
            await connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
            try:
                await change(connection)
            finally:
                await connection.execute("SELECT pg_advisory_unlock(%s)", (_LOCK,))

        await self._run(locked)

    async def _run(self, work: Callable[[_Connection], Awaitable[_T]]) -> _T:
        async with self._lock:
            connection = self._connection
            if connection is None or connection.closed:
                connection = self._connection = await connect(self.server.admin)
            try:
                async with asyncio.timeout(_SECONDS_MAX):
                    return await work(connection)
            except (psycopg.Error, OSError, TimeoutError) as error:
                # Its state is unknown (a lock held, an answer still to come), so the next call begins with a new one.
                await self.close()
                raise in_words(error, self.server.admin) from error
            except BaseException:
                await self.close()
                raise


def experiment_database(journal: str) -> str:
    """The name of a run's database and role: short, and the same for the same journal."""
    return EXPERIMENT_PREFIX + hashlib.sha256(journal.encode()).hexdigest()[:16]


async def _ensure_owned(connection: _Connection, name: str, password: str, *, connections: int) -> None:
    """A role that may log in, and a database of its name that only it (and a superuser) can connect to."""
    cursor = await connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (name,))
    verb = "ALTER" if await cursor.fetchone() else "CREATE"
    await connection.execute(
        sql.SQL("{verb} ROLE {name} LOGIN PASSWORD {password} CONNECTION LIMIT {limit}").format(
            verb=sql.SQL(verb),
            name=sql.Identifier(name),
            password=sql.Literal(password),
            limit=sql.Literal(connections),
        )
    )
    # Who is no superuser must be a member of a role to give it a database, and to see its sessions.
    await connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(sql.Identifier(name)))
    await _ensure_database(connection, name, owner=name)


async def _ensure_database(connection: _Connection, name: str, *, owner: str | None) -> None:
    cursor = await connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,))
    if await cursor.fetchone() is None:
        owned = sql.SQL("OWNER {}").format(sql.Identifier(owner)) if owner else sql.SQL("")
        # template0: nobody can be connected to it, which would keep it from being copied.
        await connection.execute(
            sql.SQL("CREATE DATABASE {} {} TEMPLATE template0 ENCODING 'UTF8'").format(sql.Identifier(name), owned)
        )
    await connection.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(sql.Identifier(name)))


async def _drop(connection: _Connection, name: str) -> None:
    await connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
    await connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(name)))
