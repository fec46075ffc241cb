"""A Postgres of our own: its binaries come from a package, its data lies in killpoint's home.

Whoever uses it holds a shared lock; the last one to leave stops it. A killed killpoint leaves it running, and the next
one takes it over, since locks do not outlive their holders.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from killpoint.databases import dsn as dsns
from killpoint.databases.errors import PostgresRefused, PostgresUnreachable
from killpoint.databases.server import Server, connect, describe
from killpoint.local.errors import DISK_FULL, PostgresNotStarted, last_lines
from killpoint.local.home import Home
from killpoint.local.locks import FileLock, LockTimeout, exclusive
from killpoint.local.postgres_place import Place, find_place
from killpoint.local.processes import command_of, identify
from killpoint.local.progress import Progress, Report, Stage, silent

ADMIN = "postgres"
HOST = "127.0.0.1"
START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 20.0
_STARTS_MAX = 4
_LOG_BYTES_MAX = 5_000_000

SETTINGS = {
    # Loopback only, with passwords: drivers of every language can do that, and paths of sockets are limited in length.
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "max_connections": "200",
    # Durability stays as it is in production: fsync and synchronous_commit are what workers rely on.
    "shared_buffers": "64MB",
    "max_wal_size": "512MB",
    # /dev/shm is small in containers, and none of our queries gains by workers.
    "max_parallel_workers_per_gather": "0",
    "log_timezone": "UTC",
    "timezone": "UTC",
}


@asynccontextmanager
async def embedded_postgres(home: Home, *, report: Report = silent, durable: bool = True) -> AsyncIterator[Server]:
    """A running server. Raises PostgresNotStarted. Stopped at the end unless another killpoint uses it.

    Without ``durable`` it is faster, and a power cut may ruin it; that a process is killed never does.
    """
    place = await asyncio.to_thread(find_place, home)
    users = FileLock(place.users_lock)
    try:
        try:
            async with exclusive(place.change_lock, seconds=2 * START_SECONDS_MAX):
                if not users.try_shared():
                    raise PostgresNotStarted(
                        f"{place.users_lock} is held exclusively by another program", remedy="End that program."
                    )
                server = await _Embedded(place=place, report=report, durable=durable).ensure_running()
        except LockTimeout as error:
            raise PostgresNotStarted(
                str(error), remedy="Another killpoint starts or stops this server; look for it, and end it."
            ) from error
        yield server
    finally:
        # Shielded: Ctrl-C cancels what we are in, and a server that is left running is a surprise.
        await asyncio.shield(_leave(place, users, durable=durable))


async def _leave(place: Place, users: FileLock, *, durable: bool) -> None:
    try:
        async with exclusive(place.change_lock, seconds=STOP_SECONDS_MAX):
            if users.try_exclusive():
                await _Embedded(place=place, durable=durable).stop()
    except LockTimeout:
        # Another killpoint is starting or stopping it right now: it has users, or it is being stopped.
        return
    finally:
        users.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Postmaster:
    """What postmaster.pid says."""

    pid: int
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Embedded:
    """The server at a place. Its methods are called under the change lock."""

    place: Place
    report: Report = field(repr=False, default=silent)
    durable: bool = True

    async def ensure_running(self) -> Server:
        password = self._password()
        await self._initialise(password)
        running = self._running()
        if running is not None:
            with contextlib.suppress(PostgresUnreachable):
                return await self._answer(running.port, password, seconds=START_SECONDS_MAX / 3)
            # It runs, and does not answer: what a stop in the midst of everything leaves. Begin again.
            await self.stop()
        return await self._start(password)

    async def stop(self) -> None:
        """Stop the server, fast, then by force. Nothing to stop is a success.

        By force it writes no checkpoint, and the next start reads its log instead: no loss but of time.
        """
        for mode in ("fast", "immediate") if self.durable else ("immediate",):
            if self._running() is None:
                return
            await self._command(
                "pg_ctl", "stop", "-D", str(self.place.data), "-m", mode, "-t", "10", seconds=STOP_SECONDS_MAX
            )

    def _password(self) -> str:
        """The admin's password, which lies beside the data, for the eyes of its owner only."""
        file = self.place.secret
        if file.exists():
            return file.read_text().strip()
        if self.place.data.exists():
            raise PostgresNotStarted(
                f"{file} is gone, and without it nobody can log in to the database in {self.place.data}",
                remedy=f"Restore the file, or remove {self.place.folder}: all earlier runs are lost with it.",
            )
        password = secrets.token_hex(16)
        making = file.with_suffix(".making")
        making.unlink(missing_ok=True)
        making.touch(mode=0o600, exist_ok=False)
        with making.open("w") as out:
            out.write(password)
            out.flush()
            os.fsync(out.fileno())
        making.rename(file)
        return password

    async def _initialise(self, password: str) -> None:
        """Make the data folder, under another name until it is whole."""
        if self.place.data.exists():
            return
        self._tell("making a database")
        with self.place.scratch() as scratch:
            given = scratch / "password"
            given.write_text(password)
            self.place.give(given)
            made = scratch / "data"
            code = await self._command(
                "initdb", "-D", str(made), "-U", ADMIN, "--auth=scram-sha-256", f"--pwfile={given}",
                "--encoding=UTF8", "--no-locale", "--data-checksums", seconds=START_SECONDS_MAX,
            )  # fmt: skip
            if code != 0:
                raise self._failure("initdb failed", self.place.command_log)
            made.rename(self.place.data)

    async def _start(self, password: str) -> Server:
        self._tell("starting")
        if self.place.server_log.exists() and self.place.server_log.stat().st_size > _LOG_BYTES_MAX:
            self.place.server_log.unlink()
        for _ in range(_STARTS_MAX):
            # A stale file of a killed server whose pid another process has by now would keep Postgres from starting.
            (self.place.data / "postmaster.pid").unlink(missing_ok=True)
            settings = {**SETTINGS, "fsync": "on" if self.durable else "off", "port": str(_free_port())}
            options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
            code = await self._command(
                "pg_ctl", "start", "-D", str(self.place.data), "-w", "-t", f"{START_SECONDS_MAX:.0f}",
                "-l", str(self.place.server_log), "-o", options, seconds=START_SECONDS_MAX + 10,
            )  # fmt: skip
            running = self._running()
            if code == 0 and running is not None:
                server = await self._answer(running.port, password, seconds=START_SECONDS_MAX)
                self._tell("running", done=True)
                return server
            await self.stop()
            # The port was taken meanwhile, or the killed server's last processes still hold its memory.
            await asyncio.sleep(1)
        raise self._failure("it did not start", self.place.server_log)

    async def _answer(self, port: int, password: str, *, seconds: float) -> Server:
        """Wait until the server lets us in: it may be recovering. Raises PostgresUnreachable."""
        parts = {"host": HOST, "port": str(port), "user": ADMIN, "password": password, "dbname": "postgres"}
        dsn = dsns.build({**parts, "sslmode": "disable"})
        deadline = asyncio.get_running_loop().time() + seconds
        while True:
            try:
                async with await connect(dsn, seconds=5) as connection:
                    # Workers' roles have no business in the maintenance databases either.
                    await connection.execute("REVOKE CONNECT ON DATABASE postgres, template1 FROM PUBLIC")
                    return await describe(connection, dsn=dsn, embedded=True, secret=password.encode())
            except PostgresUnreachable:
                if asyncio.get_running_loop().time() > deadline or self._running() is None:
                    raise
            except PostgresRefused as error:
                raise PostgresNotStarted(
                    f"the database in {self.place.data} does not know the password in {self.place.secret}",
                    detail=error.detail,
                    remedy=f"Restore the file, or remove {self.place.folder}: all earlier runs are lost with it.",
                ) from error
            await asyncio.sleep(0.2)

    def _running(self) -> _Postmaster | None:
        """The live server of this data folder, by its postmaster.pid; None when that is absent or stale."""
        try:
            lines = (self.place.data / "postmaster.pid").read_text().splitlines()
            postmaster = _Postmaster(pid=int(lines[0]), port=int(lines[3]))
        except (OSError, ValueError, IndexError):
            return None
        if identify(postmaster.pid) is None or str(self.place.data) not in command_of(postmaster.pid):
            return None
        return postmaster

    async def _command(self, program: str, *arguments: str, seconds: float) -> int:
        """Run one of Postgres' programs as the data's owner; its words go to the command log.

        To a file and not to a pipe, which the server would inherit and hold open.
        """
        with self.place.command_log.open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                str(self.place.binaries / program), *arguments,
                stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.place.folder,
                env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "HOME": str(self.place.folder)},
                start_new_session=True, **self.place.login(),
            )  # fmt: skip
        try:
            async with asyncio.timeout(seconds):
                return await process.wait()
        except TimeoutError:
            return -1
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    def _failure(self, what: str, log: Path) -> PostgresNotStarted:
        detail = last_lines(log)
        remedy = DISK_FULL if "No space left" in detail else f"The whole log: {log}. Or give a Postgres with --dsn."
        return PostgresNotStarted(
            f"killpoint's own Postgres in {self.place.folder}: {what}", detail=detail, remedy=remedy
        )

    def _tell(self, text: str, *, done: bool = False) -> None:
        self.report(Progress(stage=Stage.POSTGRES, subject="postgres", text=text, done=done))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
