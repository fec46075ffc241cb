"""Freezing: this process stops itself at a point, and a helper outside of it lets it go on.

A stopped process cannot ask anybody whether it may go on, so a helper does (``killpoint_worker.thaw``). It is started
before the run, so that at the point there is one thing to do: stop. How the two keep from missing one another:

1. The worker writes its order into the helper's stdin and stops itself. The signal goes to the very thread that stands
   at the point: it is delivered before that thread's system call returns, and with it the whole process stops.
2. The helper waits until every thread of the worker is seen stopped, and only then tells control: whoever is parked is
   stopped. One that does not stop is killed, and was never parked.
3. To let it go on, the helper writes its answer first and sends SIGCONT then. The worker goes on only with an answer: a
   SIGCONT from anybody else finds none, and the worker stops itself again.
4. Such a stop may come after the helper's SIGCONT. So the helper repeats it until the worker has confirmed the
   answer on the helper's stdin.

A dead worker takes its helper with it (PR_SET_PDEATHSIG, and the end of the helper's stdin). A dead helper lets the
worker go: the end of its stdout makes the kernel send SIGCONT (O_ASYNC), and without an answer the attempt fails.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

from killpoint_worker.control import PATIENCE_SECONDS, ControlError

READY_SECONDS_MAX = 30.0
END_SECONDS_MAX = 10.0
READY = "ready"
GO = "go"

_PACKAGES = Path(__file__).parents[1]
# Isolated and without site: the helper needs the standard library and this package, and nothing that an application
# has installed may run in it. As a script it would have this package's http.py before the library's.
_HELPER = "import sys; sys.path.append(sys.argv.pop(1)); from killpoint_worker.thaw import main; sys.exit(main())"
_LINE_BYTES_MAX = 4096


class NotThawed(ControlError):
    """The helper could not let this attempt go on as ordered."""


class Freezer:
    """Freezes this process, once. Making it starts the helper, and waits until that is ready. Raises NotThawed."""

    def __init__(self, url: str, token: str, *, attempt: str, patience_seconds: float = PATIENCE_SECONDS) -> None:
        if sys.platform != "linux":
            raise NotThawed("freezing needs Linux: whether a process is stopped is read from /proc")
        self._order = {"url": url, "token": token, "attempt": attempt, "patience": patience_seconds}
        orders, self._orders = os.pipe()
        self._answers, answers = os.pipe()
        try:
            self._helper = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", "-c", _HELPER, str(_PACKAGES), str(os.getpid())],
                stdin=orders,
                stdout=answers,
                start_new_session=True,
            )
        finally:
            os.close(orders)
            os.close(answers)
        if self._answer(READY_SECONDS_MAX) != READY:
            raise NotThawed("the helper that would end a freeze did not get ready")
        _continue_this_process_at_input(self._answers)

    def freeze(self, point: str, occurrence: int) -> None:
        """Stop until control says ``go``; a ``die`` is carried out by the helper. Raises NotThawed.

        Called while the log's lock is held: nothing is written between the point's line and the stop.
        """
        order = json.dumps({**self._order, "point": point, "occurrence": occurrence}).encode() + b"\n"
        try:
            os.write(self._orders, order)
            while not _has_input(self._answers, 0.0):
                signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
            answer = self._answer(0.0)
            os.write(self._orders, b"\n")
        except BrokenPipeError:
            answer = ""
        os.close(self._orders)
        with contextlib.suppress(subprocess.TimeoutExpired):  # then it ends when this process does
            self._helper.wait(END_SECONDS_MAX)
        if answer != GO:
            raise NotThawed(f"frozen at {point}: {answer or 'the helper that would have ended it is dead'}")

    def _answer(self, seconds: float) -> str:
        """A line of the helper, which it writes at once and whole; empty when it has ended, or does not come."""
        if not _has_input(self._answers, seconds):
            return ""
        return os.read(self._answers, _LINE_BYTES_MAX).decode().strip()


def _has_input(descriptor: int, seconds: float) -> bool:
    """Whether there is something to read, the end included."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _continue_this_process_at_input(descriptor: int) -> None:
    """Have the kernel send SIGCONT to this process when there is something to read, the end included."""
    fcntl.fcntl(descriptor, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGCONT)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_ASYNC)
