"""The daemon of one experiment, with a world in memory: what its object says in the end, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from killpoint.api.problems import Problem, ProblemsError
from killpoint.api.v1alpha1.status import Report
from killpoint.controller import daemon as daemons
from killpoint.controller import supervision, writer
from killpoint.controller.daemon import Daemon
from killpoint.controller.roster import Roster, Seat
from killpoint.controller.site import Order, Session
from killpoint.controller.subjects import Body, generation
from killpoint.core.state import JournalLostError
from killpoint.model.cells import AttemptId
from killpoint.ports import (
    FencedError,
    JournalUnavailableError,
    LedgerUnavailableError,
    SubstrateUnavailableError,
)
from tests.unit.controller.fakes import FakeObjects
from tests.unit.controller.objects import UID, experiment
from tests.unit.engine.telling import PROVENANCE
from tests.unit.engine.world import Flaw, Sim, cell
from tests.unit.engine.world import experiment as sim_experiment

WAIT_SECONDS_MAX = 20.0
REPORT = Report(location="/somewhere", sha256="0" * 64)


@dataclass
class FakeSite:
    """An experiment in memory. ``fault`` is asked at each thing that may go wrong."""

    sim: Sim
    objects: FakeObjects
    fault: Callable[[str], None] = lambda _: None
    freed: list[str] = field(default_factory=list)
    sessions: int = 0
    ended: int = 0
    swept: int = 0

    async def order(self, body: Body) -> Order:
        self.fault("order")
        spec = body["spec"]
        self.sim.experiment = replace(
            self.sim.experiment, suspended=spec.get("suspend", False), aborted=spec.get("abort", False)
        )
        return Order(document=cast("Any", None), experiment=self.sim.experiment)

    @asynccontextmanager
    async def session(self, order: Order, body: Body) -> AsyncIterator[Session]:  # noqa: ARG002 - as in Site
        self.fault("session")
        self.sessions += 1
        yield Session(engine=self.sim.engine(), journal=self, substrate=self, provenance=PROVENANCE)

    async def keep_evidence(self, order: Order, opened: Session) -> Report | None:
        self.fault("evidence")
        assert order.experiment is self.sim.experiment
        assert opened.engine.run().over
        return REPORT

    async def look_at_services(self) -> None:
        self.fault("services")

    async def sweep(self, keep: Collection[AttemptId]) -> int:
        self.fault("sweep")
        self.swept += 1
        return len(keep)

    async def end(self) -> None:
        self.ended += 1

    async def free_children(self) -> None:
        self.fault("free")
        self.freed.append("children")

    async def drop_database(self, journal: str) -> None:
        self.freed.append(journal)


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting is what these tests have no time for."""
    monkeypatch.setattr(daemons, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(daemons, "FENCED_SECONDS", 0.01)
    monkeypatch.setattr(supervision, "BACKOFF_SECONDS", (0.01,))
    monkeypatch.setattr(writer, "PAUSE_SECONDS", 0.0)


def site(**changes: Any) -> FakeSite:  # noqa: ANN401 - any field of an Experiment
    sim = Sim(sim_experiment(cell(at=("charge.after",)), **changes))
    return FakeSite(sim=sim, objects=FakeObjects(experiment()))


def edit(site: FakeSite, **spec: bool) -> None:
    body = site.objects.object
    assert body is not None
    body["spec"] |= spec
    body["metadata"]["generation"] += 1


async def run(
    site: FakeSite, meanwhile: Callable[[Seat], Awaitable[None]] | None = None, roster: Roster | None = None
) -> dict[str, Any]:
    """Run a daemon to its end, and something beside it; the status as it is then."""
    known = roster or Roster(places=4, clock=asyncio.get_running_loop().time)
    seat = known.sit(UID)
    daemon = Daemon(
        lambda: cast("Body", site.objects.object),
        site=site,
        seat=seat,
        roster=known,
        now_ms=site.sim.clock.now,
    )
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        if meanwhile is None:
            await daemon.run()
        else:
            await asyncio.gather(daemon.run(), meanwhile(seat))
    assert site.objects.object is not None
    status: dict[str, Any] = site.objects.object.get("status", {})
    return status


def reasons(status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {found["type"]: (found["status"], found["reason"]) for found in status["conditions"]}


async def when(condition: Callable[[], bool]) -> None:
    while True:
        if condition():
            return
        await asyncio.sleep(0.005)


async def until(site: FakeSite, reason: str) -> None:
    """Wait until the object says so."""

    def says_so() -> bool:
        body = site.objects.object
        assert body is not None
        said = body.get("status", {}).get("conditions", ())
        return any(found["type"] == "Complete" and found["reason"] == reason for found in said)

    await when(says_so)


def failing(times: int, error: Exception, *, at: str) -> Callable[[str], None]:
    left = [times]

    def fault(place: str) -> None:
        if place == at and left[0]:
            left[0] -= 1
            raise error

    return fault


def test_an_experiment_comes_to_its_end_and_leaves_nothing() -> None:
    here = site()
    status = asyncio.run(run(here))
    assert (status["phase"], status["result"], status["progress"]) == ("Complete", "Fail", "2/2")
    assert status["journalID"] == "j1"
    assert status["report"] == {"location": "/somewhere", "sha256": "0" * 64}
    assert here.freed[0] == "children"
    assert len(here.freed) == 2, "its database, too"
    assert here.ended == 1
    assert [event["reason"] for event in here.objects.events][-1] == "NotAsExpected"


def test_what_is_wrong_with_a_specification_is_said_at_once() -> None:
    here = site()
    problem = Problem(path="spec.matrix.setup[0]", message='Unsupported value: "x"', suggestion='did you mean "y"?')
    here.fault = failing(99, ProblemsError([problem]), at="order")
    status = asyncio.run(run(here))
    assert reasons(status)["Accepted"] == ("False", "InvalidSpec")
    assert reasons(status)["Complete"] == ("True", "InvalidSpec")
    assert status["result"] == "Error"
    assert "did you mean" in status["reasons"][0]
    assert here.sessions == 0


def test_a_lost_journal_ends_it_with_what_was_known() -> None:
    here = site()
    here.objects = FakeObjects(experiment(status={"journalID": "j1", "progress": "1/2", "phase": "Running"}))
    here.fault = failing(99, JournalLostError("the journal is empty"), at="session")
    status = asyncio.run(run(here))
    assert reasons(status)["Complete"] == ("True", "JournalLost")
    assert (status["result"], status["progress"], status["journalID"]) == ("Error", "1/2", "j1")


def test_a_poisonous_object_is_given_up_after_a_number_of_tries() -> None:
    here = site()
    here.fault = failing(99, ZeroDivisionError("nobody thought of this"), at="session")
    status = asyncio.run(run(here))
    assert reasons(status)["Complete"] == ("True", "GaveUp")
    assert "ZeroDivisionError: nobody thought of this" in status["reasons"][0]
    assert here.freed[0] == "children"


def test_a_failure_that_passes_is_survived() -> None:
    here = site()
    here.fault = failing(supervision.TRIES_MAX - 1, ZeroDivisionError("once more"), at="session")
    assert asyncio.run(run(here))["result"] == "Fail"


@pytest.mark.parametrize(
    ("error", "at", "reason"),
    [
        (JournalUnavailableError("the database does not answer"), "session", "DatabaseAway"),
        (LedgerUnavailableError("payments does not answer"), "services", "PaymentsAway"),
        (JournalUnavailableError("the database does not answer"), "evidence", "DatabaseAway"),
    ],
)
def test_a_service_that_is_away_is_waited_for(
    error: Exception, at: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervision, "STALLED_SECONDS", 0.0)
    here = site()
    here.fault = failing(12, error, at=at)
    told: list[tuple[str, str]] = []

    async def watch(_: Seat) -> None:
        await until(here, reason)
        assert here.objects.object is not None
        told.append(reasons(here.objects.object["status"])["Stalled"])

    status = asyncio.run(run(here, watch))
    assert told == [("True", reason)]
    assert status["result"] == "Fail", "it goes on when the service is back"
    assert reasons(status)["Stalled"][0] == "False"


def test_a_run_that_was_taken_over_is_taken_back_later() -> None:
    here = site()
    here.fault = failing(2, FencedError("another one has it"), at="session")
    assert asyncio.run(run(here))["phase"] == "Complete"


def test_a_suspended_experiment_gives_its_place_to_others_and_goes_on_later() -> None:
    here = site()
    edit(here, suspend=True)
    places: list[bool] = []

    async def scenario() -> dict[str, Any]:
        roster = Roster(places=1, clock=asyncio.get_running_loop().time)

        async def go_on(seat: Seat) -> None:
            await until(here, "Suspended")
            await when(lambda: roster.place("another"))
            places.append(True)
            roster.release("another")
            edit(here, suspend=False)
            seat.wake()

        return await run(here, go_on, roster)

    status = asyncio.run(scenario())
    assert places == [True]
    assert status["result"] == "Fail"
    assert status["observedGeneration"] == 3


def test_an_aborted_experiment_is_complete_and_says_so() -> None:
    here = site()
    here.sim.substrate.flaw = lambda _: Flaw.HANGS

    async def abort(seat: Seat) -> None:
        await until(here, "Running")
        edit(here, abort=True)
        seat.wake()

    status = asyncio.run(run(here, abort))
    assert reasons(status)["Complete"] == ("True", "Aborted")
    assert (status["phase"], status["result"]) == ("Complete", "Inconclusive")
    assert here.freed[0] == "children"


def test_an_abort_waits_neither_for_payments_nor_for_a_place() -> None:
    here = site()
    here.fault = failing(9999, LedgerUnavailableError("payments does not answer"), at="services")
    edit(here, abort=True)

    async def scenario() -> dict[str, Any]:
        roster = Roster(places=1, clock=asyncio.get_running_loop().time)
        roster.place("another")
        return await run(here, None, roster)

    assert reasons(asyncio.run(scenario()))["Complete"] == ("True", "Aborted")


def test_an_experiment_without_a_place_is_queued_until_there_is_one() -> None:
    here = site()

    async def scenario() -> dict[str, Any]:
        roster = Roster(places=1, clock=asyncio.get_running_loop().time)
        roster.place("another")

        async def make_room(_: Seat) -> None:
            await until(here, "Queued")
            assert here.sessions == 0
            roster.release("another")

        return await run(here, make_room, roster)

    assert asyncio.run(scenario())["result"] == "Fail"


def test_a_daemon_that_is_to_leave_leaves_without_a_word() -> None:
    here = site()
    here.sim.substrate.flaw = lambda _: Flaw.HANGS

    async def leave(seat: Seat) -> None:
        await until(here, "Running")
        seat.leave()

    status = asyncio.run(run(here, leave))
    assert reasons(status)["Complete"] == ("False", "Running")
    assert here.freed == [], "who deletes the object frees what it held"


def test_an_object_that_is_gone_is_left_alone() -> None:
    here = site()
    here.sim.substrate.flaw = lambda _: Flaw.HANGS
    kept = dict(cast("dict[str, Any]", here.objects.object))

    async def scenario() -> None:
        known = Roster(places=4, clock=asyncio.get_running_loop().time)
        daemon = Daemon(lambda: kept, site=here, seat=known.sit(UID), roster=known, now_ms=here.sim.clock.now)
        here.objects.object = None
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            await daemon.run()

    asyncio.run(scenario())
    assert here.objects.written == []


def test_an_end_that_could_not_be_finished_is_finished_later() -> None:
    """The API server is away just when the run is over: freeing is tried again, and only then it is complete."""
    here = site()
    here.fault = failing(3, JournalUnavailableError("away"), at="free")
    status = asyncio.run(run(here))
    assert status["phase"] == "Complete"
    assert here.freed[0] == "children"


def test_the_generation_that_is_edited_in_mid_run_is_the_one_observed() -> None:
    here = site()
    here.sim.substrate.flaw = lambda _: Flaw.HANGS

    async def watch(seat: Seat) -> None:
        await until(here, "Running")
        edit(here, suspend=True)
        seat.wake()
        await until(here, "Suspended")
        seat.leave()

    status = asyncio.run(run(here, watch))
    assert status["observedGeneration"] == generation(cast("Body", here.objects.object)) == 2


def test_what_a_trial_held_is_asked_to_go_again_after_the_cluster_was_away() -> None:
    """Judged, and the API server is away when it is freed: nobody else would free it before the end."""
    here = site(trials=3)
    clean_up = here.sim.substrate.clean_up
    failed: list[int] = []

    async def away_once(attempts: Sequence[AttemptId]) -> None:
        if not failed:
            failed.append(here.swept)
            raise SubstrateUnavailableError("away")
        await clean_up(attempts)

    here.sim.substrate.clean_up = away_once  # type: ignore[method-assign]
    status = asyncio.run(run(here))
    assert status["phase"] == "Complete"
    [before] = failed
    assert here.swept > before >= 1


def test_a_sweep_that_fails_is_made_again() -> None:
    here = site()
    here.fault = failing(2, SubstrateUnavailableError("away"), at="sweep")
    status = asyncio.run(run(here))
    assert status["phase"] == "Complete"
    assert here.swept == 1


def test_one_that_is_suspended_says_so_while_others_have_all_places() -> None:
    here = site()
    edit(here, suspend=True)

    async def scenario() -> dict[str, Any]:
        roster = Roster(places=1, clock=asyncio.get_running_loop().time)
        roster.place("another")

        async def leave(seat: Seat) -> None:
            await until(here, "Suspended")
            seat.leave()

        return await run(here, leave, roster)

    assert reasons(asyncio.run(scenario()))["Complete"] == ("False", "Suspended")
    assert here.sessions == 0


def test_the_log_has_a_line_at_each_turn(caplog: pytest.LogCaptureFixture) -> None:
    here = site()
    here.fault = failing(2, RuntimeError("nobody thought of this"), at="session")
    with caplog.at_level("INFO", logger="killpoint.controller"):
        asyncio.run(run(here))
    said = [record.getMessage() for record in caplog.records if record.levelname == "INFO"]
    for words in (
        "experiment team/tiny: seen",
        "experiment team/tiny: Pending, Failing: RuntimeError: nobody thought of this",
        "experiment team/tiny: Running, Running: ",
        "experiment team/tiny: Complete, NotAsExpected: Fail: ",
    ):
        assert any(line.startswith(words) for line in said), (words, said)
