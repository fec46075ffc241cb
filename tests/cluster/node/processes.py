"""The node's first process: known by its id and its start time, so that no other one is ever ended in its place."""

from __future__ import annotations

import json
import os
import select
import signal
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.node.commands import ClusterError

_START_FIELD = 19
"""Of /proc/ID/stat, counted after the command's name, which may itself hold spaces: clock ticks since boot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process of this machine. An id alone may by now be somebody else's."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> Process | None:
        """The process that has this id now."""
        try:
            text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        except (FileNotFoundError, ProcessLookupError):
            return None
        return cls(pid=pid, started=int(text.rpartition(")")[2].split()[_START_FIELD]))

    @property
    def lives(self) -> bool:
        return Process.of(self.pid) == self

    def kill(self, *, seconds_max: float) -> None:
        """SIGKILL, and wait until it is gone. As it is the first of its process namespace, all in that go before it."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            # The handle means one process from here on, whatever becomes of the id. Is it the right one?
            if not self.lives:
                return
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            if not select.select([handle], [], [], seconds_max)[0]:
                raise ClusterError(f"process {self.pid} is still there {seconds_max:.0f} s after SIGKILL")
        finally:
            os.close(handle)


def remember(process: Process, place: Path, *, owner: Path) -> None:
    """Write down that it is the node of this state folder, in one step."""
    fresh = place.with_suffix(".new")
    fresh.write_text(
        json.dumps({"pid": process.pid, "started": process.started, "owner": str(owner)}), encoding="utf-8"
    )
    fresh.replace(place)


def remembered(place: Path, *, owner: Path) -> Process | None:
    """The node of this state folder that was written down, if it still lives."""
    try:
        known = json.loads(place.read_text(encoding="utf-8"))
        process = Process(pid=known["pid"], started=known["started"])
    except (FileNotFoundError, ValueError, KeyError):
        return None
    return process if known.get("owner") == str(owner) and process.lives else None
