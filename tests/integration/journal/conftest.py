"""A Postgres of the tests' own, and a run in a journal of its own for each test."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import psycopg
import pytest

from killpoint.journal.postgres import PostgresJournal, migrate, open_run
from tests.integration.runs import rig
from tests.integration.runs.rig import Postgres


@dataclass(frozen=True, slots=True, kw_only=True)
class Journals:
    """A run, and the journals that engines open for it."""

    dsn: str
    run: str
    open: Callable[[], Awaitable[PostgresJournal]]
    """One more, which has taken the run over."""


@pytest.fixture(scope="session")
def server() -> Iterator[Postgres]:
    with rig.new_home() as folder:
        running = Postgres(folder=folder)
        running.make()
        running.start()
        yield running
        running.stop("immediate")


@pytest.fixture
async def journals(server: Postgres, anyio_backend: str) -> AsyncIterator[Journals]:
    assert anyio_backend == "asyncio"
    database = f"journal_{secrets.token_hex(4)}"
    await asyncio.to_thread(_create, server, database)
    dsn, run = server.of(database), f"run-{secrets.token_hex(4)}"
    await migrate(dsn)
    await open_run(dsn, run, experiment="test", digest="d1")
    async with AsyncExitStack() as stack:

        async def another() -> PostgresJournal:
            journal = await stack.enter_async_context(PostgresJournal(dsn, run))
            await journal.take_over()
            return journal

        yield Journals(dsn=dsn, run=run, open=another)


def _create(server: Postgres, database: str) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{database}"')
