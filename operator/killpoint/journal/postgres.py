"""The journal in Postgres: one connection, one appender, fenced by an epoch."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import resources
from typing import Self

import psycopg
from psycopg.rows import TupleRow

from killpoint.journal.codec import decode, encode
from killpoint.model.events import Event, Recorded
from killpoint.ports import SESSION, FencedError, JournalUnavailableError

CONNECT_SECONDS = 5
STATEMENT_MILLISECONDS = 30_000
_LOCK = "killpoint-journal"

_INCARNATION = "SELECT pg_postmaster_start_time()::text || %s || pg_backend_pid()"
_READ = """
SELECT sequence, (extract(epoch FROM at) * 1000)::bigint, kind, document::text
FROM events WHERE run = %s AND sequence > %s ORDER BY sequence
"""
# One statement, and so one transaction: the run's row is locked until the events are durable. Without the row, or under
# another epoch, nothing is inserted.
_APPEND = """
WITH fence AS (SELECT FROM runs WHERE id = %(run)s AND epoch = %(epoch)s FOR UPDATE)
INSERT INTO events (run, sequence, epoch, kind, document)
SELECT %(run)s, %(last)s + row.number, %(epoch)s, row.kind, row.document::jsonb
FROM fence, unnest(%(kinds)s::text[], %(documents)s::text[]) WITH ORDINALITY AS row (kind, document, number)
ORDER BY row.number
RETURNING sequence, (extract(epoch FROM at) * 1000)::bigint
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedRun:
    """A run's row in the journal. ``resumed``: it was there before and goes on."""

    id: str
    resumed: bool


class OtherSpecificationError(JournalUnavailableError):
    """The journal holds the run, of another specification: it cannot go on under this one."""


class PostgresJournal:
    """``ports.Journal`` for one run. Connects when it is used, and again after the server was away."""

    def __init__(self, dsn: str, run: str) -> None:
        self._dsn = dsn
        self._run = run
        self._epoch: int | None = None
        self._last = 0
        self._connection: psycopg.AsyncConnection[TupleRow] | None = None
        self._incarnation: str | None = None
        """As this connection found it. None where there is no connection."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._disconnect()

    async def take_over(self) -> int:
        """Raise the run's epoch and append under it from now on. Whoever held the run before is fenced off."""
        async with self._connected() as connection:
            row = await (
                await connection.execute(
                    "UPDATE runs SET epoch = epoch + 1 WHERE id = %s RETURNING epoch", (self._run,)
                )
            ).fetchone()
        if row is None:
            raise JournalUnavailableError(f"the journal holds no run {self._run}")
        self._epoch = int(row[0])
        return self._epoch

    async def incarnation(self) -> str:
        """Which start of the server answers, and in which session of ours.

        What ends sessions without a restart (a crash in the server, an administrator) disturbs workers as well.
        """
        async with self._connected() as connection:
            if self._incarnation is None:
                row = await (await connection.execute(_INCARNATION, (SESSION,))).fetchone()
                self._incarnation = "" if row is None else str(row[0])
            return self._incarnation

    async def read(self, after: int) -> Sequence[Recorded]:
        async with self._connected() as connection:
            rows = await (await connection.execute(_READ, (self._run, after))).fetchall()
        recorded = [
            Recorded(sequence=sequence, at_ms=at_ms, event=decode(kind, document))
            for sequence, at_ms, kind, document in rows
        ]
        self._last = max(self._last, after, *(entry.sequence for entry in recorded), 0)
        return recorded

    async def append(self, events: Sequence[Event]) -> Sequence[Recorded]:
        encoded = [encode(event) for event in events]
        if not encoded:
            return []
        async with self._connected() as connection:
            cursor = await connection.execute(
                _APPEND,
                {
                    "run": self._run,
                    "last": self._last,
                    "epoch": self._epoch,
                    "kinds": [kind for kind, _ in encoded],
                    "documents": [document for _, document in encoded],
                },
            )
            rows = sorted(await cursor.fetchall())
        if not rows:
            raise FencedError(f"run {self._run} was taken over by another killpoint; this one stops")
        self._last = rows[-1][0]
        return [
            Recorded(sequence=sequence, at_ms=at_ms, event=event)
            for (sequence, at_ms), event in zip(rows, events, strict=True)
        ]

    async def end(self) -> None:
        """Mark the run as ended: the same command starts a new one from now on."""
        async with self._connected() as connection:
            await connection.execute(
                "UPDATE runs SET ended_at = coalesce(ended_at, clock_timestamp()) WHERE id = %s", (self._run,)
            )

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[psycopg.AsyncConnection[TupleRow]]:
        try:
            if self._connection is None or self._connection.closed:
                self._connection = await connect(self._dsn)
            yield self._connection
        except psycopg.errors.UniqueViolation as error:
            raise FencedError(f"run {self._run}: another killpoint appended events meanwhile") from error
        except psycopg.Error as error:
            await self._disconnect()
            raise unavailable(error) from error

    async def _disconnect(self) -> None:
        if self._connection is not None:
            connection, self._connection, self._incarnation = self._connection, None, None
            await connection.close()


async def connect(dsn: str) -> psycopg.AsyncConnection[TupleRow]:
    """A connection with bounded waits."""
    return await psycopg.AsyncConnection.connect(
        dsn,
        autocommit=True,
        connect_timeout=CONNECT_SECONDS,
        application_name="killpoint-journal",
        options=f"-c statement_timeout={STATEMENT_MILLISECONDS}",
    )


def first_line(error: BaseException) -> str:
    """What a database error says, without what it adds below."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def unavailable(error: psycopg.Error) -> JournalUnavailableError:
    """What the journal's database said, in words."""
    return JournalUnavailableError(f"the journal's database does not answer as it should: {first_line(error)}")


@asynccontextmanager
async def _transaction(dsn: str) -> AsyncIterator[psycopg.AsyncConnection[TupleRow]]:
    try:
        async with await connect(dsn) as connection, connection.transaction():
            yield connection
    except psycopg.Error as error:
        raise unavailable(error) from error


async def migrate(dsn: str) -> None:
    """Bring the journal's tables up to date. Several at once are one after another. Raises JournalUnavailableError."""
    async with _transaction(dsn) as connection:
        await connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (_LOCK,))
        for name in sorted(
            entry.name
            for entry in resources.files(__package__).joinpath("migrations").iterdir()
            if entry.name.endswith(".sql")
        ):
            text = resources.files(__package__).joinpath("migrations", name).read_bytes()
            await connection.execute(text)


async def open_run(dsn: str, run: str, *, experiment: str, digest: str) -> OpenedRun:
    """Make the run's row, or find it. Raises JournalUnavailableError, and for another one OtherSpecificationError."""
    async with _transaction(dsn) as connection:
        await connection.execute(
            "INSERT INTO runs (id, experiment, spec_digest) VALUES (%s, %s, %s) ON CONFLICT (id) DO NOTHING",
            (run, experiment, digest),
        )
        row = await (
            await connection.execute(
                "SELECT spec_digest, EXISTS (SELECT FROM events WHERE events.run = runs.id) FROM runs WHERE id = %s",
                (run,),
            )
        ).fetchone()
    if row is None or row[0] != digest:
        raise OtherSpecificationError(f"the journal holds run {run} of another specification")
    return OpenedRun(id=run, resumed=bool(row[1]))
