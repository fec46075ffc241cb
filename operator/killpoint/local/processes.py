"""Processes by their identity: a pid is used again, a pid with its time of birth is not."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_PS = "/bin/ps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process, for ever."""

    pid: int
    birth: str
    """When it was started, in the system's own words; with the boot on Linux, where times begin at zero."""


def identify(pid: int) -> Process | None:
    """The process that has this pid now. None: there is none, or only a dead one that nobody has waited for."""
    birth = _birth(pid)
    return None if birth is None else Process(pid=pid, birth=birth)


def is_alive(process: Process) -> bool:
    return identify(process.pid) == process


def command_of(pid: int) -> str:
    """The command line, or an empty text."""
    if sys.platform == "linux":
        try:
            return (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            return ""
    return _ps(pid, "command=")


def kill_session(process: Process) -> None:
    """SIGKILL the process and its group, which a worker leads. Harmless when it is dead."""
    if is_alive(process):
        for send in (os.killpg, os.kill):
            # It may die at any moment, and it need not lead a group.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                send(process.pid, signal.SIGKILL)


async def see_dead(processes: Sequence[Process], *, seconds: float) -> tuple[Process, ...]:
    """Wait until these are dead; the ones that still live after ``seconds`` come back."""
    deadline = time.monotonic() + seconds
    alive = tuple(filter(is_alive, processes))
    while alive and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
        alive = tuple(filter(is_alive, alive))
    return alive


def at_home_below(folder: Path) -> tuple[Process, ...]:
    """The processes that were started with a HOME in a folder. Linux only; elsewhere nothing is found.

    This finds a worker whose pid was never written down, because the harness was killed just then, and what such a
    worker has started. Somebody who merely looks around in the folder has his home elsewhere.
    """
    if sys.platform != "linux":
        return ()
    wanted = f"\0HOME={folder}/".encode()
    found = []
    # Called at the end of each attempt: a machine may have hundreds of processes, with hundreds of variables each.
    for name in os.listdir(_PROC):  # noqa: PTH208 - a Path for each would cost more than the look
        if name.isdigit() and int(name) != os.getpid() and wanted in _variables(name):
            process = identify(int(name))
            found += [process] if process else []
    return tuple(found)


def _variables(pid: str) -> bytes:
    """The environment that a process was started with, each variable after a NUL."""
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:  # noqa: PTH123 - see above
            return b"\0" + file.read()
    except OSError:
        return b""  # another user's process, or one that has just died


def _birth(pid: int) -> str | None:
    if sys.platform == "linux":
        return _birth_in_proc(pid)
    state, _, started = _ps(pid, "state=,lstart=").partition(" ")
    return None if not started or state.startswith("Z") else " ".join(started.split())


def _birth_in_proc(pid: int) -> str | None:
    """Fields 3 and 22 of proc(5)'s stat: the state, and the start in clock ticks since the boot."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(errors="replace")
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    # The command's name, in parentheses, may hold anything; what follows the last one is plain.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else f"{boot}:{fields[19]}"


def _ps(pid: int, columns: str) -> str:
    answer = subprocess.run(
        [_PS, "-o", columns, "-p", str(pid)], capture_output=True, text=True, timeout=10, check=False
    )
    return answer.stdout.strip()
