"""The journal keeps events durably and in order, and only the engine that took a run over last may write to it."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from killpoint.journal.postgres import PostgresJournal, migrate, open_run
from killpoint.model.cells import AttemptId, TrialId
from killpoint.model.events import AttemptIntended, AttemptLaunched, Event, RunOpened, ServicesSeen
from killpoint.ports import FencedError, JournalUnavailableError
from tests.integration.journal.conftest import Journals
from tests.integration.runs.rig import Postgres

pytestmark = [pytest.mark.integration, pytest.mark.anyio]

OPENED = RunOpened(experiment="test", spec_digest="d1", seed=1)
ATTEMPT = AttemptId(trial=TrialId(cell="7f31e2c0", number=1), number=1)
INTENDED = AttemptIntended(attempt=ATTEMPT, run="r", action="start", scheduled="charge.after", nonce="n")
LAUNCHED = AttemptLaunched(attempt=ATTEMPT)


def seen(number: int) -> ServicesSeen:
    return ServicesSeen(database=f"server {number}", payments="p")


async def events_of(journal: PostgresJournal, after: int = 0) -> list[Event]:
    return [recorded.event for recorded in await journal.read(after)]


async def test_what_is_appended_is_read_in_its_order(journals: Journals) -> None:
    journal = await journals.open()
    first = await journal.append([OPENED, INTENDED])
    second = await journal.append([LAUNCHED])
    assert [recorded.sequence for recorded in (*first, *second)] == [1, 2, 3]
    assert [recorded.at_ms for recorded in first] == sorted(recorded.at_ms for recorded in first)
    assert await journal.read(0) == [*first, *second]
    assert await events_of(journal, after=2) == [LAUNCHED]
    assert await journal.read(3) == []


async def test_nothing_appended_is_nothing_written(journals: Journals) -> None:
    journal = await journals.open()
    assert await journal.append([]) == []
    assert await journal.read(0) == []


async def test_a_new_engine_reads_on_and_appends_where_the_last_one_ended(journals: Journals) -> None:
    await (await journals.open()).append([OPENED, INTENDED])
    later = await journals.open()
    assert await events_of(later) == [OPENED, INTENDED]
    assert [recorded.sequence for recorded in await later.append([LAUNCHED])] == [3]


async def test_an_engine_that_was_taken_over_from_is_fenced_off(journals: Journals) -> None:
    """It reads, but nothing that it writes counts, whatever it believes."""
    old = await journals.open()
    await old.append([OPENED])
    new = await journals.open()
    with pytest.raises(FencedError, match="was taken over by another killpoint"):
        await old.append([seen(1)])
    await new.read(0)
    await new.append([seen(2)])
    with pytest.raises(FencedError):
        await old.append([seen(3)])
    assert await events_of(new) == [OPENED, seen(2)]
    assert await events_of(old) == [OPENED, seen(2)]


async def test_an_engine_that_took_nothing_over_may_not_append(journals: Journals) -> None:
    async with PostgresJournal(journals.dsn, journals.run) as stranger:
        with pytest.raises(FencedError):
            await stranger.append([OPENED])


async def test_of_two_engines_at_once_one_is_fenced_off(journals: Journals) -> None:
    """Both write as fast as they can; one takes over in the midst of it, and no event is lost or stands twice."""
    first = await journals.open()
    written: dict[str, list[ServicesSeen]] = {"first": [], "second": []}

    async def write(name: str, journal: PostgresJournal, numbers: range) -> None:
        for number in numbers:
            event = seen(number)
            await journal.append([event])
            written[name].append(event)

    async def take_over() -> PostgresJournal:
        await asyncio.sleep(0.05)
        second = await journals.open()
        await second.read(0)
        await write("second", second, range(10_000, 10_050))
        return second

    outcomes = await asyncio.gather(write("first", first, range(5_000)), take_over(), return_exceptions=True)
    assert isinstance(outcomes[0], FencedError)
    assert isinstance(outcomes[1], PostgresJournal)
    assert len(written["second"]) == 50
    assert await events_of(outcomes[1]) == [*written["first"], *written["second"]]


async def test_a_batch_is_written_whole_or_not_at_all(journals: Journals) -> None:
    old = await journals.open()
    await old.append([OPENED])
    new = await journals.open()
    with pytest.raises(FencedError):
        await old.append([INTENDED, LAUNCHED])
    assert await events_of(new) == [OPENED]


@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_it_goes_on_after_the_server_was_away(journals: Journals, server: Postgres, mode: str) -> None:
    """Away, it says so; back, what was written is there, and the run is still ours."""
    journal = await journals.open()
    await journal.append([OPENED])
    before = await journal.incarnation()
    await asyncio.to_thread(server.stop, mode)
    try:
        for call in (journal.append([INTENDED]), journal.read(0), journal.incarnation(), journal.take_over()):
            with pytest.raises(JournalUnavailableError, match="database does not answer"):
                await call
    finally:
        await asyncio.to_thread(server.start)
    assert await events_of(journal) == [OPENED]
    assert [recorded.sequence for recorded in await journal.append([INTENDED])] == [2]
    assert await journal.incarnation() != before


async def test_a_session_that_was_ended_is_another_incarnation(journals: Journals, server: Postgres) -> None:
    """As after a crash of one of the server's processes: it was not started anew, and everyone lost their sessions."""
    journal = await journals.open()
    before = await journal.incarnation()
    assert await journal.incarnation() == before
    await asyncio.to_thread(_end_sessions, server)
    with pytest.raises(JournalUnavailableError):
        await journal.append([OPENED])
    assert await journal.incarnation() != before


async def test_it_is_migrated_as_often_as_one_likes_also_at_once(journals: Journals) -> None:
    await (await journals.open()).append([OPENED])
    await asyncio.gather(*(migrate(journals.dsn) for _ in range(4)))
    assert await events_of(await journals.open()) == [OPENED]


async def test_a_run_is_found_again_and_never_as_another_specifications(journals: Journals) -> None:
    fresh = await open_run(journals.dsn, "run-new", experiment="test", digest="d1")
    assert (fresh.id, fresh.resumed) == ("run-new", False)
    await (await journals.open()).append([OPENED])
    assert (await open_run(journals.dsn, journals.run, experiment="test", digest="d1")).resumed
    with pytest.raises(JournalUnavailableError, match="of another specification"):
        await open_run(journals.dsn, journals.run, experiment="test", digest="d2")


async def test_a_run_that_is_gone_is_said_to_be(journals: Journals) -> None:
    async with PostgresJournal(journals.dsn, "nobodys") as journal:
        with pytest.raises(JournalUnavailableError, match="the journal holds no run nobodys"):
            await journal.take_over()


async def test_runs_do_not_see_each_other(journals: Journals) -> None:
    await (await journals.open()).append([OPENED])
    await open_run(journals.dsn, "run-beside", experiment="test", digest="d1")
    async with PostgresJournal(journals.dsn, "run-beside") as beside:
        await beside.take_over()
        assert await beside.read(0) == []
        assert [recorded.sequence for recorded in await beside.append([OPENED])] == [1]


def _end_sessions(server: Postgres) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'killpoint-journal'"
        )
