from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from killpoint_worker import AssignmentError, Points, Scheduled, TerminationLog
from killpoint_worker.assignment import Do
from killpoint_worker.control import ControlRefused
from killpoint_worker.points import Freezing, Parking


class Parked:
    """Control that answers at once, and remembers what it was asked."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.asked: list[tuple[str, int]] = []

    def park(self, point: str, occurrence: int) -> str:
        self.asked.append((point, occurrence))
        return self.answer


class Refusing:
    """Control that refuses."""

    def park(self, point: str, occurrence: int) -> str:
        raise ControlRefused(f"nobody may wait at {point} for the {occurrence}. time")

    def freeze(self, point: str, occurrence: int) -> None:
        self.park(point, occurrence)


class Frozen:
    """A freeze that is over at once; it remembers what the log said at the time, and whether others could write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seen: list[tuple[str, int]] = []
        self.write: Callable[[], None] = lambda: None

    def freeze(self, point: str, occurrence: int) -> None:
        assert (point, occurrence) == ("charge.after", 1)
        other = threading.Thread(target=self.write)
        other.start()
        other.join(0.1)
        self.seen = passed_in(self.path)


class Died(BaseException):
    """Stands in for the end of the process."""


def end_by(word: str) -> Callable[[], NoReturn]:
    def end() -> NoReturn:
        raise Died(word)

    return end


ENDS = {word: end_by(word) for word in ("die", "exit", "out-of-memory")}


def leave(code: int) -> NoReturn:
    raise Died(code)


def points_at(
    path: Path, *schedule: Scheduled, parking: Parking | None = None, freezing: Freezing | None = None
) -> Points:
    log = TerminationLog(path, attempt="a.0.1", nonce="n1")
    return Points(log, schedule, parking=parking, freezing=freezing, ends=ENDS, leave=leave)


def passed_in(path: Path) -> list[tuple[str, int]]:
    lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    return [(line["point"], line["n"]) for line in lines]


def test_each_passing_has_its_number(tmp_path: Path) -> None:
    points = points_at(tmp_path / "log")
    for point in ("charge.before", "charge.after", "charge.before"):
        points.passed(point)
    assert passed_in(tmp_path / "log") == [("charge.before", 1), ("charge.after", 1), ("charge.before", 2)]


@pytest.mark.parametrize("do", ["die", "exit", "out-of-memory"])
def test_it_ends_at_the_scheduled_passing_as_ordered_and_the_line_is_written(tmp_path: Path, do: Do) -> None:
    points = points_at(tmp_path / "log", Scheduled(point="charge.after", occurrence=2, do=do))
    points.passed("charge.after")
    with pytest.raises(Died, match=do):
        points.passed("charge.after")
    assert passed_in(tmp_path / "log")[-1] == ("charge.after", 2)


def test_parked_it_asks_and_goes_on(tmp_path: Path) -> None:
    parking = Parked("go")
    points = points_at(tmp_path / "log", Scheduled(point="charge.after", occurrence=1, do="park"), parking=parking)
    points.passed("charge.after")
    assert parking.asked == [("charge.after", 1)]
    assert passed_in(tmp_path / "log") == [("charge.after", 1)]


def test_parked_it_dies_when_it_is_told_to(tmp_path: Path) -> None:
    points = points_at(
        tmp_path / "log", Scheduled(point="charge.after", occurrence=1, do="park"), parking=Parked("die")
    )
    with pytest.raises(Died):
        points.passed("charge.after")


@pytest.mark.parametrize("do", ["park", "freeze"])
def test_a_schedule_that_waits_needs_somebody_to_ask(tmp_path: Path, do: Do) -> None:
    with pytest.raises(AssignmentError, match="KILLPOINT_CONTROL_URL"):
        points_at(tmp_path / "log", Scheduled(point="charge.after", occurrence=1, do=do))


def test_a_schedule_freezes_at_most_once(tmp_path: Path) -> None:
    twice = [Scheduled(point="charge.after", occurrence=number, do="freeze") for number in (1, 2)]
    with pytest.raises(AssignmentError, match="freezes twice"):
        points_at(tmp_path / "log", *twice, freezing=Refusing())


@pytest.mark.parametrize("do", ["park", "freeze"])
def test_an_attempt_that_may_not_wait_fails_at_the_point_before_the_framework_hears_of_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], do: Do
) -> None:
    refusing = Refusing()
    at = Scheduled(point="charge.after", occurrence=1, do=do)
    points = points_at(tmp_path / "log", at, parking=refusing, freezing=refusing)
    with pytest.raises(Died, match="1"):
        points.passed("charge.after")
    last = json.loads((tmp_path / "log").read_text().splitlines()[-1])
    assert last["outcome"] == "failed"
    assert last["error"]["class"] == "ControlRefused"
    assert "charge.after" in capfd.readouterr().err


def test_no_line_is_written_between_the_points_and_the_end_of_a_freeze(tmp_path: Path) -> None:
    frozen = Frozen(tmp_path / "log")
    points = points_at(tmp_path / "log", Scheduled(point="charge.after", occurrence=1, do="freeze"), freezing=frozen)
    frozen.write = lambda: points.passed("poll.before")
    points.passed("charge.after")
    assert frozen.seen == [("charge.after", 1)]


@pytest.mark.parametrize(
    "name", ["charge", "Charge.before", "charge before", "*", "charge.", ".before", "c." + "x" * 70]
)
def test_a_name_that_is_no_point_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="no name for a point"):
        points_at(tmp_path / "log").passed(name)


def test_points_of_several_threads_are_all_counted(tmp_path: Path) -> None:
    points = points_at(tmp_path / "log")

    def pass_fifty() -> None:
        for _ in range(50):
            points.passed("poll.before")

    threads = [threading.Thread(target=pass_fifty) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert passed_in(tmp_path / "log")[-1] == ("poll.before", 200)


CROWD = """
    import sys, threading
    from pathlib import Path
    from killpoint_worker import Points, Scheduled, TerminationLog
    log = TerminationLog(Path(sys.argv[1]), attempt="a.0.1", nonce="n1")
    points = Points(log, (Scheduled(point="charge.after", occurrence=30, do="die"),))
    def pass_on(name):
        while True:
            points.passed(name)
    for name in ("poll.before", "charge.after", "poll.after", "poll.sent"):
        threading.Thread(target=pass_on, args=(name,)).start()
"""


def test_killed_for_real_no_other_thread_writes_after_the_point(tmp_path: Path) -> None:
    for number in range(8):
        path = tmp_path / f"log-{number}"
        ended = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(CROWD), str(path)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            timeout=60,
            check=False,
        )
        assert ended.returncode == -9
        last = json.loads(path.read_text().splitlines()[-1])
        assert (last["point"], last["n"]) == ("charge.after", 30)
