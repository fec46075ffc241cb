from __future__ import annotations

import json
from pathlib import Path

import pytest

from killpoint.local.attempts import AttemptFolder, Ended, Launched, ended_of
from killpoint.local.processes import Process
from killpoint.model.evidence import EndReason

HEADER = json.dumps({"killpoint": 1, "attempt": "a.1.1", "nonce": "n"})
POINT = json.dumps({"point": "charge.before"})
OUTCOME = json.dumps({"outcome": "finished"})
LAUNCHED = Launched(nonce="n", process=Process(pid=7, birth="then"), started_ms=5)


@pytest.fixture
def attempt(tmp_path: Path) -> AttemptFolder:
    folder = AttemptFolder(name="a.1.1", folder=tmp_path / "a.1.1")
    assert folder.make("n")
    return folder


def test_an_attempt_is_laid_out_once(attempt: AttemptFolder) -> None:
    assert not attempt.make("another nonce")
    assert attempt.launched() == Launched(nonce="n")


def test_what_was_written_down_is_read_back(attempt: AttemptFolder) -> None:
    ended = Ended(reason=EndReason.SIGNALED, code=137, at_ms=9, fault="a fault")
    attempt.write_launched(LAUNCHED)
    attempt.write_ended(ended)
    assert (attempt.launched(), attempt.ended()) == (LAUNCHED, ended)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"reason": "nonsense"}'])
def test_what_was_cut_short_counts_as_not_written(attempt: AttemptFolder, text: str) -> None:
    (attempt.folder / "launched").write_text(text)
    (attempt.folder / "ended").write_text(text)
    assert attempt.launched() == Launched(nonce="")
    assert attempt.ended() is None


def test_an_attempt_without_a_folder_is_unknown(tmp_path: Path) -> None:
    assert AttemptFolder(name="a.1.1", folder=tmp_path / "a.1.1").launched() is None


@pytest.mark.parametrize(
    ("code", "signal", "killed", "reason", "exit_code"),
    [
        (0, None, False, EndReason.EXITED, 0),
        (3, None, True, EndReason.EXITED, 3),
        (None, 9, False, EndReason.SIGNALED, 137),
        (None, 9, True, EndReason.TIMED_OUT, 137),
        (None, 11, False, EndReason.SIGNALED, 139),
    ],
)
def test_an_exit_is_told_as_a_shell_shows_it(
    *, code: int | None, signal: int | None, killed: bool, reason: EndReason, exit_code: int
) -> None:
    assert ended_of(code=code, signal=signal, at_ms=1, killed=killed) == Ended(reason=reason, code=exit_code, at_ms=1)


@pytest.mark.parametrize(
    ("lines", "code", "fault"),
    [
        ([HEADER, POINT, OUTCOME], 0, None),
        ([HEADER, POINT], 1, "it ended with exit 1 without an outcome"),
        ([HEADER, POINT], 91, None),
        ([], 91, "it ended with exit 91 without a line in its termination log"),
        ([], 0, "it ended with exit 0 without a line in its termination log"),
        ([HEADER, "rubbish"], 0, "line 2 of the termination log: not JSON: 'rubbish'"),
    ],
)
def test_an_exit_that_says_too_little_is_a_fault(
    attempt: AttemptFolder, lines: list[str], code: int, fault: str | None
) -> None:
    attempt.termination_log.write_text("".join(f"{line}\n" for line in lines))
    end = attempt.end(LAUNCHED, Ended(reason=EndReason.EXITED, code=code, at_ms=9))
    assert (end.fault, end.started_ms, end.at_ms) == (fault, 5, 9)


def test_a_killed_attempt_need_say_no_more_than_its_points(attempt: AttemptFolder) -> None:
    attempt.termination_log.write_text(f"{HEADER}\n{POINT}\n")
    end = attempt.end(LAUNCHED, Ended(reason=EndReason.SIGNALED, code=137, at_ms=9))
    assert end.fault is None
    assert [passed.point for passed in end.points] == ["charge.before"]


def test_the_end_of_the_output_is_shown_with_the_fault(attempt: AttemptFolder) -> None:
    attempt.output.write_text("one\ntwo\nKeyError: 'x'\n")
    end = attempt.end(LAUNCHED, Ended(reason=EndReason.EXITED, code=1, at_ms=9))
    assert end.fault is not None
    assert "KeyError: 'x'" in end.fault
