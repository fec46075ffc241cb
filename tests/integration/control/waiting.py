"""A control process that can be killed and started again, and workers that wait at it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from killpoint.control.parkings import Parked, Parkings
from killpoint.model.tokens import mint_token
from tests.contract.rig import ROOT

KEY = "a-signing-key"
RUN, ATTEMPT = "j-aaaa.1", "aaaa.1.1"
TOKEN = mint_token(KEY, experiment="e", tenant="t", run=RUN, attempt=ATTEMPT)
DEADLINE_SECONDS = 30.0
TICKERS = ("first", "second", "third")

# A request is held for a moment only, so that every wait here consists of many.
CONTROL = """
    import sys
    from killpoint.control import app
    app.HELD_SECONDS = 0.2
    from killpoint.control.__main__ import main
    sys.exit(main())
"""

WORKER = """
    import os, threading, time
    from killpoint_worker import Description, Finished, run_worker

    class Program:
        def describe(self):
            return Description(worker="waiting", points=["charge.before", "charge.after"])

        def inspect(self, context):
            return {}

        def execute(self, context):
            def tick(name):
                for count in range(1_000_000):
                    (context.volume / name).write_text(str(count))
                    time.sleep(0.002)
            for name in ("first", "second", "third"):
                threading.Thread(target=tick, args=(name,), daemon=True).start()
            step = threading.Thread(target=self.step, args=(context,))
            step.start()
            step.join()
            return Finished()

        def step(self, context):
            context.points.passed("charge.before")
            context.points.passed("charge.after")
            (context.volume / "gone-on").touch()
            time.sleep(0.2)

    def main():
        run_worker(Program())

    if __name__ == "__main__":
        main()
"""


def until(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not true():
        assert time.monotonic() < deadline, f"not within {DEADLINE_SECONDS:.0f} s: {what}"
        time.sleep(0.02)


class Control:
    """Control as a process of its own, at one address through all its lives."""

    def __init__(self, dsn: str, folder: Path) -> None:
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            self._port = bound.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"
        self._dsn = dsn
        self._output = folder / "control.out"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        env = {
            **os.environ,
            "KILLPOINT_CONTROL_DATABASE_URL": self._dsn,
            "KILLPOINT_SIGNING_KEY": KEY,
            "KILLPOINT_CONTROL_HOST": "127.0.0.1",
            "KILLPOINT_CONTROL_PORT": str(self._port),
        }
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-c", textwrap.dedent(CONTROL)], env=env, stdout=output, stderr=output
            )
        until(self._is_ready, "control is ready")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(DEADLINE_SECONDS)
            self._process = None

    def parked(self) -> Parked | None:
        async def look() -> Parked | None:
            async with Parkings(self._dsn) as parkings:
                return (await parkings.parked([RUN])).get((RUN, ATTEMPT))

        return asyncio.run(look())

    def until_parked(self) -> None:
        until(lambda: self.parked() is not None, "the attempt is parked")

    def release(self) -> None:
        async def let_go() -> None:
            async with Parkings(self._dsn) as parkings:
                await parkings.release(RUN, ATTEMPT)

        asyncio.run(let_go())

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._output.read_text()
        try:
            return httpx.get(f"{self.url}/readyz").is_success
        except httpx.TransportError:
            return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A worker with four threads, one of which has to wait at ``charge.after``."""

    pid: int
    folder: Path

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "log").read_text().splitlines()]

    @property
    def has_gone_on(self) -> bool:
        return (self.folder / "volume" / "gone-on").exists()

    @property
    def ticks(self) -> list[str]:
        return [(self.folder / "volume" / name).read_text() for name in TICKERS]

    @property
    def states(self) -> list[str]:
        """The state of each thread, one letter."""
        return [
            next(line.split()[1] for line in (task / "status").read_text().splitlines() if line.startswith("State:"))
            for task in Path(f"/proc/{self.pid}/task").iterdir()
        ]

    @property
    def helper(self) -> int:
        """The one process that the worker has started."""
        (child,) = {
            int(child)
            for children in Path(f"/proc/{self.pid}/task").glob("*/children")
            for child in children.read_text().split()
        }
        return child

    def until_at_the_point(self) -> None:
        def is_there() -> bool:
            log = self.folder / "log"
            return log.exists() and '"charge.after"' in log.read_text()

        until(is_there, "the worker passes charge.after")

    def goes_on_ticking(self) -> bool:
        before = self.ticks
        time.sleep(0.3)
        return self.ticks != before

    def end(self) -> int:
        """The exit code, or the number of the signal below zero. Waits for it."""
        status = 0

        def is_over() -> bool:
            nonlocal status
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            return pid == self.pid

        until(is_over, "the worker ends")
        return os.waitstatus_to_exitcode(status)


def environment(folder: Path, url: str, *, do: str, token: str = TOKEN) -> dict[str, str]:
    """What a worker is given that is to ``do`` something at charge.after."""
    (folder / "volume").mkdir(exist_ok=True)
    assignment = {
        "contract": 1,
        "experiment": "e",
        "trial": "aaaa.1",
        "run": RUN,
        "tenant": "t",
        "attempt": ATTEMPT,
        "number": 1,
        "nonce": "c2f5b1a0",
        "action": "start",
        "workflow": {"name": "charge"},
        "coordinates": {"setup": "waiting"},
        "schedule": [{"point": "charge.after", "occurrence": 1, "do": do}],
    }
    return {
        "KILLPOINT_ASSIGNMENT": json.dumps(assignment),
        "KILLPOINT_CONTROL_URL": url,
        "KILLPOINT_TOKEN": token,
        "KILLPOINT_TERMINATION_LOG": str(folder / "log"),
        "KILLPOINT_VOLUME": str(folder / "volume"),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "workloads" / "worker" / "src"), str(folder)]),
        "PATH": os.environ["PATH"],
    }


def module(folder: Path) -> str:
    """The worker's program as a module in ``folder``."""
    (folder / "waiting_worker.py").write_text(textwrap.dedent(WORKER))
    return "waiting_worker"


@contextmanager
def worker(folder: Path, url: str, *, do: str, token: str = TOKEN) -> Iterator[Worker]:
    """A worker that runs, and is dead after the block."""
    command = [sys.executable, "-m", module(folder)]
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            command, env=environment(folder, url, do=do, token=token), stdout=output, stderr=output
        )
    try:
        yield Worker(pid=process.pid, folder=folder)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(DEADLINE_SECONDS)
