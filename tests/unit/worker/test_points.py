from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import NoReturn

import pytest

from killpoint_worker import AssignmentError, Points, Scheduled, TerminationLog


class Parked:
    """Control that answers at once, and remembers what it was asked."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.asked: list[tuple[str, int]] = []

    def park(self, point: str, occurrence: int) -> str:
        self.asked.append((point, occurrence))
        return self.answer


class Died(BaseException):
    """Stands in for the end of the process."""


def die() -> NoReturn:
    raise Died


def points_at(path: Path, *schedule: Scheduled, parking: Parked | None = None) -> Points:
    log = TerminationLog(path, attempt="a.0.1", nonce="n1")
    return Points(log, schedule, parking=parking, die=die)


def passed_in(path: Path) -> list[tuple[str, int]]:
    lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    return [(line["point"], line["n"]) for line in lines]


def test_each_passing_has_its_number(tmp_path: Path) -> None:
    points = points_at(tmp_path / "log")
    for point in ("charge.before", "charge.after", "charge.before"):
        points.passed(point)
    assert passed_in(tmp_path / "log") == [("charge.before", 1), ("charge.after", 1), ("charge.before", 2)]


def test_it_dies_at_the_scheduled_passing_and_the_line_is_written(tmp_path: Path) -> None:
    points = points_at(tmp_path / "log", Scheduled(point="charge.after", occurrence=2, do="die"))
    points.passed("charge.after")
    with pytest.raises(Died):
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


def test_a_schedule_that_parks_needs_somebody_to_ask(tmp_path: Path) -> None:
    with pytest.raises(AssignmentError, match="KILLPOINT_CONTROL_URL"):
        points_at(tmp_path / "log", Scheduled(point="charge.after", occurrence=1, do="park"))


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
