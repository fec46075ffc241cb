"""Workers: setups that can be run here, and how their attempts are started."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from killpoint.local.environments import WorkerEnvironment
from killpoint.local.errors import ModeNotPossible
from killpoint.local.launcher import LauncherCommand
from killpoint.local.surroundings import surroundings
from killpoint.model.catalog import Setup


class Mode(StrEnum):
    """How attempts are started."""

    AUTO = "auto"
    """Forked where the setup allows it."""
    COLD = "cold"
    FORK = "fork"


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A setup that can be run here."""

    setup: Setup
    environment: WorkerEnvironment
    project: Path

    def arguments(self, mode: Mode) -> tuple[str, ...]:
        """The launcher's. Raises ModeNotPossible."""
        if mode is Mode.FORK and not self.setup.forkable:
            raise ModeNotPossible(
                f"setup {self.setup.name} cannot be forked", remedy="Use mode auto, which starts it cold."
            )
        if self.setup.module is None:
            return ("--command", json.dumps([self._word(word) for word in self.setup.command]))
        fork = mode is not Mode.COLD and self.setup.forkable
        return ("--module", self.setup.module, *(["--fork"] if fork else []))

    def launcher(self, mode: Mode, *, folder: Path, user: Mapping[str, str]) -> LauncherCommand:
        """The command of a launcher that has ``folder`` for itself."""
        return LauncherCommand(
            # A command in another language brings no Python of its own: its launcher runs in ours.
            python=self.environment.python if self.setup.module else Path(sys.executable),
            arguments=self.arguments(mode),
            environment=surroundings(self.environment, home=folder / "home", user=user),
            directory=folder,
            log=folder / "launcher.log",
        )

    def _word(self, word: str) -> str:
        """A word of a command that names a file of the project stands for that file, wherever the worker runs."""
        file = self.project / word
        return str(file) if file.is_file() else word
