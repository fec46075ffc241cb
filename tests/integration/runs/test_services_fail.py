"""The services under a run fail in its midst: it goes on, and what they disturbed is run again, not counted."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests.integration.runs import rig
from tests.integration.runs.rig import Command, Ended, Postgres

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TRIALS = 5
AWAY_SECONDS = 1.0


def _stopped(mode: str) -> Callable[[Postgres], None]:
    def stop(server: Postgres) -> None:
        server.stop(mode)
        time.sleep(AWAY_SECONDS)
        server.start()

    return stop


def _one_of_its_processes_killed(server: Postgres) -> None:
    """Then Postgres ends every session and goes on, under the same start time."""
    with closing(psycopg.connect(server.dsn)) as connection:
        subject = rig.identify(connection.info.backend_pid)
        assert subject is not None
        rig.kill(subject)


@pytest.mark.parametrize(
    "harm",
    [
        pytest.param(_stopped("fast"), id="stopped"),
        pytest.param(_stopped("immediate"), id="stopped without a word"),
        pytest.param(_one_of_its_processes_killed, id="one of its processes killed"),
    ],
)
def test_postgres_fails_and_comes_back(
    harm: Callable[[Postgres], None], own_home: Command, postgres: Postgres, tmp_path: Path
) -> None:
    """Journal, payments and the workers' state are all on it."""
    file = _experiment(tmp_path, "postgres-fails")
    running = own_home.start("run", file, "-o", "json")
    running.until(lambda: rig.judged(own_home, postgres) >= 3, what="some trials judged")
    harm(postgres)
    assert_undisturbed(running.ended())


def test_payments_is_killed_and_comes_back(own_home: Command, postgres: Postgres, tmp_path: Path) -> None:
    file = _experiment(tmp_path, "payments-fails")
    running = own_home.start("run", file, "-o", "json")
    running.until(lambda: rig.judged(own_home, postgres) >= 3, what="some trials judged")
    for process in own_home.processes("killpoint_payments serve --host"):
        if "killpoint_worker.launcher" not in rig.command_of(process.pid):
            rig.kill(process)
    ended = running.ended()
    assert "payments: started again (killed by SIGKILL)" in ended.err
    assert_undisturbed(ended)


def _experiment(folder: Path, name: str) -> Path:
    return rig.experiment(
        name,
        folder,
        matrix={
            "setup": ["langgraph"],
            "key": ["none", "stable"],
            "kill": [{"at": ["charge.before"]}, {"at": ["charge.after"]}, {"at": ["charge.recorded"]}],
        },
        trials=TRIALS,
        expect=rig.DUPLICATES,
    )


def assert_undisturbed(ended: Ended) -> None:
    assert ended.code == 0, f"{ended.out[:4000]}\n{ended.err[-3000:]}"
    assert "Traceback" not in ended.err
    assert ended.status["kills"]["confirmed"] == ended.status["kills"]["planned"] == 6 * TRIALS
    for coordinates, cell in ended.cells().items():
        if not cell["control"]:
            charges = 2 if coordinates[2] == "none" and coordinates[-1] == "charge.after" else 1
            assert [(one["count"], one["trials"]) for one in cell["effects"] if one["action"] == "charge"] == [
                (charges, TRIALS)
            ]
