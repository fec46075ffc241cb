"""Each way to be killed, in a cluster: what it does to a run, and what the API server saw of it.

The proof is read from a watch of the test's own and from the parkings in the database, not from what killpoint says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.cluster.experiments import apply, assert_passed, completed, effects, installed
from tests.cluster.providers import Provider
from tests.cluster.watched import Seen, Watched, watching

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

SECONDS_MAX = 1200.0
KEYS = {"none": 2, "stable": 1}
"""Key → charges, whatever the kill."""
POINTS = {
    "sigkill": "charge.after",
    "exit": "charge.after",
    "out-of-memory": "charge.after",
    "delete-pod": "charge.after",
    "evict": "charge.after",
    "freeze-after": "charge.after",
    "freeze-before": "charge.before",
}
"""Kill → its point."""
PARKINGS = """
SELECT json_build_object('attempt', attempt, 'point', point, 'released', released_at IS NOT NULL) FROM parkings
"""
BY_REQUEST = {137, 143}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """The experiment at its end, with one trial of each cell."""

    status: dict[str, Any]
    watched: Watched
    parkings: dict[str, dict[str, Any]]
    """Attempt → where it was parked, and whether it was let go on."""

    def cell(self, kill: str, key: str) -> dict[str, Any]:
        wanted = {"kill": kill, "key": key}
        found: dict[str, Any]
        (found,) = (cell for cell in self.status["cells"] if wanted.items() <= cell["coordinates"].items())
        return found

    def attempt(self, kill: str, key: str, number: int) -> str:
        return f"{self.cell(kill, key)['id']}.1.{number}"

    def killed(self, kill: str, key: str) -> Seen:
        return self.watched.first_end(self.attempt(kill, key, 1))


@pytest.fixture(scope="module")
def ran(provider: Provider) -> Iterator[Ran]:
    with installed(provider) as kubectl, watching(kubectl) as watched:
        apply(kubectl, "kill-methods", trials=1)
        status = completed(kubectl, "kill-methods", seconds_max=SECONDS_MAX)
        psql = ("psql", "--username=postgres", "--dbname=killpoint_control", "--tuples-only", "--no-align")
        said = kubectl("exec", "killpoint-postgres-0", "--", *psql, f"--command={PARKINGS}")
        parkings = {found["attempt"]: found for found in map(json.loads, said.splitlines())}
        yield Ran(status=status, watched=watched, parkings=parkings)


def test_it_passes_with_every_kill_proven(ran: Ran) -> None:
    assert_passed(ran.status)
    assert ran.status["kills"]["planned"] == len(POINTS) * len(KEYS)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("kill", POINTS)
def test_only_a_key_that_survives_keeps_it_at_one_charge(ran: Ran, kill: str, key: str) -> None:
    assert effects(ran.cell(kill, key), "charge") == {KEYS[key]: 1}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    ("kill", "end"), [("sigkill", (137, "Error")), ("exit", (91, "Error")), ("out-of-memory", (137, "OOMKilled"))]
)
def test_a_worker_that_ends_itself_does_so_right_at_its_point(
    ran: Ran, kill: str, key: str, end: tuple[int, str]
) -> None:
    seen = ran.killed(kill, key)
    assert (seen.terminated["exitCode"], seen.terminated["reason"]) == end
    assert seen.points[-1] == POINTS[kill]
    assert "deletionTimestamp" not in seen.pod["metadata"], "nobody had asked for it"
    assert ran.attempt(kill, key, 1) not in ran.parkings


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(("kill", "disruption"), [("delete-pod", None), ("evict", "EvictionByEvictionAPI")])
def test_a_worker_that_is_ended_from_outside_waits_at_its_point_and_goes_as_it_was_asked_to(
    ran: Ran, kill: str, key: str, disruption: str | None
) -> None:
    seen = ran.killed(kill, key)
    assert seen.terminated["exitCode"] in BY_REQUEST
    assert POINTS[kill] in seen.points
    assert "deletionTimestamp" in seen.pod["metadata"]
    assert seen.disruption == disruption
    assert seen.killed_by == kill
    parking = ran.parkings[ran.attempt(kill, key, 1)]
    assert (parking["point"], parking["released"]) == (POINTS[kill], False)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("kill", ["freeze-after", "freeze-before"])
def test_a_frozen_worker_wakes_after_another_one_has_ended_the_run(ran: Ran, kill: str, key: str) -> None:
    frozen, other = (ran.watched.first_end(ran.attempt(kill, key, number)) for number in (1, 2))
    assert other.terminated["exitCode"] == 0
    assert frozen.ended >= other.ended
    assert len(frozen.points) > frozen.points.index(POINTS[kill]) + 1, "it went on"
    assert frozen.killed_by is None
    parking = ran.parkings[ran.attempt(kill, key, 1)]
    assert (parking["point"], parking["released"]) == (POINTS[kill], True)
