"""One Postgres and one home for all tests of the local room; a journal of its own for each."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator

import pytest

from killpoint.databases.server import Server
from killpoint.local.embedded import embedded_postgres
from killpoint.local.home import Home
from killpoint.local.workloads import Workloads
from tests.integration.local import rig


@pytest.fixture(scope="session")
def home() -> Iterator[Home]:
    with rig.new_home() as made:
        yield made


@pytest.fixture(scope="session")
def server(home: Home) -> Iterator[Server]:
    """Killpoint's own Postgres."""
    with asyncio.Runner() as runner:
        running = embedded_postgres(home, durable=False)
        yield runner.run(running.__aenter__())
        runner.run(running.__aexit__(None, None, None))


@pytest.fixture(scope="session")
def workloads(tmp_path_factory: pytest.TempPathFactory) -> Workloads:
    return rig.fake_workloads(tmp_path_factory.mktemp("workloads") / "workloads")


@pytest.fixture
def journal() -> str:
    return f"test-{secrets.token_hex(4)}"


@pytest.fixture
def lab(server: Server, home: Home, workloads: Workloads, journal: str) -> rig.Lab:
    return rig.Lab(server=server, home=home, workloads=workloads, journal=journal)
