"""The helper of a frozen worker: tells control that the worker is stopped, and lets it go on when control says so.

A process of its own, started by ``killpoint_worker.freeze``, which says how the two work together. It reads one order
from stdin and writes two lines to stdout: that it is ready, and its answer. It ends with its worker.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from killpoint_worker.control import ControlClient
from killpoint_worker.freeze import READY

STOP_SECONDS_MAX = 10.0

_PR_SET_PDEATHSIG = 1
_LOOK_SECONDS = 0.005
_AGAIN_SECONDS = 0.05
_STOPPED = "T"
_DEAD = "ZX"


def main() -> int:
    """Serve the worker whose process id is the first argument, which must be this process' parent."""
    worker = int(sys.argv[1])
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != worker:
        return 1  # it died before the line above took effect
    _say(READY)
    order = sys.stdin.readline()
    if order:
        _serve(worker, json.loads(order))
    return 0


def _serve(worker: int, order: Mapping[str, Any]) -> None:
    if not _comes_to_a_stop(worker):
        os.kill(worker, signal.SIGKILL)  # it goes on past its point: what it does from here on would be held for true
        return
    answer = _answer(order)
    if answer == "die":
        os.kill(worker, signal.SIGKILL)
        return
    _say(answer)
    while os.getppid() == worker and not _has_our_answer():
        os.kill(worker, signal.SIGCONT)


def _answer(order: Mapping[str, Any]) -> str:
    """What control says, ``go`` or ``die``; or in one line why it does not."""
    control = ControlClient(
        order["url"], order["token"], attempt=order["attempt"], patience_seconds=float(order["patience"])
    )
    try:
        return control.park(order["point"], int(order["occurrence"]))
    except Exception as error:  # noqa: BLE001 - whatever it is, the worker must not stay stopped for it
        return f"{type(error).__name__}: {error}".replace("\n", " ")[:1000]


def _comes_to_a_stop(worker: int) -> bool:
    """Whether every thread of the worker is stopped within the time that it may take."""
    deadline = time.monotonic() + STOP_SECONDS_MAX
    while time.monotonic() < deadline:
        if _is_stopped(worker):
            return True
        time.sleep(_LOOK_SECONDS)
    return False


def _is_stopped(process: int) -> bool:
    states = [_state(task) for task in Path(f"/proc/{process}/task").iterdir()]
    living = [state for state in states if state not in _DEAD]
    return bool(living) and all(state == _STOPPED for state in living)


def _state(task: Path) -> str:
    """A thread's state, one letter; dead where it is gone since it was listed."""
    try:
        stat = (task / "stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return _DEAD[0]
    return stat.rpartition(")")[2].split()[0]  # the name before it may hold anything, parentheses too


def _has_our_answer() -> bool:
    """Whether the worker has our answer: it writes into our stdin then, or closes it. Waits a moment for that."""
    poll = select.poll()
    poll.register(0, select.POLLIN)
    return bool(poll.poll(_AGAIN_SECONDS * 1000))


def _say(line: str) -> None:
    """Write a line at once."""
    os.write(1, line.encode() + b"\n")
