"""Archives in Postgres: the evidence of each run that is over, beside the events that it was made of, compressed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

import psycopg

from killpoint.journal.archive import compressed, digest_of_parts, expanded
from killpoint.journal.postgres import connect, unavailable

_KEEP = "INSERT INTO archives (run, document) VALUES (%s, %s) ON CONFLICT (run) DO NOTHING RETURNING run"
_KEPT = "SELECT document FROM archives WHERE run = %s"


async def keep_archive(dsn: str, run: str, parts: Iterable[bytes]) -> str:
    """Keep a run's evidence; its digest. The first one counts: whoever ends a run again has the same to say.

    The parts are taken in a thread. Raises JournalUnavailableError.
    """
    document, digest = await asyncio.to_thread(compressed, parts)
    try:
        async with await connect(dsn) as connection:
            if await (await connection.execute(_KEEP, (run, document))).fetchone() is not None:
                return digest
            row = await (await connection.execute(_KEPT, (run,))).fetchone()
    except psycopg.Error as error:
        raise unavailable(error) from error
    return digest if row is None else digest_of_parts(expanded(bytes(row[0])))


async def kept_archive(dsn: str, run: str) -> Iterator[bytes] | None:
    """A run's evidence, in parts; None where none was kept: it is not over. Raises JournalUnavailableError."""
    try:
        async with await connect(dsn) as connection:
            row = await (await connection.execute(_KEPT, (run,))).fetchone()
    except psycopg.Error as error:
        raise unavailable(error) from error
    return None if row is None else expanded(bytes(row[0]))
