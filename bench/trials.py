"""How many trials a second a local experiment does: forked and cold in parallel, beside one cold process after another.

Each round runs the same cells three times with the real command, so that a machine that is slow is slow for all three:
what counts is the ratio. Times are those of the trials, from the opening of the run to its end; environments, imports
of launchers and the start of the services come before.

    python -m bench.trials [--trials 1] [--rounds 1] [--parallelism 4] [--json]

Every run has to pass, and to show what the others show.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from killpoint.local.home import Home

KILLPOINT = Path(sys.executable).with_name("killpoint")
SETUPS = ("langgraph", "llamaindex", "crewai-persist", "crewai-checkpoint")
POINTS = ("charge.before", "charge.after", "charge.recorded")
SECONDS_MAX = 3600.0
AIM = 10.0
"""Forked in parallel is to be so many times as fast as cold, one after another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How trials are run."""

    name: str
    mode: str
    at_once: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The trials of one setup, run in one way."""

    setup: str
    way: str
    trials: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.trials / self.seconds


def measure(setup: str, way: Way, *, trials: int) -> Measured:
    """Run the cells of a setup in a home of their own."""
    with _home() as folder:
        file = folder / "bench.yaml"
        file.write_text(json.dumps(_experiment(setup, trials=trials, at_once=way.at_once)))
        cache = Home.from_environment(os.environ).cache
        done = subprocess.run(
            [str(KILLPOINT), "run", str(file), "--mode", way.mode, "-o", "json"],
            env={**os.environ, "KILLPOINT_HOME": str(folder / "state"), "KILLPOINT_CACHE": str(cache)},
            stdout=subprocess.PIPE,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        if done.returncode != 0:
            raise SystemExit(f"{setup}, {way.name}: exit {done.returncode}\n{done.stdout[:2000]}")
        [evidence] = (folder / "state" / "runs").glob("*/evidence.json")
        provenance: dict[str, Any] = json.loads(evidence.read_text())["provenance"]
        planned: int = json.loads(done.stdout)["trials"]["planned"]
    seconds = (provenance["ended_ms"] - provenance["started_ms"]) / 1000
    return Measured(setup=setup, way=way.name, trials=planned, seconds=seconds)


def _experiment(setup: str, *, trials: int, at_once: int) -> dict[str, Any]:
    """Cells of the crash table, where no key protects: both ways of running them have to show the same duplicates."""
    twice = ["charge.after", *(["charge.recorded"] if setup == "crewai-persist" else [])]
    return {
        "apiVersion": "killpoint.dev/v1alpha1",
        "kind": "CrashExperiment",
        "metadata": {"name": "bench"},
        "spec": {
            "matrix": {"setup": [setup], "key": ["none"], "kill": [{"at": [point]} for point in POINTS]},
            "trials": trials,
            "parallelism": at_once,
            # CrewAI's checkpoint writer spoils a few resumes in a hundred; that is no matter of speed.
            "expect": [
                {"where": {}, "verdict": ["exactly-once", "stranded"]},
                {"where": {"kill": twice}, "verdict": ["duplicate"]},
            ],
        },
    }


@contextmanager
def _home() -> Iterator[Path]:
    """A folder that every user can enter, as the embedded Postgres needs it when root runs this."""
    folder = Path(tempfile.mkdtemp(prefix="killpoint-bench-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _ratios(rounds: list[list[Measured]], ways: tuple[Way, ...]) -> dict[str, float]:
    """Way → how many times as fast it is as the first one, over all setups; the median of the rounds."""
    return {
        way.name: statistics.median(_seconds(done, ways[0].name) / _seconds(done, way.name) for done in rounds)
        for way in ways
    }


def _seconds(done: list[Measured], way: str) -> float:
    return sum(one.seconds for one in done if one.way == way)


def _table(rounds: list[list[Measured]], ways: tuple[Way, ...]) -> Iterator[str]:
    yield f"{'trials per second':<20}" + "".join(f"{way.name:>22}" for way in ways)
    for setup in dict.fromkeys(one.setup for one in rounds[0]):
        rates = (
            statistics.median(one.rate for done in rounds for one in done if (one.setup, one.way) == (setup, way.name))
            for way in ways
        )
        yield f"{setup:<20}" + "".join(f"{rate:>22.2f}" for rate in rates)
    yield f"{'all, as a ratio':<20}" + "".join(f"{ratio:>22.1f}" for ratio in _ratios(rounds, ways).values())


def main() -> None:
    parser = argparse.ArgumentParser(description="Trials per second, forked and cold.")
    parser.add_argument("--trials", type=int, default=1, choices=range(1, 101), metavar="1-100", help="of each cell")
    parser.add_argument("--rounds", type=int, default=1, choices=range(1, 21), metavar="1-20")
    parser.add_argument("--parallelism", type=int, default=4, choices=range(1, 65), metavar="1-64")
    parser.add_argument("--json", action="store_true", help="the result as JSON")
    options = parser.parse_args()
    ways = (
        Way(name="cold, one by one", mode="cold", at_once=1),
        Way(name="cold, in parallel", mode="cold", at_once=options.parallelism),
        Way(name="forked, in parallel", mode="fork", at_once=options.parallelism),
    )
    rounds = [
        [measure(setup, way, trials=options.trials) for setup in SETUPS for way in ways] for _ in range(options.rounds)
    ]
    ratios = _ratios(rounds, ways)
    if options.json:
        print(json.dumps({"rounds": [[asdict(one) for one in done] for done in rounds], "ratios": ratios}, indent=2))
        return
    print("\n".join(_table(rounds, ways)))
    print(f"aim: forked, in parallel, at least {AIM:g} times as fast as cold, one by one")


if __name__ == "__main__":
    main()
