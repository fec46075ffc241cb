"""One payments service and one Postgres for all contract tests; one launcher for each setup."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest

from tests.contract import rig
from tests.contract.rig import Launcher, Payments, Setup, Trial


class NewTrial(Protocol):
    """Makes a trial of a setup in one of its stores."""

    def __call__(
        self,
        setup: Setup,
        store: str,
        *,
        key: str = "stable",
        resume: str = "continue",
        parameters: Mapping[str, str] | None = None,
        further: Mapping[str, str] | None = None,
    ) -> Trial: ...


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with rig.postgres() as url:
        yield url


@pytest.fixture(scope="session")
def payments(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Payments]:
    with rig.database(server) as url, rig.payments(url, tmp_path_factory.mktemp("payments")) as service:
        yield service


@pytest.fixture(scope="session")
def state_database(server: str) -> Iterator[str]:
    """Where frameworks keep their state when the store is Postgres."""
    with rig.database(server) as url:
        yield url


@pytest.fixture(scope="session")
def launcher_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Setup], Launcher]]:
    """The launcher of a setup, started when it is first asked for."""
    running: dict[str, Launcher] = {}
    with ExitStack() as stack:

        def find(setup: Setup) -> Launcher:
            if setup.name not in running:
                folder = tmp_path_factory.mktemp(setup.name)
                running[setup.name] = stack.enter_context(Launcher(setup, folder))
            return running[setup.name]

        yield find


@pytest.fixture
def new_trial(
    launcher_of: Callable[[Setup], Launcher], payments: Payments, state_database: str, tmp_path: Path
) -> NewTrial:
    def make(
        setup: Setup,
        store: str,
        *,
        key: str = "stable",
        resume: str = "continue",
        parameters: Mapping[str, str] | None = None,
        further: Mapping[str, str] | None = None,
    ) -> Trial:
        volume = tmp_path / f"volume-{len(list(tmp_path.iterdir()))}"
        volume.mkdir()
        needs_database = store == "postgres" or bool(setup.entry["needs_database"])
        return Trial(
            launcher=launcher_of(setup),
            setup=setup,
            payments=payments,
            volume=volume,
            store=store,
            database_url=state_database if needs_database else None,
            key=key,
            resume=resume,
            parameters=parameters or {},
            further=further or {},
        )

    return make
