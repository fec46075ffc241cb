"""What a run needs is missing: the database, a folder, disk space, a workload's environment, a port."""

from __future__ import annotations

import re
import shutil
import socket
from pathlib import Path

import psycopg
import pytest

import killpoint
from tests.integration.bad_input.saying import assert_refused
from tests.integration.runs import rig
from tests.integration.runs.rig import ROOT, Command, Postgres

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PASSWORD = "correct-horse-battery"


def test_a_database_that_does_not_answer(command: Command, tmp_path: Path) -> None:
    dsn = f"postgresql://somebody:{PASSWORD}@127.0.0.1:{rig.free_port()}/postgres"
    ended = command("run", rig.shell(tmp_path, "unanswered"), "--dsn", dsn)
    said = assert_refused(ended, code=3, words=("does not answer", "Check that it runs"))
    assert PASSWORD not in said


def test_a_wrong_password(command: Command, postgres: Postgres, tmp_path: Path) -> None:
    """It is named with server and role, and the password is never printed."""
    ended = command("run", rig.shell(tmp_path, "refused"), "--dsn", postgres.of("postgres", password=PASSWORD))
    said = assert_refused(
        ended,
        code=3,
        words=(
            f"Postgres at postgresql://postgres@127.0.0.1:{postgres.port}/postgres refuses the login",
            "Check role, password and database.",
        ),
    )
    assert PASSWORD not in said


def test_a_dsn_that_cannot_be_read(command: Command, tmp_path: Path) -> None:
    """Whatever was meant, a password may be in it."""
    ended = command("run", rig.shell(tmp_path, "unreadable"), "--dsn", f"postgres//me:{PASSWORD}@host")
    said = assert_refused(
        ended, code=3, words=("the DSN cannot be read", "postgresql://role:password@host:port/database")
    )
    assert PASSWORD not in said


def test_a_role_that_may_do_too_little(command: Command, postgres: Postgres, tmp_path: Path) -> None:
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE humble LOGIN PASSWORD '{PASSWORD}'")
    dsn = f"postgresql://humble:{PASSWORD}@127.0.0.1:{postgres.port}/postgres"
    ended = command("run", rig.shell(tmp_path, "humble"), "--dsn", dsn)
    said = assert_refused(ended, code=3, words=('ALTER ROLE "humble" CREATEDB CREATEROLE;',))
    assert PASSWORD not in said


def test_a_home_that_cannot_be_written(on_dsn: Command, tmp_path: Path) -> None:
    nowhere = Command(home=Path("/dev/null/home"), cache=on_dsn.cache, scratch=tmp_path, further=on_dsn.further)
    ended = nowhere("run", rig.shell(tmp_path, "nowhere"))
    assert_refused(ended, code=3, words=("/dev/null/home", "cannot be written", "Set KILLPOINT_HOME to a folder"))


def test_no_space_left_for_the_evidence(own_home: Command, tmp_path: Path) -> None:
    """It is said where, and with space again the same command has only to write it: nothing is run again."""
    file = rig.shell(tmp_path, "full")
    small = ("sh", "-c", 'ulimit -f 20; exec "$@"', "sh")
    ended = own_home("run", file, "-o", "json", under=small)
    assert_refused(
        ended,
        code=3,
        words=(
            "evidence.json cannot be written: File too large.",
            "Free some disk space, then run it again: what is finished is kept.",
        ),
    )
    attempts = sorted(attempt.name for attempt in own_home.newest_run().glob("attempts/*"))
    assert attempts
    again = own_home("run", file, "-o", "json")
    assert again.code == 0
    assert again.status["result"] == "Pass"
    assert sorted(attempt.name for attempt in own_home.newest_run().glob("attempts/*")) == attempts


def test_a_report_that_cannot_be_written_is_said_before_anything_is_run(own_home: Command, tmp_path: Path) -> None:
    ended = own_home("run", rig.shell(tmp_path, "unreported"), "--report", "/dev/null/report.html")
    assert_refused(ended, code=2, words=("--report /dev/null/report.html: there is no folder /dev/null",))
    assert not own_home.runs.exists()


def test_no_space_left_for_the_report(own_home: Command, tmp_path: Path) -> None:
    """The results are shown, and the evidence is there to write it from."""
    full = "/dev/full"
    ended = own_home("run", rig.shell(tmp_path, "unreported"), "--report", full)
    assert ended.code == 3
    assert "unreported  Pass" in ended.out
    assert f"{full} cannot be written: No space left on device" in ended.err
    assert "The evidence is kept: `killpoint report` writes it again." in ended.err
    assert own_home("report", "unreported").out == ended.out


def test_no_network_for_an_environment(on_dsn: Command, tmp_path: Path) -> None:
    """An index that nobody answers at, and nothing cached."""
    file = rig.experiment("offline", tmp_path, matrix=_matrix("langgraph"), trials=1)
    offline = Command(
        home=tmp_path / "home",
        cache=tmp_path / "cache",
        scratch=tmp_path,
        further={
            **on_dsn.further,
            "UV_NO_CONFIG": "1",
            "UV_DEFAULT_INDEX": f"http://127.0.0.1:{rig.free_port()}/simple",
            "UV_HTTP_RETRIES": "0",
            "UV_CACHE_DIR": str(tmp_path / "uv"),
        },
    )
    ended = offline("run", file)
    assert_refused(
        ended,
        code=3,
        words=(
            "the environment of workload langgraph could not be made: ",
            "The package index could not be reached. Check network, proxy and the index that uv is told to use.",
        ),
    )
    assert not list((tmp_path / "cache").glob("**/killpoint-complete"))


def test_a_lock_that_cannot_be_read(on_dsn: Command, tmp_path: Path) -> None:
    """In a copy of all that is installed: the real workloads stay as they are."""
    package = tmp_path / "operator" / "killpoint"
    shutil.copytree(Path(killpoint.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    workloads = tmp_path / "workloads"
    workloads.mkdir()
    for one in (ROOT / "workloads").iterdir():
        if one.name != "langgraph":
            (workloads / one.name).symlink_to(one)
    shutil.copytree(ROOT / "workloads" / "langgraph", workloads / "langgraph")
    (workloads / "langgraph" / "requirements.lock").write_text("langgraph=={broken\n")
    file = rig.experiment("locked", tmp_path, matrix=_matrix("langgraph"), trials=1)
    copied = Command(
        home=tmp_path / "home",
        cache=on_dsn.cache,
        scratch=tmp_path,
        further={**on_dsn.further, "PYTHONPATH": str(package.parent)},
    )
    assert_refused(
        copied("run", file),
        code=3,
        words=("the environment of workload langgraph could not be made: ", "langgraph/requirements.lock"),
    )


def test_a_port_that_is_taken_while_payments_is_away(own_home: Command, postgres: Postgres, tmp_path: Path) -> None:
    """Workers know the port, so it cannot be another one: after some tries it is given up, and said why."""
    running = own_home.start("run", rig.shell(tmp_path, "taken", trials=3, parallelism=1), "-o", "json")
    running.until(lambda: rig.judged(own_home, postgres), what="a trial judged")
    found = re.search(r"running at http://127\.0\.0\.1:(\d+)", running.err)
    assert found is not None
    for process in own_home.processes("killpoint_payments serve --host"):
        if "killpoint_worker.launcher" not in rig.command_of(process.pid):
            rig.kill(process)
    with socket.socket() as thief:
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        rig.eventually(lambda: _bound(thief, int(found[1])), what="the port is ours")
        thief.listen()
        ended = running.ended()
    said = assert_refused(
        ended, code=3, words=("the payments service died", "payments.log", "The same command goes on")
    )
    assert "in use" in said
    assert own_home("run", tmp_path / "taken.yaml", "-o", "json").code == 0


def _bound(thief: socket.socket, port: int) -> bool:
    try:
        thief.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True


def _matrix(setup: str) -> dict[str, object]:
    return {"setup": [setup], "key": ["stable"], "kill": [{"at": ["charge.before"]}]}
