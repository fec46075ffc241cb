"""File locks between processes of this machine. The system frees them when their holder dies, however it dies."""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path


class LockTimeout(Exception):
    """Another process has held the lock for too long."""


class FileLock:
    """An flock on a file that stays where it is. Not inherited by children: Python opens files so."""

    __slots__ = ("_descriptor",)

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def try_exclusive(self) -> bool:
        return self._try(fcntl.LOCK_EX)

    def try_shared(self) -> bool:
        return self._try(fcntl.LOCK_SH)

    def close(self) -> None:
        """Give the lock back."""
        os.close(self._descriptor)

    def _try(self, operation: int) -> bool:
        try:
            fcntl.flock(self._descriptor, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@asynccontextmanager
async def exclusive(
    path: Path, *, seconds: float, on_wait: Callable[[], None] = lambda: None
) -> AsyncIterator[FileLock]:
    """Hold a lock alone; ``on_wait`` is called once when another holds it. Raises LockTimeout."""
    lock = FileLock(path)
    try:
        deadline = time.monotonic() + seconds
        waiting = False
        while not lock.try_exclusive():
            if not waiting:
                on_wait()
                waiting = True
            if time.monotonic() > deadline:
                raise LockTimeout(f"{path} is held by another process for more than {seconds:.0f} s")
            await asyncio.sleep(0.1)
        yield lock
    finally:
        lock.close()
