"""One home and one Postgres for all whole runs. Environments are those of the machine: they take minutes to make."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from killpoint.local.home import Home
from tests.integration.runs import rig
from tests.integration.runs.rig import Command, Postgres


@pytest.fixture(scope="session")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """The command with a home for this session, on killpoint's own Postgres."""
    with rig.new_home() as folder:
        yield Command(
            home=folder / "state",
            cache=Home.from_environment(os.environ).cache,
            scratch=tmp_path_factory.mktemp("commands"),
        )


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A Postgres of the tests' own, to be given with --dsn. Whoever stops it starts it again."""
    with rig.new_home() as folder:
        server = Postgres(folder=folder)
        server.make()
        server.start()
        yield server
        server.stop("immediate")


@pytest.fixture(scope="session")
def on_dsn(command: Command, postgres: Postgres) -> Command:
    """The same command, on the tests' own Postgres."""
    return command.with_variables(KILLPOINT_DSN=postgres.dsn)


@pytest.fixture
def own_home(on_dsn: Command, tmp_path: Path) -> Iterator[Command]:
    """The command on the tests' own Postgres with a home of its own: whatever lives there is this test's."""
    own = Command(home=tmp_path / "home", cache=on_dsn.cache, scratch=tmp_path, further=on_dsn.further)
    yield own
    own.end()
