"""Parkings in Postgres: which attempts wait at a point, and which of them may go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolTimeout

CONNECTIONS_MAX = 8
WAIT_SECONDS_MAX = 10.0
_LOCK = 7_246_301
_TABLE = """
CREATE TABLE IF NOT EXISTS parkings (
    run         text NOT NULL,
    attempt     text NOT NULL,
    point       text NOT NULL,
    parked_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    released_at timestamptz,
    PRIMARY KEY (run, attempt)
)
"""


class ParkingsUnavailable(Exception):
    """The database of the parkings does not answer now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """An attempt that waits at a point, or has been let go on."""

    run: str
    attempt: str
    point: str
    parked_ms: int
    released: bool


class Parkings:
    """The table of parkings. Every call is bounded and may be repeated."""

    def __init__(self, dsn: str) -> None:
        self._pool = AsyncConnectionPool(
            dsn,
            min_size=1,
            max_size=CONNECTIONS_MAX,
            timeout=WAIT_SECONDS_MAX,
            open=False,
            check=AsyncConnectionPool.check_connection,
            kwargs={"autocommit": True, "application_name": "killpoint-control"},
        )

    async def __aenter__(self) -> Self:
        await self._pool.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._pool.close()

    async def migrate(self) -> None:
        """Make the table. Several at once are one after another."""
        try:
            async with self._pool.connection() as connection, connection.transaction():
                await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                await connection.execute(_TABLE)
        except (psycopg.OperationalError, PoolTimeout) as error:
            raise ParkingsUnavailable(f"the parkings' database does not answer: {error}") from error

    async def park(self, run: str, attempt: str, point: str) -> bool:
        """Note that an attempt waits; whether it may go on already. The first point counts, whatever comes again."""
        rows = await self._rows(
            """INSERT INTO parkings (run, attempt, point) VALUES (%s, %s, %s)
               ON CONFLICT (run, attempt) DO UPDATE SET point = parkings.point
               RETURNING released_at IS NOT NULL""",
            (run, attempt, point),
        )
        return bool(rows[0][0])

    async def parked(self, runs: Sequence[str]) -> Mapping[tuple[str, str], Parked]:
        """Who is parked, or was released, in these runs: by run and attempt."""
        rows = await self._rows(
            """SELECT run, attempt, point, (extract(epoch FROM parked_at) * 1000)::bigint, released_at IS NOT NULL
               FROM parkings WHERE run = ANY(%s)""",
            (list(runs),),
        )
        return {
            (str(run), str(attempt)): Parked(
                run=str(run), attempt=str(attempt), point=str(point), parked_ms=int(str(at_ms)), released=bool(released)
            )
            for run, attempt, point, at_ms, released in rows
        }

    async def release(self, run: str, attempt: str) -> None:
        """Let an attempt go on. One that is not parked, or was released before, stays as it is."""
        await self._rows(
            """UPDATE parkings SET released_at = coalesce(released_at, clock_timestamp())
               WHERE run = %s AND attempt = %s RETURNING run""",
            (run, attempt),
        )

    async def forget(self, runs: Sequence[str]) -> None:
        """Remove what is known of these runs."""
        await self._rows("DELETE FROM parkings WHERE run = ANY(%s) RETURNING run", (list(runs),))

    async def _rows(self, statement: str, parameters: Sequence[object]) -> list[tuple[object, ...]]:
        try:
            async with self._pool.connection() as connection:
                cursor = await connection.execute(statement.encode(), parameters)
                rows: list[tuple[object, ...]] = await cursor.fetchall()
                return rows
        except (psycopg.OperationalError, PoolTimeout) as error:
            raise ParkingsUnavailable(f"the parkings' database does not answer: {error}") from error
