"""The launchers of a run: one per setup, started when it is first needed and again when it died."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from killpoint.local.launcher import Launcher, LauncherCommand, LauncherGone, LauncherReport
from killpoint.local.processes import Process

STARTS_MAX = 6
"""For each setup in a run."""
_IDENTITY = "process.json"


class Launchers:
    """Starts launchers, a bounded number of times, and ends them all."""

    def __init__(
        self, commands: Mapping[str, LauncherCommand], tell: Callable[[Launcher, LauncherReport], None]
    ) -> None:
        """``commands`` by setup; ``tell`` is called with each report of each launcher."""
        self._commands = commands
        self._tell = tell
        self._launchers: dict[str, Launcher] = {}
        self._starts: dict[str, int] = {}
        self._locks = {setup: asyncio.Lock() for setup in commands}

    async def of(self, setup: str) -> Launcher:
        """The setup's launcher. Raises LauncherGone when it can't be started, or was too often."""
        async with self._locks[setup]:
            running = self._launchers.get(setup)
            if running is not None and running.lives:
                return running
            starts = self._starts[setup] = self._starts.get(setup, 0) + 1
            if starts > STARTS_MAX:
                raise LauncherGone(f"the launcher of {setup} was started {STARTS_MAX} times and died each time")
            return await self._start(setup)

    async def stop(self) -> None:
        """End them all, and every attempt with them."""
        await asyncio.gather(*(launcher.stop() for launcher in self._launchers.values()))

    async def _start(self, setup: str) -> Launcher:
        command = self._commands[setup]
        _lay_out(command)
        launcher = Launcher(command, lambda report: self._tell(launcher, report))
        self._launchers[setup] = launcher
        await launcher.start()
        if launcher.identity is not None:
            (command.directory / _IDENTITY).write_text(json.dumps(asdict(launcher.identity)))
        return launcher


def _lay_out(command: LauncherCommand) -> None:
    Path(command.environment["HOME"]).mkdir(parents=True, exist_ok=True)


def left_behind(folder: Path) -> tuple[Process, ...]:
    """The launchers that an earlier harness wrote down below ``folder``, whether or not they still live."""
    found = []
    for file in folder.glob(f"*/{_IDENTITY}"):
        try:
            found.append(Process(**json.loads(file.read_text())))
        except (OSError, ValueError, TypeError):
            # Cut short by a kill: the search by HOME finds it where there is one to be found.
            continue
    return tuple(found)
