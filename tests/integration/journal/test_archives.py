"""The evidence of a run that is over is kept as it was first told, and is all that there was to tell."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from killpoint.core.summarize import summarize
from killpoint.journal.archive import (
    ArchiveError,
    archive_of,
    decode_archive,
    digest_of,
    encode_archive,
    encoded,
    run_of_archive,
)
from killpoint.journal.archives import keep_archive, kept_archive
from killpoint.journal.postgres import connect, migrate
from killpoint.ports import JournalUnavailableError
from tests.integration.journal.conftest import Journals
from tests.unit.engine.telling import PROVENANCE
from tests.unit.engine.world import Sim, cell, experiment

pytestmark = [pytest.mark.integration, pytest.mark.anyio]


async def test_what_is_kept_first_stays(journals: Journals) -> None:
    assert await kept_archive(journals.dsn, journals.run) is None
    digest = await keep_archive(journals.dsn, journals.run, [b'{"first"', b":1}"])
    assert digest == digest_of(b'{"first":1}')
    assert await keep_archive(journals.dsn, journals.run, [b'{"second":2}']) == digest
    await migrate(journals.dsn)
    assert await whole(journals) == b'{"first":1}'


async def whole(journals: Journals) -> bytes:
    parts = await kept_archive(journals.dsn, journals.run)
    assert parts is not None
    return b"".join(parts)


async def test_what_was_kept_before_there_was_compression_is_still_there(journals: Journals) -> None:
    async with await connect(journals.dsn) as connection:
        await connection.execute("INSERT INTO archives (run, document) VALUES (%s, %s)", (journals.run, b'{"old":1}'))
    assert await whole(journals) == b'{"old":1}'
    assert await keep_archive(journals.dsn, journals.run, [b'{"new":1}']) == digest_of(b'{"old":1}')


async def test_a_run_that_the_journal_does_not_hold_has_no_evidence(journals: Journals) -> None:
    with pytest.raises(JournalUnavailableError):
        await keep_archive(journals.dsn, "unknown", [b"{}"])
    assert await kept_archive(journals.dsn, "unknown") is None


async def test_a_database_that_is_away_is_said_to_be(journals: Journals) -> None:
    away = psycopg.conninfo.make_conninfo(journals.dsn, dbname="nowhere")
    with pytest.raises(JournalUnavailableError, match="does not answer as it should"):
        await kept_archive(away, journals.run)


async def test_a_run_is_summed_up_from_its_evidence_as_from_its_journal(journals: Journals) -> None:
    sim = Sim(experiment(cell(at=("charge.after",)), cell(at=("charge.before",))))
    engine = await asyncio.to_thread(sim.run)
    run = engine.run()
    document = archive_of(run, document={"spec": {}}, provenance=PROVENANCE)
    digest = await keep_archive(journals.dsn, journals.run, encoded(document, engine.trials()))
    kept = await whole(journals)
    assert kept == encode_archive(document)
    assert digest == digest_of(kept)
    archive = decode_archive(kept, source="kept")
    again = run_of_archive(archive, run.rules)
    assert summarize(again, archive.provenance) == summarize(run, PROVENANCE)
    with pytest.raises(ArchiveError, match="kept is no evidence of a run"):
        decode_archive(kept[:-9], source="kept")
