"""The ways in which an attempt ends itself at a point. None of them flushes, closes or says goodbye."""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

EXIT_FAILED = 1
"""The exit code of a worker whose outcome is ``failed``."""

STILL_ALIVE = 70
"""The exit code of a worker that should be dead: PID 1 of a container after its SIGKILL, or memory without a limit."""

OWN_EXIT = 91
"""The exit code of a worker that is scheduled to leave by itself."""

MEMORY_BYTES_MAX = 4 << 30
MEMORY_SECONDS_MAX = 30.0

_BLOCK_BYTES = 16 << 20
_OOM_SCORE = Path("/proc/self/oom_score_adj")
_FIRST_TO_GO = "1000"


def die() -> NoReturn:
    """End by SIGKILL."""
    os.kill(os.getpid(), signal.SIGKILL)
    os._exit(STILL_ALIVE)


def leave() -> NoReturn:
    """End at once with an exit code of its own."""
    os._exit(OWN_EXIT)


def exhaust_memory(
    *,
    bytes_max: int = MEMORY_BYTES_MAX,
    seconds_max: float = MEMORY_SECONDS_MAX,
    clock: Callable[[], float] = time.monotonic,
) -> NoReturn:
    """Take memory and touch every page of it until the kernel kills this process.

    Bounded, so that a worker without a memory limit does not take the machine with it: it ends with STILL_ALIVE after
    ``bytes_max`` or ``seconds_max``, and when the kernel gives no more.
    """
    # Whatever limit is reached first, the machine's own one included: this process is the one to be killed for it.
    with contextlib.suppress(OSError):  # no Linux, or /proc is not to be written: the limit still counts
        _OOM_SCORE.write_text(_FIRST_TO_GO)
    deadline = clock() + seconds_max
    taken: list[mmap.mmap] = []
    while len(taken) * _BLOCK_BYTES < bytes_max and clock() < deadline:
        try:
            block = mmap.mmap(-1, _BLOCK_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except OSError:
            break
        block[:: mmap.PAGESIZE] = b"\x01" * (_BLOCK_BYTES // mmap.PAGESIZE)
        taken.append(block)
    os._exit(STILL_ALIVE)


ENDS: Mapping[str, Callable[[], NoReturn]] = {"die": die, "exit": leave, "out-of-memory": exhaust_memory}
"""Word of the schedule → what it does."""
