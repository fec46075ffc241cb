"""Tests of the tester: workers that are broken on purpose, as real processes. Each flaw is caught, and named.

All of them are cells of one experiment, which runs once, with the real command, beside a worker without a flaw.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from killpoint.local.home import Home
from tests.integration.runs import rig
from tests.integration.runs.rig import Command, Ended

pytestmark = [pytest.mark.mutation, pytest.mark.slow]

FLAWED = Path(__file__).with_name("flawed_worker.py")
KILLS = ("charge.before", "charge.after", "charge.recorded")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """What is wrong with a worker, where it is killed, and what has to be found."""

    name: str
    at: str
    verdict: str
    cause: str | None = None
    words: str


FLAWS = (
    Flaw(
        name="never-dies",
        at="charge.after",
        verdict="inconclusive",
        cause="not-killed",
        words="attempt 1 passed charge.after, but was not killed there",
    ),
    Flaw(
        name="leaves-instead",
        at="charge.after",
        verdict="inconclusive",
        cause="worker",
        words="attempt 1: it ended with exit 0 without an outcome",
    ),
    Flaw(
        name="dies-elsewhere",
        at="charge.after",
        verdict="inconclusive",
        cause="infrastructure",
        words="not at charge.after as planned",
    ),
    Flaw(
        name="dies-without-a-line",
        at="charge.after",
        verdict="inconclusive",
        cause="infrastructure",
        words="not at charge.after as planned",
    ),
    Flaw(
        name="says-before-too-late",
        at="charge.before",
        verdict="inconclusive",
        cause="point-false",
        words="died at charge.before, but that was not true: payments holds 1 request of this attempt",
    ),
    Flaw(
        name="says-after-too-early",
        at="charge.after",
        verdict="inconclusive",
        cause="point-false",
        words="died at charge.after, but that was not true: payments answered no request of this attempt",
    ),
    Flaw(
        name="says-recorded-too-early",
        at="charge.recorded",
        verdict="inconclusive",
        cause="point-false",
        words="died at charge.recorded, but that was not true: the store does not hold the result of charge",
    ),
    Flaw(
        name="does-not-look",
        at="charge.recorded",
        verdict="inconclusive",
        cause="point-unknown",
        words="the look into the store failed",
    ),
    Flaw(
        name="says-another-nonce",
        at="charge.after",
        verdict="inconclusive",
        cause="worker",
        words="another attempt's header (attempt or nonce differs)",
    ),
    Flaw(
        name="says-another-attempt",
        at="charge.after",
        verdict="inconclusive",
        cause="worker",
        words="another attempt's header (attempt or nonce differs)",
    ),
    Flaw(
        name="talks-rubbish",
        at="charge.after",
        verdict="inconclusive",
        cause="worker",
        words="line 2 of the termination log: not JSON",
    ),
    Flaw(
        name="says-nothing-at-its-end",
        at="charge.after",
        verdict="inconclusive",
        cause="worker",
        words="attempt 2: it ended with exit 0 without an outcome",
    ),
    Flaw(
        name="hangs",
        at="charge.after",
        verdict="stranded",
        words="it was past its deadline and was killed by the harness",
    ),
    Flaw(name="charges-twice", at="charge.before", verdict="duplicate", words="stands 2 times"),
    Flaw(
        name="leaves-a-child",
        at="charge.before",
        verdict="exactly-once",
        words="each ordered operation stands once, and the run finished",
    ),
    Flaw(name="charges-another-amount", at="charge.before", verdict="wrong-payload", words=" EUR instead of "),
    Flaw(
        name="charges-another-amount-under-its-key",
        at="charge.after",
        verdict="stranded",
        words="PaymentsRefused: payments refused with 422 idempotency-key-reused",
    ),
    Flaw(name="charges-another-order", at="charge.before", verdict="wrong-payload", words="which was not ordered"),
    Flaw(
        name="borrows-a-token",
        at="charge.before",
        verdict="lost",
        words="the run says finished, but there is no charge of",
    ),
    Flaw(
        name="forgets-to-finalize",
        at="charge.after",
        verdict="lost",
        words="the run says finished, but there is no finalize of",
    ),
    Flaw(
        name="claims-another-effect",
        at="charge.after",
        verdict="divergent",
        words="attempt 2 claims charge ch_invented; the ledger has ch_",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caught:
    """What the run came to: for each flaw and kill, the one trial of the cell."""

    ended: Ended
    trials: Mapping[tuple[str, str], dict[str, Any]]

    def findings(self, flaw: str, kill: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.trials[flaw, kill]["judgement"]["findings"]
        return found


@pytest.fixture(scope="module")
def caught(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caught]:
    scratch = tmp_path_factory.mktemp("flawed")
    with rig.new_home() as folder:
        command = Command(home=folder / "state", cache=Home.from_environment(os.environ).cache, scratch=scratch)
        ended = command("run", _experiment(scratch), "-o", "json")
        assert ended.code in {0, 1, 4}, ended.err
        evidence = json.loads((command.newest_run() / "evidence.json").read_text())
        yield Caught(ended=ended, trials={_place(trial): trial for trial in evidence["trials"]})


def _experiment(folder: Path) -> Path:
    """A setup for each few flaws that are killed at the same point: an axis has no more than eight values."""
    groups = {f"flawed-{number}": group for number, group in enumerate(_groups(), start=1)}
    return rig.experiment(
        "flawed",
        folder,
        workers=[
            _worker("flawless", ["none"]),
            *(_worker(setup, [flaw.name for flaw in flaws]) for setup, flaws in groups.items()),
        ],
        matrix={
            **_block("flawless", ["none"], *KILLS),
            "include": [_block(setup, [flaw.name for flaw in flaws], flaws[0].at) for setup, flaws in groups.items()],
        },
        trials=1,
        limits={"attemptSeconds": 8, "startupSeconds": 8, "inconclusiveRetries": 1},
    )


def _groups() -> Iterator[tuple[Flaw, ...]]:
    for kill in KILLS:
        yield from _batched([flaw for flaw in FLAWS if flaw.at == kill], 8)


def _batched(flaws: list[Flaw], most: int) -> Iterator[tuple[Flaw, ...]]:
    for start in range(0, len(flaws), most):
        yield tuple(flaws[start : start + most])


def _worker(setup: str, flaws: list[str]) -> dict[str, Any]:
    return {
        "setup": setup,
        "command": [sys.executable, str(FLAWED)],
        "points": list(KILLS),
        "stores": ["volume"],
        "keys": ["stable"],
        "parameters": {"flaw": flaws},
    }


def _block(setup: str, flaws: list[str], *at: str) -> dict[str, Any]:
    return {
        "setup": [setup],
        "store": ["volume"],
        "key": ["stable"],
        "parameters": {"flaw": flaws},
        "kill": [{"at": [point]} for point in at],
    }


def _place(trial: dict[str, Any]) -> tuple[str, str]:
    coordinates = trial["evidence"]["coordinates"]
    flaw = dict(coordinates["parameters"]).get("flaw", "none")
    return flaw, "+".join(coordinates["kill"]["at"]) or "none"


@pytest.mark.parametrize("kill", ["none", *KILLS])
def test_a_worker_without_a_flaw_passes(caught: Caught, kill: str) -> None:
    assert [finding["verdict"] for finding in caught.findings("none", kill)] == ["exactly-once"]


@pytest.mark.parametrize("flaw", FLAWS, ids=lambda flaw: flaw.name)
def test_a_flaw_is_caught_by_its_name(caught: Caught, flaw: Flaw) -> None:
    [worst, *others] = caught.findings(flaw.name, flaw.at)
    matching = [
        finding
        for finding in (worst, *others)
        if finding["verdict"] == flaw.verdict and flaw.words in finding["reason"]
    ]
    assert matching, f"found instead: {worst}, {others}"
    assert worst["verdict"] == flaw.verdict
    assert flaw.cause is None or flaw.cause in {finding["cause"] for finding in matching}


@pytest.mark.parametrize("flaw", FLAWS, ids=lambda flaw: flaw.name)
def test_its_control_shows_that_the_flaw_was_not_there_all_along(caught: Caught, flaw: Flaw) -> None:
    """But for the control whose token was borrowed: what lands on its run is found there, after its judgement."""
    verdicts = [finding["verdict"] for finding in caught.findings(flaw.name, "none")]
    assert verdicts[0] == ("wrong-payload" if flaw.name == "borrows-a-token" else "exactly-once")


def test_the_whole_of_it_fails(caught: Caught) -> None:
    assert caught.ended.code == 1
    met = {
        cell["coordinates"].get("flaw", "none"): cell["met"]
        for cell in caught.ended.status["cells"]
        if not cell["control"]
    }
    assert met.pop("none") == "True"
    assert met.pop("leaves-a-child") == "True", "the child was ended with its attempt, before it could charge"
    assert "True" not in met.values()
