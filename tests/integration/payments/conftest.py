"""One Postgres for all tests of the payments service, and one service for those that leave it alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.payments import rig
from tests.integration.payments.rig import Caller, Service


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with rig.scratch() as folder, rig.postgres(Path(folder) / "data") as url:
        yield url


@pytest.fixture(scope="session")
def shared_service(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with rig.database(server) as url:
        service = Service(url, tmp_path_factory.mktemp("payments"))
        service.start()
        yield service
        assert service.stop() == 0


@pytest.fixture
def caller(shared_service: Service) -> Caller:
    """A run and a tenant that are new to the shared service."""
    return shared_service.caller()


@pytest.fixture
def database_url(server: str) -> Iterator[str]:
    with rig.database(server) as url:
        yield url


@pytest.fixture
def stopped(database_url: str, tmp_path: Path) -> Iterator[Service]:
    """A service of the test's own, which was not started yet."""
    service = Service(database_url, tmp_path)
    yield service
    if not service.exited:
        service.kill()


@pytest.fixture
def service(stopped: Service) -> Service:
    """A service of the test's own, to be killed at will."""
    stopped.start()
    return stopped
