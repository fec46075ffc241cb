"""Archives in Postgres: the evidence of each run that is over, beside the events that it was made of."""

from __future__ import annotations

import psycopg

from killpoint.journal.archive import digest_of
from killpoint.journal.postgres import connect, unavailable

_KEEP = "INSERT INTO archives (run, document) VALUES (%s, %s) ON CONFLICT (run) DO NOTHING"
_KEPT = "SELECT document FROM archives WHERE run = %s"


async def keep_archive(dsn: str, run: str, document: bytes) -> str:
    """Keep a run's evidence; its digest. The first one counts: whoever ends a run again has the same to say.

    Raises JournalUnavailableError.
    """
    try:
        async with await connect(dsn) as connection:
            await connection.execute(_KEEP, (run, document))
            row = await (await connection.execute(_KEPT, (run,))).fetchone()
    except psycopg.Error as error:
        raise unavailable(error) from error
    return digest_of(document if row is None else bytes(row[0]))


async def kept_archive(dsn: str, run: str) -> bytes | None:
    """A run's evidence; None where none was kept: it is not over. Raises JournalUnavailableError."""
    try:
        async with await connect(dsn) as connection:
            row = await (await connection.execute(_KEPT, (run,))).fetchone()
    except psycopg.Error as error:
        raise unavailable(error) from error
    return None if row is None else bytes(row[0])
