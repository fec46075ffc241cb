"""Starting attempts as processes: by fork and exec, or by fork of a process that has imported the framework."""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import random
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Protocol

CANNOT_EXECUTE = 127
"""What a shell answers for a command that cannot be executed."""

_PR_SET_PDEATHSIG = 1
_FIRST_FD_NOT_STANDARD = 3
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class NotForkableError(RuntimeError):
    """The module did more at import than define things, so that a fork of this process would be broken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One attempt to be started. ``env`` comes on top of the launcher's own; None takes a variable away.

    ``output`` is the file that stdout and stderr are appended to, ``directory`` the working directory.
    """

    id: str
    env: Mapping[str, str | None]
    directory: str
    output: str

    def environment(self) -> dict[str, str]:
        """The whole environment of the attempt."""
        merged: dict[str, str | None] = {**os.environ, **self.env}
        return {name: value for name, value in merged.items() if value is not None}


class Starter(Protocol):
    """A way of starting attempts."""

    def start(self, launch: Launch) -> int:
        """Start one and return its process id. Raises OSError when it cannot be started."""


class ColdStarter:
    """Starts a command in a new process image."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = tuple(command)

    def start(self, launch: Launch) -> int:
        with _surroundings(launch) as (directory, output):
            broken, tell = os.pipe()
            launcher = os.getpid()
            pid = os.fork()
            if pid == 0:
                os.close(broken)
                self._execute(launch, launcher=launcher, directory=directory, output=output, tell=tell)
            os.close(tell)
            try:
                # Ends when exec closes the other side, or with the reason why there was no exec.
                reason = os.read(broken, 1024)
            finally:
                os.close(broken)
        if reason:
            os.waitpid(pid, 0)
            raise OSError(reason.decode(errors="replace"))
        return pid

    def _execute(self, launch: Launch, *, launcher: int, directory: int, output: int, tell: int) -> NoReturn:
        try:
            _become_attempt(launcher, directory, output)
            # CPython ignores these two, and what is ignored stays so through exec.
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            os.closerange(_FIRST_FD_NOT_STANDARD, tell)
            os.closerange(tell + 1, os.sysconf("SC_OPEN_MAX"))
            environment = {"PYTHONUNBUFFERED": "1", **launch.environment()}
            os.execvpe(self._command[0], self._command, environment)  # noqa: S606 - an argument list, no shell
        except BaseException as error:  # noqa: BLE001 - a forked child must never run on into the launcher's loop
            os.write(tell, f"{self._command[0]}: {error}".encode()[:1024])
        finally:
            os._exit(CANNOT_EXECUTE)


class ForkStarter:
    """Starts ``main`` of a module that this process has imported already."""

    def __init__(self, main: Callable[[], object], *, close: Callable[[], None]) -> None:
        self._main = main
        self._close = close
        """Closes what belongs to the launcher alone; called in the child."""

    @classmethod
    def of_module(cls, name: str, *, close: Callable[[], None]) -> ForkStarter:
        """Import the module and make this process ready for forks. Raises NotForkableError, ImportError."""
        main = importlib.import_module(name).main
        threads = threads_of_this_process()
        if threads != 1:
            raise NotForkableError(
                f"{name} has {threads} threads after its import, of which a fork would copy one: "
                "start them in main(), or start its attempts cold"
            )
        gc.collect()
        # Objects of the import leave the collector's lists, so that no child copies their pages to look at them.
        gc.freeze()
        return cls(main, close=close)

    def start(self, launch: Launch) -> int:
        with _surroundings(launch) as (directory, output):
            sys.stdout.flush()
            sys.stderr.flush()
            launcher = os.getpid()
            pid = os.fork()
            if pid == 0:
                self._run(launch, launcher=launcher, directory=directory, output=output)
            return pid

    def _run(self, launch: Launch, *, launcher: int, directory: int, output: int) -> NoReturn:
        code = 1
        try:
            _become_attempt(launcher, directory, output)
            os.close(directory)
            os.close(output)
            self._close()
            signal.signal(signal.SIGINT, signal.default_int_handler)
            environment = launch.environment()
            os.environ.clear()
            os.environ.update(environment)
            random.seed()
            self._main()
            code = 0
        except SystemExit as error:
            code = _exit_code(error)
        except BaseException:  # noqa: BLE001 - as in _execute; the traceback is in the attempt's output
            traceback.print_exc()
        finally:
            _flush()
            os._exit(code)


def threads_of_this_process() -> int:
    """How many threads there are: the system's count where it can be read, so that native ones are seen too."""
    if sys.platform == "linux":
        return sum(1 for _ in Path("/proc/self/task").iterdir())
    return threading.active_count()


@contextmanager
def _surroundings(launch: Launch) -> Iterator[tuple[int, int]]:
    """Descriptors of directory and output, opened before the fork so that a fault is the launcher's to report."""
    directory = os.open(launch.directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        output = os.open(launch.output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            yield directory, output
        finally:
            os.close(output)
    finally:
        os.close(directory)


def _become_attempt(launcher: int, directory: int, output: int) -> None:
    """In the child: a session of its own, no life after the launcher's, its output and directory, plain signals."""
    os.setsid()
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != launcher:
        # The launcher died before the line above took effect.
        os.kill(os.getpid(), signal.SIGKILL)
    wakeup = signal.set_wakeup_fd(-1)
    if wakeup >= 0:
        os.close(wakeup)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.fchdir(directory)


def _exit_code(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code
    sys.stderr.write(f"{error.code}\n")
    return 1


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            # Closed by the program, or a full disk: the exit code is right without it.
            continue
