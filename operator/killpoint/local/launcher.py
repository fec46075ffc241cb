"""The harness's end of a launcher: a process that starts others, reports their ends and takes them along at its own.

The other end is ``killpoint_worker.launcher``. A launcher ends when its stdin does, so nothing outlives a harness
that was killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from killpoint.local.errors import last_lines
from killpoint.local.processes import Process, identify

MODULE = "killpoint_worker.launcher"
READY_SECONDS_MAX = 120.0
"""Importing a large framework from a cold disk takes its time."""
STOP_SECONDS_MAX = 5.0
_LINE_BYTES_MAX = 1 << 20


class LauncherGone(Exception):
    """The launcher cannot be started, or is not there any more. Says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """A process was started."""

    id: str
    pid: int
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A process is over, and so is its group."""

    id: str
    code: int | None
    signal: int | None
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A process could not be started."""

    id: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """The launcher itself is over. What it had started dies with it."""

    reason: str


LauncherReport = Launched | Ended | Failed | Gone


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherCommand:
    """How a launcher is started."""

    python: Path
    arguments: tuple[str, ...]
    """``--module M [--fork]`` or ``--command JSON``."""
    environment: Mapping[str, str] = field(repr=False)
    directory: Path
    log: Path
    """What it, and an import in it, writes to stderr."""


class Launcher:
    """One launcher process."""

    def __init__(self, command: LauncherCommand, tell: Callable[[LauncherReport], None]) -> None:
        """``tell`` is called with each report, in order, from the event loop."""
        self._command = command
        self._tell = tell
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self.identity: Process | None = None

    @property
    def lives(self) -> bool:
        return self._process is not None and self._process.returncode is None and self._reading is not None

    async def start(self) -> None:
        """Start it and wait until it takes launches. Raises LauncherGone."""
        command = self._command
        try:
            with command.log.open("ab") as log:
                self._process = await asyncio.create_subprocess_exec(
                    str(command.python), "-m", MODULE, *command.arguments,
                    stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log,
                    cwd=command.directory, env=dict(command.environment), start_new_session=True, limit=_LINE_BYTES_MAX,
                )  # fmt: skip
        except OSError as error:
            raise LauncherGone(f"{command.python} -m {MODULE}: {error}") from error
        self.identity = identify(self._process.pid)
        self._reading = asyncio.create_task(self._read(self._process))
        try:
            async with asyncio.timeout(READY_SECONDS_MAX):
                fault = await asyncio.shield(self._ready)
        except TimeoutError:
            fault = self._in_words(f"not ready after {READY_SECONDS_MAX:.0f} s")
        except BaseException:
            await self.stop()
            raise
        if fault is not None:
            await self.stop()
            raise LauncherGone(fault)

    async def launch(self, name: str, *, environment: Mapping[str, str], directory: Path, output: Path) -> None:
        """Ask for a process; its start or failure is reported. Raises LauncherGone."""
        await self._say({"launch": name, "env": dict(environment), "directory": str(directory), "output": str(output)})

    async def signal(self, name: str, number: int) -> None:
        """Signal a process's whole group. Raises LauncherGone."""
        await self._say({"signal": name, "number": number})

    async def stop(self) -> None:
        """End it, and all that it started. Doing it again is harmless."""
        process, reading = self._process, self._reading
        if process is None:
            return
        assert process.stdin is not None  # noqa: S101 - it was asked for as a pipe
        process.stdin.close()
        try:
            async with asyncio.timeout(STOP_SECONDS_MAX):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            await process.wait()
        if reading is not None:
            await asyncio.wait([reading], timeout=STOP_SECONDS_MAX)
            reading.cancel()

    async def _say(self, command: Mapping[str, object]) -> None:
        process = self._process
        if process is None or process.stdin is None or not self.lives:
            raise LauncherGone("the launcher is not running")
        try:
            process.stdin.write(json.dumps(command, separators=(",", ":")).encode() + b"\n")
            await process.stdin.drain()
        except (ConnectionError, OSError) as error:
            raise LauncherGone(f"the launcher does not listen: {error}") from error

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None  # noqa: S101 - it was asked for as a pipe
        fault = ""
        try:
            async for line in process.stdout:
                self._take(json.loads(line))
        except (ValueError, TypeError, KeyError) as error:
            fault = f"it does not speak the protocol: {error}; "
            process.kill()
        code = await process.wait()
        self._reading = None
        reason = self._in_words(f"{fault}{exit_in_words(code)}")
        if not self._ready.done():
            self._ready.set_result(reason)
        self._tell(Gone(reason=reason))

    def _take(self, report: Mapping[str, Any]) -> None:
        if "ready" in report:
            if not self._ready.done():
                self._ready.set_result(None if report["ready"] else self._in_words(str(report.get("error"))))
        elif "launched" in report:
            self._tell(Launched(id=report["launched"], pid=int(report["pid"]), at_ms=int(report["at"])))
        elif "ended" in report:
            self._tell(Ended(id=report["ended"], code=report["code"], signal=report["signal"], at_ms=int(report["at"])))
        else:
            self._tell(Failed(id=str(report["failed"]), error=str(report["error"])))

    def _in_words(self, what: str) -> str:
        said = last_lines(self._command.log, 6)
        return f"launcher {' '.join(self._command.arguments)}: {what}" + (f"\n{said}" if said else "")


def exit_in_words(code: int) -> str:
    """``exit 3`` or ``killed by SIGKILL``, from a return code as Python gives it."""
    if code >= 0:
        return f"exit {code}"
    with contextlib.suppress(ValueError):
        return f"killed by {signal.Signals(-code).name}"
    return f"killed by signal {-code}"
