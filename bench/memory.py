"""How much memory the operator takes over ten thousand trials, and how much faster it is with few behind it.

The operator is the real one, a process of its own, with a real Postgres for its journal; the API server, the pods and
payments are simulated (`bench.simulated`), so that what is measured is the operator and not the machine's pods.

    python -m bench.memory [--trials 10000] [--parallelism 16] [--json]

The run has to pass, with every kill confirmed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.simulated import Simulated, kubeconfig_of, served
from killpoint.local.embedded import embedded_postgres
from killpoint.local.home import Home

AIM_MEBIBYTES = 150
MARKS = (1_000, 5_000, 10_000)
SECONDS_MAX = 3600.0
NAMESPACE = "bench"
SETTLE_SECONDS = 2.0
CELLS = 8
"""With a kill at each of the points, and a control, each."""
POINTS = ("charge.before", "charge.after")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The operator's memory when so many trials were over."""

    trials: int
    seconds: float
    mebibytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One run."""

    marks: tuple[Mark, ...]
    """From the operator's start to after the run's end."""
    peak_mebibytes: float
    writes_per_trial: float
    status_bytes: int


def experiment(name: str, *, trials: int, parallelism: int) -> dict[str, Any]:
    """Cells in which each resume charges again, as expected, each with its control. ``trials``: of all together."""
    layouts = [f"layout-{number}" for number in range(CELLS)]
    worker = {
        "setup": "tiny",
        "image": "simulated",
        "command": ["simulated"],
        "stores": ["postgres"],
        "keys": ["none"],
        "points": ["charge.before", "charge.after"],
        "parameters": {"layout": layouts},
    }
    return {
        "apiVersion": "killpoint.dev/v1alpha1",
        "kind": "CrashExperiment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "workers": [worker],
            "matrix": {
                "setup": ["tiny"],
                "key": ["none"],
                "kill": [{"at": [point]} for point in POINTS],
                "parameters": {"layout": layouts},
            },
            "trials": trials // (CELLS * len(POINTS)),
            "parallelism": parallelism,
            "limits": {"trials": trials + CELLS, "deadlineSeconds": 7200},
            "expect": [{"where": {"kill": ["charge.after"]}, "verdict": ["duplicate"], "effects": {"charge": 2}}],
        },
    }


@asynccontextmanager
async def operated(cluster: Simulated, folder: Path, **settings: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """The operator, with a simulated cluster and a real Postgres of its own."""
    home = Home(state=folder / "state", cache=folder / "cache")
    async with embedded_postgres(home, durable=False) as server, served(cluster) as address:
        config = folder / "kubeconfig"
        config.write_text(json.dumps(kubeconfig_of(address)))
        with (folder / "operator.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "killpoint.controller",
                env={
                    "PATH": os.environ["PATH"],
                    "HOME": str(folder),
                    "KUBECONFIG": str(config),
                    "KILLPOINT_DATABASE_URL": server.admin,
                    "KILLPOINT_SIGNING_KEY": secrets.token_hex(16),
                    "KILLPOINT_PAYMENTS_URL": address,
                    "KILLPOINT_PAYMENTS_ADMIN_URL": address,
                    "KILLPOINT_PAYMENTS_ADMIN_TOKEN": "simulated",
                    "KILLPOINT_IMAGES": json.dumps({"langgraph": "simulated"}),
                    "KILLPOINT_NAMESPACES": NAMESPACE,
                    "KILLPOINT_POD_NAMESPACE": NAMESPACE,
                    "KILLPOINT_PROBES_PORT": "0",
                    "KILLPOINT_LOG_LEVEL": "WARNING",
                    **settings,
                },
                stdout=log,
                stderr=log,
            )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()


async def measure(*, trials: int, parallelism: int) -> Measured:
    """Run an experiment to its end."""
    cluster = Simulated()
    with _folder() as folder:
        async with operated(cluster, folder) as operator:
            await _until(lambda: bool(cluster.objects.get("leases")), operator, folder)
            await asyncio.sleep(SETTLE_SECONDS)
            marks = [Mark(trials=0, seconds=0.0, mebibytes=_mebibytes(operator.pid, "VmRSS"))]
            began = time.monotonic()
            cluster.make("crashexperiments", experiment("memory", trials=trials, parallelism=parallelism))
            for mark in sorted({*(mark for mark in MARKS if mark < trials), trials}):
                await _until(partial(_is_at, cluster, mark), operator, folder)
                marks.append(_mark(mark, began, operator.pid))
            await _until(lambda: _status(cluster).get("phase") == "Complete", operator, folder)
            marks.append(_mark(trials, began, operator.pid))
            status = _status(cluster)
            if status["result"] != "Pass" or status["kills"]["confirmed"] != status["kills"]["planned"] < trials / 2:
                raise SystemExit(f"the run did not pass: {json.dumps(status)[:2000]}")
            return Measured(
                marks=tuple(marks),
                peak_mebibytes=_mebibytes(operator.pid, "VmHWM"),
                writes_per_trial=sum(cluster.writes.values()) / trials,
                status_bytes=len(json.dumps(status)),
            )


@contextmanager
def _folder() -> Iterator[Path]:
    """One that every user can enter, as the embedded Postgres needs it when root runs this."""
    with tempfile.TemporaryDirectory(prefix="killpoint-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def _is_at(cluster: Simulated, trials: int) -> bool:
    """Whether so many trials are over, or all of the run."""
    return cluster.freed >= trials or _status(cluster).get("phase") == "Complete"


def _status(cluster: Simulated) -> dict[str, Any]:
    status: dict[str, Any] = cluster.find("crashexperiments", NAMESPACE, "memory").get("status", {})
    return status


def _mark(trials: int, began: float, process: int) -> Mark:
    return Mark(trials=trials, seconds=time.monotonic() - began, mebibytes=_mebibytes(process, "VmRSS"))


async def _until(condition: Callable[[], bool], operator: asyncio.subprocess.Process, folder: Path) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        if operator.returncode is not None or time.monotonic() > deadline:
            raise SystemExit(f"the operator does not get on:\n{(folder / 'operator.log').read_text()[-3000:]}")
        await asyncio.sleep(0.05)


def _mebibytes(process: int, name: str) -> float:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise SystemExit(f"/proc/{process}/status has no {name}")


def _table(done: Measured) -> Iterator[str]:
    yield f"{'trials over':>12} {'seconds':>9} {'operator, MiB':>14}"
    for mark in done.marks:
        yield f"{mark.trials:>12,} {mark.seconds:>9.0f} {mark.mebibytes:>14.0f}"
    yield f"{'peak':>12} {'':>9} {done.peak_mebibytes:>14.0f}"
    grown = done.marks[-2].mebibytes - done.marks[1].mebibytes
    yield f"grown by {grown:.0f} MiB from {done.marks[1].trials:,} to {done.marks[-2].trials:,} trials"
    yield f"requests that change something, at the simulated API server: {done.writes_per_trial:.1f} a trial"
    yield f"the status at the end: {done.status_bytes / 1024:.1f} KiB"
    met = "met" if done.peak_mebibytes <= AIM_MEBIBYTES else "MISSED"
    yield f"aim: at most {AIM_MEBIBYTES} MiB at any time: {met}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="The operator's memory over thousands of trials.")
    parser.add_argument("--trials", type=int, default=10_000, choices=range(10, 100_001), metavar="10-100000")
    parser.add_argument("--parallelism", type=int, default=16, choices=range(1, 65), metavar="1-64")
    parser.add_argument("--json", action="store_true", help="the result as JSON")
    options = parser.parse_args(arguments)
    done = asyncio.run(measure(trials=options.trials, parallelism=options.parallelism))
    print(json.dumps(asdict(done), indent=2) if options.json else "\n".join(_table(done)))


if __name__ == "__main__":
    main()
