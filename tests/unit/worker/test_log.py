from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from killpoint.core.contract import read_termination
from killpoint_worker.log import (
    LIMIT_BYTES,
    LogSealedError,
    OutcomeTooLongError,
    PointLine,
    TerminationLog,
    fold,
    shortened,
)

names = st.from_regex(r"[a-z]{1,20}\.[a-z]{1,20}", fullmatch=True)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def open_log(path: Path) -> TerminationLog:
    return TerminationLog(path, attempt="a.0.1", nonce="n1")


def pass_all(log: TerminationLog, points: list[str]) -> None:
    counts: dict[str, int] = {}
    for point in points:
        counts[point] = counts.get(point, 0) + 1
        log.passed(point, counts[point], 1_796_056_567_262)


def test_the_header_is_there_before_anything_else_happens(tmp_path: Path) -> None:
    open_log(tmp_path / "log")
    assert lines_of(tmp_path / "log") == [{"killpoint": 1, "attempt": "a.0.1", "nonce": "n1"}]


def test_what_an_earlier_attempt_left_is_gone(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("of another attempt\n" * 10)
    open_log(tmp_path / "log")
    assert len(lines_of(tmp_path / "log")) == 1


def test_a_line_is_in_the_file_when_the_call_returns(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    log.passed("charge.before", 1, 5)
    assert lines_of(tmp_path / "log")[-1] == {"point": "charge.before", "n": 1, "t": 5}


@given(points=st.lists(names, min_size=1, max_size=300), repeat=st.integers(1, 8))
def test_however_many_points_are_passed_the_log_is_small_readable_and_counts_them_all(
    tmp_path_factory: pytest.TempPathFactory, points: list[str], repeat: int
) -> None:
    path = tmp_path_factory.mktemp("log") / "log"
    passings = points * repeat
    log = open_log(path)
    pass_all(log, passings)
    assert path.stat().st_size <= LIMIT_BYTES
    log.outcome({"outcome": "failed", "error": {"class": "KeyError", "message": "x" * 5000}})
    assert path.stat().st_size <= LIMIT_BYTES
    reading = read_termination(path.read_text(encoding="utf-8"), attempt="a.0.1", nonce="n1")
    assert reading.fault is None
    named = [passed for passed in reading.points if passed.point != "*"]
    assert len(named) + reading.points_left_out == len(passings)
    assert named[-1].point == passings[-1]
    assert named[-1].occurrence == passings.count(passings[-1])


def test_a_loop_keeps_its_first_and_its_last_passing(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    pass_all(log, ["prepare.before", *["poll.before"] * 500])
    points = lines_of(tmp_path / "log")[1:]
    assert points[0]["point"] == "prepare.before"
    polls = [line for line in points if line["point"] == "poll.before"]
    assert polls[0]["n"] == 1
    assert polls[-1]["n"] == 500
    assert sum(1 + line.get("folded", 0) for line in polls) == 500


@given(
    lines=st.lists(st.builds(PointLine, names, st.integers(1, 999), st.none(), st.integers(0, 99)), max_size=80),
    room=st.integers(0, 3000),
)
def test_folding_loses_no_count(lines: list[PointLine], room: int) -> None:
    folded = fold(lines, room)
    before = sum(1 + line.folded for line in lines)
    assert sum(line.folded + (line.point != "*") for line in folded) == before
    assert sum(len(line.encode()) for line in folded) <= max(room, len('{"point":"*","folded":99999}\n'))


def test_a_long_error_is_cut_and_the_points_stay(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    pass_all(log, ["charge.before", "charge.after"])
    log.outcome({"outcome": "failed", "error": {"class": "ValueError", "message": "ü" * 10_000}})
    lines = lines_of(tmp_path / "log")
    assert [line.get("point") for line in lines[1:3]] == ["charge.before", "charge.after"]
    assert lines[-1]["error"]["message"].endswith("…")


def test_an_error_of_undecodable_bytes_is_still_json(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    log.outcome(
        {"outcome": "failed", "error": {"class": "OSError", "message": b"\xff".decode(errors="surrogateescape")}}
    )
    assert lines_of(tmp_path / "log")[-1]["outcome"] == "failed"


def test_claims_that_do_not_fit_are_left_out_as_a_whole() -> None:
    claims = [{"action": "charge", "order": f"order-{number}", "effect": "ch_1"} for number in range(200)]
    document = json.loads(shortened({"outcome": "finished", "claims": claims}, 1000))
    assert document == {"outcome": "finished", "claimsLeftOut": 200}


def test_an_outcome_in_which_nothing_may_be_cut_is_refused() -> None:
    with pytest.raises(OutcomeTooLongError, match="describe fewer"):
        shortened({"outcome": "described", "points": ["x" * 60] * 60}, 1000)


def test_nothing_is_written_after_the_outcome(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    log.outcome({"outcome": "finished"})
    with pytest.raises(LogSealedError):
        log.passed("charge.before", 1, 0)
    with pytest.raises(LogSealedError):
        log.outcome({"outcome": "finished"})
    assert lines_of(tmp_path / "log")[-1] == {"outcome": "finished"}


ENDLESS = """
    import sys
    from pathlib import Path
    from killpoint_worker.log import TerminationLog
    log = TerminationLog(Path(sys.argv[1]), attempt="a.0.1", nonce="n1")
    print("ready", flush=True)
    n = 0
    while True:
        n += 1
        for point in ("poll.before", "poll.sent", "poll.after"):
            log.passed(point, n, 1796056567262)
"""


def test_killed_at_any_instant_of_a_loop_it_leaves_a_readable_log(tmp_path: Path) -> None:
    draw = random.Random(7)
    for number in range(12):
        path = tmp_path / f"log-{number}"
        with subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(ENDLESS), str(path)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(draw.random() * 0.03)
            process.send_signal(signal.SIGKILL)
        reading = read_termination(path.read_text(encoding="utf-8"), attempt="a.0.1", nonce="n1")
        assert reading.fault is None
        assert reading.header
        assert path.stat().st_size <= LIMIT_BYTES
