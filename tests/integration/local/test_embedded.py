"""killpoint's own Postgres: started, shared, stopped, and taken over from whoever was killed."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from killpoint.databases.administration import JOURNAL, Databases
from killpoint.databases.server import connect
from killpoint.local.embedded import embedded_postgres
from killpoint.local.errors import PostgresNotStarted
from killpoint.local.home import Home
from killpoint.local.postgres_place import Place, copied, find_binaries, find_place
from killpoint.local.processes import identify
from tests.integration.local import rig

pytestmark = pytest.mark.integration

OWNER = """
    import asyncio, sys
    from pathlib import Path
    from killpoint.databases.administration import Databases, JOURNAL
    from killpoint.local.embedded import embedded_postgres
    from killpoint.local.home import Home

    async def main():
        home = Home(state=Path(sys.argv[1]), cache=Path(sys.argv[2]))
        async with embedded_postgres(home, durable=False) as server, Databases(server) as all:
            await all.ensure_service(JOURNAL)
            print("running", flush=True)
            await asyncio.sleep(60)

    asyncio.run(main())
"""


@pytest.fixture
def own_home() -> Iterator[Home]:
    """A home for one test, since these start and stop its server."""
    with rig.new_home() as home:
        yield home


def test_binaries_that_others_cannot_get_at_run_from_a_copy() -> None:
    """As in an environment in root's home: Postgres' user cannot even look there."""
    with rig.new_home() as home:
        home.state.mkdir()
        copy = copied(find_binaries(), home.state / "postgres")
        again = copied(find_binaries(), home.state / "postgres")
        answer = subprocess.run([copy / "initdb", "--version"], capture_output=True, text=True, check=True)

    assert copy == again
    assert answer.stdout.startswith("initdb (PostgreSQL)")


def _place(home: Home) -> Place:
    return find_place(home)


def _pid(home: Home) -> int | None:
    file = _place(home).data / "postmaster.pid"
    return int(file.read_text().splitlines()[0]) if file.exists() else None


@pytest.mark.anyio
async def test_it_is_stopped_at_the_end_and_keeps_its_data(own_home: Home) -> None:
    async with embedded_postgres(own_home, durable=False) as server, Databases(server) as first:
        dsn = await first.ensure_service(JOURNAL)
        async with await connect(dsn) as connection:
            await connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        pid = _pid(own_home)
    assert pid is not None
    assert identify(pid) is None

    async with embedded_postgres(own_home, durable=False) as server, Databases(server) as second:
        dsn = await second.ensure_service(JOURNAL)
        async with await connect(dsn) as connection:
            cursor = await connection.execute("SELECT answer FROM kept")
            assert await cursor.fetchone() == (42,)


@pytest.mark.anyio
async def test_two_killpoints_share_it_and_the_last_one_stops_it(own_home: Home) -> None:
    async with embedded_postgres(own_home, durable=False) as first:
        async with embedded_postgres(own_home, durable=False) as second:
            assert second.admin == first.admin
        pid = _pid(own_home)
        assert pid is not None
        assert identify(pid) is not None
        async with await connect(first.admin):
            pass
    assert identify(pid) is None


@pytest.mark.anyio
async def test_a_server_whose_owner_was_killed_is_taken_over(own_home: Home) -> None:
    with _owner(own_home) as owner:
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    left = _pid(own_home)
    assert left is not None
    assert identify(left) is not None

    async with embedded_postgres(own_home, durable=False):
        assert _pid(own_home) == left
    assert identify(left) is None


@pytest.mark.anyio
async def test_a_killed_server_is_recovered(own_home: Home) -> None:
    with _owner(own_home) as owner:
        left = _pid(own_home)
        assert left is not None
        os.kill(left, signal.SIGKILL)
        owner.send_signal(signal.SIGKILL)
        owner.wait()

    async with embedded_postgres(own_home, durable=False) as server, Databases(server) as again:
        assert _pid(own_home) != left
        await again.ensure_service(JOURNAL)


@pytest.mark.anyio
async def test_a_stale_pid_of_another_program_does_not_keep_it_from_starting(own_home: Home) -> None:
    """The pid that a killed server had may be anybody's by now."""
    async with embedded_postgres(own_home, durable=False):
        lines = (_place(own_home).data / "postmaster.pid").read_text().splitlines()
    bystander = _bystander()
    try:
        (_place(own_home).data / "postmaster.pid").write_text("\n".join([str(bystander.pid), *lines[1:]]) + "\n")
        async with embedded_postgres(own_home, durable=False) as server, await connect(server.admin):
            pass
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.anyio
async def test_it_ends_with_a_cancelled_harness(own_home: Home) -> None:
    """As Ctrl-C does it."""
    running = asyncio.Event()

    async def run() -> None:
        async with embedded_postgres(own_home, durable=False):
            running.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(run())
    await running.wait()
    pid = _pid(own_home)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert pid is not None
    assert identify(pid) is None


@pytest.mark.anyio
async def test_its_secrets_are_for_their_owner_only(own_home: Home) -> None:
    async with embedded_postgres(own_home, durable=False) as server:
        place = _place(own_home)
        assert stat.S_IMODE(place.secret.stat().st_mode) == 0o600
        assert stat.S_IMODE(place.data.stat().st_mode) == 0o700
        assert place.secret.read_text() not in repr(server)


@pytest.mark.anyio
async def test_a_lost_secret_is_said_with_its_remedy(own_home: Home) -> None:
    async with embedded_postgres(own_home, durable=False):
        pass
    secret = _place(own_home).secret
    secret.rename(secret.with_suffix(".lost"))
    with pytest.raises(PostgresNotStarted, match=f"{secret} is gone"):
        async with embedded_postgres(own_home, durable=False):
            pass

    secret.write_text("another one")
    with pytest.raises(PostgresNotStarted, match="does not know the password"):
        async with embedded_postgres(own_home, durable=False):
            pass


@pytest.mark.anyio
async def test_a_server_that_cannot_start_shows_the_end_of_its_log(own_home: Home) -> None:
    async with embedded_postgres(own_home, durable=False):
        pass
    (_place(own_home).data / "PG_VERSION").write_text("9\n")
    with pytest.raises(PostgresNotStarted, match="database files are incompatible with server"):
        async with embedded_postgres(own_home, durable=False):
            pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a user of the system run Postgres")
def test_for_root_it_lies_outside_a_home_that_others_cannot_enter(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    home = Home(state=tmp_path / "state", cache=tmp_path / "cache")
    place = _place(home)
    try:
        assert tmp_path not in place.folder.parents
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700
        assert _place(home) == place
    finally:
        place.logs.rmdir()
        place.folder.rmdir()


def _bystander() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "60"])


def _owner(home: Home) -> subprocess.Popen[str]:
    """Another process that has the server started and would stop it, if it came to that."""
    owner = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(OWNER), str(home.state), str(home.cache)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == "running\n"
    return owner
