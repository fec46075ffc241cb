"""What is done about finished experiments, and when."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from killpoint.controller import sweeper as sweepers
from killpoint.controller.requests import Document, Requests
from killpoint.controller.subjects import Subject
from killpoint.controller.sweeper import Sweeper
from killpoint.ports import SubstrateUnavailableError
from tests.unit.controller.objects import UID, experiment, status

ENDED = 1796032805.0


class FakeRequests:
    """Remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.status: Document | None = None
        self.away = 0

    async def apply_status(self, subject: Subject, status: Document, *, version: str) -> bool:
        self._answer(f"status of {subject} at {version}")
        self.status = status
        return True

    async def delete_experiment(self, subject: Subject) -> None:
        self._answer(f"delete {subject}")

    async def pods(self, selector: str) -> list[Document]:
        self._answer(f"pods {selector}")
        return []

    async def delete_secrets(self, selector: str) -> None:
        self._answer(f"delete secrets {selector}")

    def _answer(self, request: str) -> None:
        if self.away:
            self.away -= 1
            raise SubstrateUnavailableError("the API server does not answer")
        self.asked.append(request)


def swept(body: dict[str, Any], *, at: float, rounds: int = 1, away: int = 0) -> FakeRequests:
    """What is asked for within some rounds of the sweeper, at a time."""
    requests = FakeRequests()
    requests.away = away

    async def scenario() -> None:
        sweeper = Sweeper(lambda _: cast("Requests", requests), clock=lambda: at)
        sweeper.note(body)
        for _ in range(rounds):
            await sweeper.once()

    asyncio.run(scenario())
    return requests


def over(generation: int = 1, **retention: str) -> dict[str, Any]:
    body = experiment(status=status(complete=True), retention=retention)
    body["metadata"]["generation"] = generation
    return body


def test_an_edit_after_the_end_is_acknowledged_once() -> None:
    requests = swept(over(generation=3), at=ENDED, rounds=3)
    assert requests.asked == ["status of team/tiny at 7"]
    assert requests.status is not None
    assert requests.status["observedGeneration"] == 3


def test_what_could_not_be_written_is_written_later() -> None:
    assert swept(over(generation=3), at=ENDED, rounds=2, away=1).asked == ["status of team/tiny at 7"]


def test_nothing_is_done_before_its_time_or_without_being_asked_for() -> None:
    assert swept(over(experimentAfter="1h", childrenAfter="1m"), at=ENDED + 59).asked == []
    assert swept(over(), at=ENDED * 2).asked == []
    assert swept(experiment(status=status(), retention={"experimentAfter": "1s"}), at=ENDED * 2).asked == []


def test_children_go_and_the_experiment_stays() -> None:
    """A controller that keeps objects as they are in a repository would make it anew, and run it again."""
    label = f"killpoint.dev/experiment-uid={UID}"
    requests = swept(over(experimentAfter="1h", childrenAfter="1m"), at=ENDED + 60, rounds=3)
    assert requests.asked == [f"pods {label}", f"delete secrets {label}"]


def test_the_experiment_goes_when_that_is_asked_for() -> None:
    assert swept(over(experimentAfter="1h"), at=ENDED + 3600, rounds=2).asked == ["delete team/tiny"]


def test_an_object_that_is_gone_is_forgotten() -> None:
    requests = FakeRequests()

    async def scenario() -> None:
        sweeper = Sweeper(lambda _: cast("Requests", requests), clock=lambda: ENDED * 2)
        sweeper.note(over(experimentAfter="1h"))
        sweeper.forget(UID)
        await sweeper.once()

    asyncio.run(scenario())
    assert requests.asked == []


def test_a_round_is_not_far_away() -> None:
    assert sweepers.ROUND_SECONDS <= 60
