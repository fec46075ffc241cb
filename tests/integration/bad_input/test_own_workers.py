"""Workers of the user's own that do not keep to the contract: each says what is wrong with it, and nothing passes."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.integration.runs import rig
from tests.integration.runs.rig import Command, Ended

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SH = {
    "talks-rubbish": r"""printf 'hello\000there\n' >>"$KILLPOINT_TERMINATION_LOG" """,
    "talks-json-rubbish": r"""
        nonce=$(printf %s "$KILLPOINT_ASSIGNMENT" | sed 's/.*"nonce":"\([^"]*\)".*/\1/')
        attempt=$(printf %s "$KILLPOINT_ASSIGNMENT" | sed 's/.*"attempt":"\([^"]*\)".*/\1/')
        printf '{"killpoint":1,"attempt":"%s","nonce":"%s"}\n' "$attempt" "$nonce" >>"$KILLPOINT_TERMINATION_LOG"
        printf '{"outcome":"failed","error":{"class":"E\\u0000\\ud800","message":"no \\u0000 good"}}\n' \
            >>"$KILLPOINT_TERMINATION_LOG"
        exit 1""",
    "hangs": "sleep 60",
    "dies-at-once": "echo 'cannot start: no flux' >&2; printf '\\000\\377' >&2; exit 9",
    "is-killed": "kill -KILL $$",
    "says-anothers-nonce": """
        printf '{"killpoint":1,"attempt":"00000000.1.1","nonce":"0123456789abcdef"}\\n' >>"$KILLPOINT_TERMINATION_LOG"
        """,
}
"""Shell scripts, by the name of their setup."""
COMMANDS = {"is-not-there": ["./nowhere"], "is-no-program": ["bad.yaml"]}
FOUND = {
    "talks-rubbish": "line 1 of the termination log: not JSON",
    "talks-json-rubbish": "no \N{REPLACEMENT CHARACTER} good",
    "hangs": "it was past its deadline and was killed by the harness",
    "dies-at-once": (
        "it ended with exit 9 without a line in its termination log; its output ends with: cannot start: no flux"
    ),
    "is-killed": "it ended with exit code 137 and no outcome",
    "says-anothers-nonce": "another attempt's header (attempt or nonce differs)",
    "is-not-there": "No such file or directory",
    "is-no-program": "Permission denied",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One run with all of them, beside a good one."""

    ended: Ended
    controls: Mapping[str, dict[str, Any]]
    """By setup: its only control trial, as stored."""


@pytest.fixture(scope="module")
def ran(on_dsn: Command, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("own")
    for name, script in SH.items():
        (folder / f"{name}.sh").write_text(script)
    (folder / "bad.yaml").write_text("no program\n")
    commands = {**{name: ["sh", f"{name}.sh"] for name in SH}, **COMMANDS}
    good = ["sh", str(rig.ROOT / "workloads" / "shell" / "worker.sh")]
    file = rig.experiment(
        "own",
        folder,
        workers=[_worker(name, command) for name, command in {"good": good, **commands}.items()],
        matrix={
            "setup": ["good", *commands],
            "store": ["volume"],
            "key": ["stable"],
            "kill": [{"at": ["charge.after"]}],
        },
        trials=1,
        limits={"startupSeconds": 3, "inconclusiveRetries": 1},
    )
    command = Command(home=folder / "home", cache=on_dsn.cache, scratch=folder, further=on_dsn.further)
    ended = command("run", file, "-o", "json")
    # Not 4: one of them says itself, and in good form, that it failed.
    assert ended.code == 1, f"{ended.out[-2000:]}\n{ended.err[-3000:]}"
    evidence = json.loads((command.newest_run() / "evidence.json").read_text())
    return Ran(
        ended=ended,
        controls={
            trial["evidence"]["coordinates"]["setup"]: trial
            for trial in evidence["trials"]
            if not trial["evidence"]["coordinates"]["kill"]["at"]
        },
    )


def _worker(name: str, command: list[str]) -> dict[str, Any]:
    points = ["charge.before", "charge.after", "charge.recorded"]
    return {"setup": name, "command": command, "points": points, "stores": ["volume"], "keys": ["stable"]}


@pytest.mark.parametrize("setup", FOUND)
def test_what_is_wrong_is_said(ran: Ran, setup: str) -> None:
    [worst, *_] = ran.controls[setup]["judgement"]["findings"]
    reasons = [finding["reason"] for finding in ran.controls[setup]["judgement"]["findings"]]
    assert any(FOUND[setup] in reason for reason in reasons), reasons
    assert worst["verdict"] in {"inconclusive", "stranded"}


def test_nothing_is_killed_where_nothing_works(ran: Ran) -> None:
    for coordinates, cell in ran.ended.cells().items():
        if coordinates[0] not in {"good", "talks-json-rubbish"} and not cell["control"]:
            assert cell["reasons"] == ["not run: its control came to no conclusion"]


def test_beside_them_the_good_one_passes(ran: Ran) -> None:
    assert {cell["met"] for coordinates, cell in ran.ended.cells().items() if coordinates[0] == "good"} == {"True"}


def test_no_traceback_and_one_result(ran: Ran) -> None:
    assert "Traceback" not in ran.ended.err
    assert ran.ended.status["result"] == "Fail"
    assert sys.getsizeof(ran.ended.out) < 100 * 1024
