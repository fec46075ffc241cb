"""An operator that dies, or stops, at a place in its journal that a file names: ``python -m tests.cluster.mortal``.

It is the operator itself in all else. Its identity is given, as a pod's name is: started again, it goes on with the
lease that it had.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from killpoint.controller import composition
from killpoint.controller.serve import LeaseLostError, serve
from killpoint.controller.settings import Settings
from killpoint.journal.postgres import PostgresJournal
from killpoint.model.events import Event, Recorded

MODULE = "tests.cluster.mortal"
IDENTITY = "KILLPOINT_TEST_IDENTITY"
FATE = "KILLPOINT_TEST_FATE"
"""The file with the order. It is taken away before it is carried out, so that the next operator lives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What is to happen: before or after a change of the journal, counted from the moment of the order."""

    side: str
    change: int = 0
    signal: str = "SIGKILL"
    event: str = "any"
    """Instead of a number: at the first change that has an event of this class."""

    def write(self, file: Path) -> None:
        """Give the order, in one go."""
        draft = file.with_suffix(".draft")
        draft.write_text(f"{self.side} {self.change} {self.signal} {self.event}")
        draft.replace(file)

    @classmethod
    def read(cls, file: Path) -> Fate | None:
        try:
            side, change, number, event = file.read_text().split()
        except FileNotFoundError:
            return None
        return cls(side=side, change=int(change), signal=number, event=event)


class MortalJournal(PostgresJournal):
    """The journal, with every change of it counted: appends, and the mark at the end of a run."""

    changes = 0

    async def append(self, events: Sequence[Event]) -> Sequence[Recorded]:
        self._meet("before", events)
        recorded = await super().append(events)
        self._meet("after", events)
        return recorded

    async def end(self) -> None:
        self._meet("before")
        await super().end()
        self._meet("after")

    def _meet(self, side: str, events: Sequence[Event] = ()) -> None:
        file = Path(os.environ[FATE])
        fate = Fate.read(file)
        if fate is None:
            MortalJournal.changes = 0
            return
        if side == "before":
            MortalJournal.changes += 1
        has_come = fate.change == MortalJournal.changes or fate.event in {type(event).__name__ for event in events}
        if side == fate.side and has_come:
            file.unlink()
            os.kill(os.getpid(), signal.Signals[fate.signal])


def main() -> int:
    """As the operator's own."""
    settings = Settings.from_environment(os.environ, own_namespace=None, identity=os.environ[IDENTITY])
    logging.basicConfig(level=settings.log_level, format="%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    for noisy in ("kopf", "httpx", "aiohttp"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    try:
        with patch.object(composition, "PostgresJournal", MortalJournal):
            asyncio.run(serve(settings))
    except LeaseLostError:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
