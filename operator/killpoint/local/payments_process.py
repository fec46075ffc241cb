"""The payments service as a process of its own, kept running for as long as an experiment needs it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from killpoint.local.environments import WorkerEnvironment
from killpoint.local.errors import PaymentsNotStarted, last_lines
from killpoint.local.launcher import (
    Ended,
    Failed,
    Gone,
    Launcher,
    LauncherCommand,
    LauncherGone,
    LauncherReport,
    exit_in_words,
)
from killpoint.local.progress import Progress, Report, Stage, silent
from killpoint.local.surroundings import surroundings

PROJECT = "payments"
HOST = "127.0.0.1"
READY_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 10.0
RESTART_PAUSE_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentsSettings:
    """What the payments service is started with."""

    environment: WorkerEnvironment
    database: str = field(repr=False)
    folder: Path
    """For its ready file and its log."""
    user: Mapping[str, str] = field(repr=False)
    """The environment of the harness."""
    connections: int = 16
    """Database sessions that commit charges."""
    restarts_max: int = 5
    signing_key: str = field(repr=False, default_factory=lambda: secrets.token_hex(32))
    admin_token: str = field(repr=False, default_factory=lambda: secrets.token_hex(32))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Where it listens."""

    public: int
    admin: int


class PaymentsProcess:
    """The running service. When it dies it is started again, a bounded number of times, on the same ports."""

    def __init__(self, settings: PaymentsSettings, *, report: Report = silent) -> None:
        self.settings = settings
        self.restarts = 0
        self.fault: str | None = None
        """Why it is not running and will not be started again."""
        self._report = report
        self._ports: Ports | None = None
        self._launcher: Launcher | None = None
        self._ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._keeping: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._listening.public}"

    @property
    def admin_url(self) -> str:
        return f"http://{HOST}:{self._listening.admin}"

    async def start(self) -> None:
        """Start it and wait until it takes requests. Raises PaymentsNotStarted."""
        self._tell("starting")
        self.settings.folder.mkdir(parents=True, exist_ok=True)
        try:
            await self._start_once()
        except BaseException:
            await self.stop()
            raise
        self._keeping = asyncio.create_task(self._keep())
        self._tell(f"running at {self.url}", done=True)

    async def stop(self) -> None:
        """SIGTERM, some time, SIGKILL. Doing it again is harmless."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait([self._keeping])
            self._keeping = None
        launcher, self._launcher = self._launcher, None
        if launcher is None:
            return
        with contextlib.suppress(LauncherGone):
            await launcher.signal(PROJECT, signal.SIGTERM)
            await asyncio.wait([self._ended], timeout=STOP_SECONDS_MAX)
        await launcher.stop()

    @property
    def _listening(self) -> Ports:
        if self._ports is None:
            raise PaymentsNotStarted("the payments service was not started", remedy="Start it first.")
        return self._ports

    @property
    def _log(self) -> Path:
        return self.settings.folder / "payments.log"

    async def _start_once(self) -> None:
        settings = self.settings
        ready = settings.folder / "payments-ready.json"
        ready.unlink(missing_ok=True)
        ports = self._ports or Ports(public=0, admin=0)
        home = settings.folder / "home"
        home.mkdir(exist_ok=True)
        serve = (
            str(settings.environment.python), "-m", "killpoint_payments", "serve", "--host", HOST,
            "--port", str(ports.public), "--admin-port", str(ports.admin), "--ready-file", str(ready),
            "--connections", str(settings.connections),
        )  # fmt: skip
        environment = surroundings(settings.environment, home=home, user=settings.user)
        command = LauncherCommand(
            python=settings.environment.python, arguments=("--command", json.dumps(serve)), environment=environment,
            directory=settings.folder, log=settings.folder / "payments-launcher.log",
        )  # fmt: skip
        self._ended = asyncio.get_running_loop().create_future()
        self._launcher = Launcher(command, self._take)
        try:
            await self._launcher.start()
            await self._launcher.launch(
                PROJECT, environment={
                    "KILLPOINT_PAYMENTS_DATABASE_URL": settings.database,
                    "KILLPOINT_PAYMENTS_SIGNING_KEY": settings.signing_key,
                    "KILLPOINT_PAYMENTS_ADMIN_TOKEN": settings.admin_token,
                }, directory=settings.folder, output=self._log,
            )  # fmt: skip
        except LauncherGone as error:
            raise self._failure(str(error)) from error
        self._ports = await self._ready(ready)

    async def _ready(self, file: Path) -> Ports:
        deadline = asyncio.get_running_loop().time() + READY_SECONDS_MAX
        while not self._ended.done():
            ports = _ports(file)
            if ports is not None:
                return ports
            if asyncio.get_running_loop().time() > deadline:
                raise self._failure(f"not ready after {READY_SECONDS_MAX:.0f} s")
            await asyncio.sleep(0.02)
        raise self._failure(self._ended.result())

    async def _keep(self) -> None:
        """Start it again when it has died. Workers and ledger see it away for a moment."""
        while True:
            reason = await self._ended
            if self._launcher is not None:
                await self._launcher.stop()
            if self.restarts >= self.settings.restarts_max:
                self.fault = f"died {self.restarts + 1} times, at last: {reason}"
                self._tell(f"given up: {self.fault}")
                return
            self.restarts += 1
            self._tell(f"started again ({reason})")
            await asyncio.sleep(self.restarts * RESTART_PAUSE_SECONDS)
            try:
                await self._start_once()
            except PaymentsNotStarted as error:
                if not self._ended.done():
                    self._ended.set_result(error.what)

    def _take(self, report: LauncherReport) -> None:
        match report:
            case Ended():
                reason = exit_in_words(report.code if report.code is not None else -(report.signal or 0))
            case Failed():
                reason = report.error
            case Gone():
                reason = report.reason
            case _:
                return
        if not self._ended.done():
            self._ended.set_result(reason)

    def _failure(self, what: str) -> PaymentsNotStarted:
        return PaymentsNotStarted(
            f"the payments service did not start: {what}",
            detail=last_lines(self._log),
            remedy=f"Its whole log: {self._log}",
        )

    def _tell(self, text: str, *, done: bool = False) -> None:
        self._report(Progress(stage=Stage.PAYMENTS, subject=PROJECT, text=text, done=done))


def _ports(ready: Path) -> Ports | None:
    """What the ready file says; None while it is not there, or not whole."""
    try:
        said = json.loads(ready.read_text())
        return Ports(public=int(said["port"]), admin=int(said["admin_port"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
