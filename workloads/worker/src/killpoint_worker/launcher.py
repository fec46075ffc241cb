"""A process that starts attempts and reports their ends: one thread, one loop, JSON lines in and out.

    python -m killpoint_worker.launcher --module killpoint_langgraph [--fork]
    python -m killpoint_worker.launcher --command '["sh", "worker.sh"]'

In, on stdin:   {"launch": id, "env": {…}, "directory": path, "output": path}    {"signal": id, "number": 9}
Out, on stdout: {"ready": true, "pid": …, "imported_ms": …}    {"launched": id, "pid": …, "at": ms}
                {"ended": id, "code": 0 | null, "signal": 9 | null, "at": ms}    {"failed": id, "error": …}

When stdin ends, or SIGTERM comes, every attempt is killed and the launcher exits.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import selectors
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from killpoint_worker.spawn import ColdStarter, ForkStarter, Launch, NotForkableError, Starter

COMMAND_BYTES_MAX = 1 << 20
EXIT_NOT_READY = 1

_READ_BYTES = 1 << 16


class Channel:
    """The two ends of the protocol, moved away from 0 and 1 so that no import and no attempt can touch them."""

    def __init__(self) -> None:
        self.commands = os.dup(0)
        self._reports = os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)

    def say(self, **document: object) -> None:
        """Write one report. A reader that is gone is noticed at stdin's end, which comes with it."""
        data = json.dumps(document, separators=(",", ":")).encode() + b"\n"
        with contextlib.suppress(BrokenPipeError):
            while data:
                data = data[os.write(self._reports, data) :]

    def close(self) -> None:
        os.close(self.commands)
        os.close(self._reports)


class Launcher:
    """Starts, signals and reaps attempts until its stdin ends."""

    def __init__(self, channel: Channel, starter: Starter, wakeup: int) -> None:
        self._channel = channel
        self._starter = starter
        self._wakeup = wakeup
        self._running: dict[str, int] = {}
        self._unread = b""

    def serve(self) -> None:
        """Run the loop, and kill what still runs when it ends."""
        # poll has no descriptor of its own that a forked attempt would have to close.
        with selectors.PollSelector() as selector:
            selector.register(self._channel.commands, selectors.EVENT_READ, self._read_commands)
            selector.register(self._wakeup, selectors.EVENT_READ, self._read_signals)
            while all(key.data() for key, _ in selector.select()):
                self._reap()
        self._end_all()

    def _read_commands(self) -> bool:
        """Carry out the commands that have come in whole; false when no more can come."""
        data = os.read(self._channel.commands, _READ_BYTES)
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            if line.strip():
                self._carry_out(line)
        return bool(data) and len(self._unread) <= COMMAND_BYTES_MAX

    def _read_signals(self) -> bool:
        """Take the wakeup's bytes, one per signal; false when one of them asks this process to end."""
        return signal.SIGTERM not in os.read(self._wakeup, _READ_BYTES)

    def _carry_out(self, line: bytes) -> None:
        try:
            command = json.loads(line)
            if "launch" in command:
                self._launch(_launch(command))
            else:
                self._signal(str(command["signal"]), int(command["number"]))
        except (ValueError, TypeError, KeyError) as error:
            self._channel.say(failed=None, error=f"not a command: {type(error).__name__}: {error}: {line[:200]!r}")

    def _launch(self, launch: Launch) -> None:
        if launch.id in self._running:
            self._channel.say(failed=launch.id, error="an attempt of this id is running")
            return
        try:
            pid = self._starter.start(launch)
        except OSError as error:
            self._channel.say(failed=launch.id, error=str(error))
            return
        self._running[launch.id] = pid
        self._channel.say(launched=launch.id, pid=pid, at=_now_ms())

    def _signal(self, identity: str, number: int) -> None:
        """Signal an attempt's whole group. One that has ended needs no signal: its end was reported."""
        pid = self._running.get(identity)
        if pid is not None:
            _signal_group(pid, number)

    def _reap(self) -> None:
        for identity, pid in list(self._running.items()):
            status = _reaped(pid, os.WNOHANG)
            if status is not None:
                self._report_end(identity, status)

    def _report_end(self, identity: str, status: int) -> None:
        del self._running[identity]
        code = os.waitstatus_to_exitcode(status)
        ended: dict[str, Any] = {"code": code, "signal": None} if code >= 0 else {"code": None, "signal": -code}
        self._channel.say(ended=identity, **ended, at=_now_ms())

    def _end_all(self) -> None:
        for pid in self._running.values():
            _signal_group(pid, signal.SIGKILL)
        for identity, pid in list(self._running.items()):
            status = _reaped(pid, 0)
            if status is not None:
                self._report_end(identity, status)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a launcher until its stdin ends; 1 when it could not get ready."""
    options = _parser().parse_args(arguments)
    channel = Channel()
    wakeup = _wake_on_signals()
    began = time.perf_counter()
    try:
        starter = _starter(options, close=lambda: _close(channel, wakeup))
    except (ImportError, AttributeError, NotForkableError, ValueError) as error:
        channel.say(ready=False, pid=os.getpid(), error=f"{type(error).__name__}: {error}")
        return EXIT_NOT_READY
    imported_ms = round((time.perf_counter() - began) * 1000, 1)
    channel.say(ready=True, pid=os.getpid(), imported_ms=imported_ms)
    Launcher(channel, starter, wakeup).serve()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m killpoint_worker.launcher", description="Start attempts.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--module", help="the worker program's module; its main() runs an attempt")
    what.add_argument("--command", help="a command in any language, as a JSON array")
    parser.add_argument("--fork", action="store_true", help="import the module once and fork each attempt")
    return parser


def _starter(options: argparse.Namespace, *, close: Callable[[], None]) -> Starter:
    if options.command is not None:
        command = json.loads(options.command)
        if options.fork or not isinstance(command, list) or not command:
            raise ValueError("--command wants a JSON array of texts, and goes without --fork")
        return ColdStarter([str(word) for word in command])
    if options.fork:
        return ForkStarter.of_module(options.module, close=close)
    return ColdStarter([sys.executable, "-m", options.module])


def _wake_on_signals() -> int:
    """Have signals write a byte into a pipe; returns its end for reading."""
    wakeup, signalled = os.pipe()
    os.set_blocking(signalled, False)
    signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: None)
    # Ctrl-C reaches the whole foreground group; the harness decides what it means and ends our stdin.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return wakeup


def _close(channel: Channel, wakeup: int) -> None:
    channel.close()
    os.close(wakeup)


def _launch(command: Mapping[str, Any]) -> Launch:
    env = {str(name): None if value is None else str(value) for name, value in dict(command["env"]).items()}
    return Launch(
        id=str(command["launch"]), env=env, directory=str(command["directory"]), output=str(command["output"])
    )


def _reaped(pid: int, options: int) -> int | None:
    """The wait status of a child that has ended, after its group was cleared of what it left behind; else None."""
    if sys.platform == "linux":
        # Looked at without reaping: while the dead leader is there, its group's number can be nobody else's.
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | options) is None:
            return None
        _signal_group(pid, signal.SIGKILL)
        return os.waitpid(pid, 0)[1]
    ended, status = os.waitpid(pid, options)
    if not ended:
        return None
    with contextlib.suppress(ProcessLookupError, PermissionError):  # nothing is left of the group
        os.killpg(pid, signal.SIGKILL)
    return status


def _signal_group(pid: int, number: int) -> None:
    """Signal the group of a child that is not reaped yet."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        # It was forked a moment ago and has not made its session; or only the dead leader is left of the group.
        os.kill(pid, number)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    sys.exit(main())
