"""Public reports on several executors of one LangGraph run: what happens by itself, and what a fence holds.

The fence is the application's (langgraph_variant/owned.py). What it does in its place is the same in the tests without.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.contract.fixtures import NewTrial
from tests.contract.rig import Ended, Setup, Trial, setups
from tests.integration.frameworks.control import Control, serving
from tests.integration.frameworks.variants import variant_of

pytestmark = pytest.mark.integration

(LANGGRAPH,) = setups("langgraph")

by_key = pytest.mark.parametrize(("key", "charges"), [("none", 2), ("stable", 1)])
freezes = pytest.mark.skipif(sys.platform != "linux", reason="freezing needs Linux")


@pytest.fixture(scope="session")
def owned(tmp_path_factory: pytest.TempPathFactory) -> Setup:
    return variant_of(LANGGRAPH, "owned", tmp_path_factory.mktemp("owned"))


@pytest.fixture
def control() -> Iterator[Control]:
    with serving() as control:
        yield control


@pytest.fixture(scope="session", autouse=True)
def run_owners(state_database: str) -> None:
    """The application's table of owners."""
    with psycopg.connect(state_database, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE run_owners"
            " (run text PRIMARY KEY, owner text NOT NULL, epoch integer NOT NULL, until timestamptz NOT NULL)"
        )


@pytest.fixture
def new_run(new_trial: NewTrial, owned: Setup, control: Control) -> Callable[[str, str], Trial]:
    """Makes a run with such a fence and such a key."""

    def make(fence: str, key: str) -> Trial:
        further = {"FENCE": fence, "KILLPOINT_CONTROL_URL": control.url}
        return new_trial(owned, "postgres", key=key, parameters={"durability": "sync"}, further=further)

    return make


def rows(trial: Trial, statement: str) -> list[tuple[Any, ...]]:
    assert trial.database_url is not None
    with psycopg.connect(trial.database_url, autocommit=True) as connection:
        return connection.execute(statement.encode(), (trial.run_id,)).fetchall()


def forks(trial: Trial) -> list[str | None]:
    """The checkpoints of the run that have more than one child; None where it has more than one beginning."""
    found = rows(
        trial,
        "SELECT parent_checkpoint_id FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = ''"
        " GROUP BY parent_checkpoint_id HAVING count(*) > 1",
    )
    return [parent for (parent,) in found]


def owner(trial: Trial) -> tuple[str, int]:
    """Which attempt owns the run, and in which epoch."""
    ((attempt, epoch),) = rows(trial, "SELECT owner, epoch FROM run_owners WHERE run = %s")
    return attempt, epoch


def let_its_lease_run_out(trial: Trial) -> None:
    """As the minutes would in which its owner stands still and renews nothing."""
    (changed,) = rows(trial, "UPDATE run_owners SET until = now() - interval '1 s' WHERE run = %s RETURNING run")
    assert changed == (trial.run_id,)


def outcome(ended: Ended) -> str:
    return str(ended.lines[-1].get("outcome"))


def charged_by(trial: Trial) -> list[str]:
    """The attempts that asked payments for a charge, in order."""
    return [request["attempt"] for request in trial.payments.requests(trial.run_id) if request["action"] == "charge"]


# --- two at once -----------------------------------------------------------------------------------------------


@by_key
def test_two_executors_of_one_run_both_finish_and_its_lineage_forks(
    *, new_run: Callable[[str, str], Trial], control: Control, key: str, charges: int
) -> None:
    """langgraph#8796 holds for 1.2.24: a thread has no owner, and whoever comes goes on from its newest checkpoint."""
    run = new_run("none", key)
    first = run.begin("start", die="charge.before", do="park")
    control.until_all_wait("charge.before", first)
    second = run.begin("resume", die="charge.before", do="park")
    control.until_all_wait("charge.before", first, second)
    assert charged_by(run) == [], "both are about to charge, and neither has"
    # One after the other from here: payments refuses a key while a request with it is in flight.
    control.release(first)
    assert outcome(first.wait()) == "finished"
    control.release(second)
    ended = second.wait()
    assert outcome(ended) == "finished"
    assert charged_by(run) == [executor.assignment["attempt"] for executor in (first, second)]
    assert run.charges == charges
    assert forks(run) == [ended.lines[-1]["resumedFrom"]]


def test_of_two_executors_of_one_run_a_fence_lets_one_act_and_the_other_yields(
    new_run: Callable[[str, str], Trial], control: Control
) -> None:
    """langgraph#8796, with a fence: of two who claim the run at once, one gets it."""
    run = new_run("lease", "none")
    both = [run.begin(action, die="run.begun", do="park") for action in ("start", "resume")]
    control.until_all_wait("run.begun", *both)
    control.release(*both)
    ended = [one.wait() for one in both]
    assert sorted(outcome(one) for one in ended) == ["finished", "yielded"]
    winner, loser = sorted(ended, key=outcome)
    assert loser.points == ["run.begun"]
    assert {request["attempt"] for request in run.payments.requests(run.run_id)} == {winner.assignment["attempt"]}
    assert run.charges == 1
    assert forks(run) == []
    assert owner(run) == (winner.assignment["attempt"], 1)


# --- dispatched again while the first one lives ----------------------------------------------------------------


@freezes
@by_key
def test_a_run_that_is_dispatched_again_while_its_first_executor_lives_is_charged_by_both(
    *, new_run: Callable[[str, str], Trial], control: Control, key: str, charges: int
) -> None:
    """langgraph#7417, #7213: the first one is silent for so long that it is taken for dead, and then goes on."""
    run = new_run("none", key)
    first = run.begin("start", die="charge.begun", do="freeze")
    control.until_all_wait("charge.begun", first)
    run.resumed()
    assert run.charges == 1
    control.release(first)
    assert outcome(first.wait()) == "finished"
    assert len(charged_by(run)) == 2
    assert run.charges == charges
    assert len(forks(run)) == 1


@freezes
def test_the_owner_that_was_taken_for_dead_is_refused_before_its_effect(
    new_run: Callable[[str, str], Trial], control: Control
) -> None:
    """langgraph#7417, #7213, with a fence: the run is taken over under a higher epoch, when its lease is over."""
    run = new_run("lease", "none")
    first = run.begin("start", die="charge.begun", do="freeze")
    control.until_all_wait("charge.begun", first)
    too_early = run.attempt("resume")
    assert (outcome(too_early), too_early.points) == ("yielded", ["run.begun"])
    assert owner(run) == (first.assignment["attempt"], 1)
    let_its_lease_run_out(run)
    second = run.resumed()
    assert owner(run) == (second.assignment["attempt"], 2)
    control.release(first)
    stale = first.wait()
    assert (outcome(stale), stale.points[-1]) == ("yielded", "charge.begun")
    assert charged_by(run) == [second.assignment["attempt"]]
    assert run.charges == 1
    assert forks(run) == []


@freezes
@by_key
def test_an_owner_that_stood_still_behind_the_fence_charges_all_the_same_and_only_a_key_keeps_the_effect_single(
    *, new_run: Callable[[str, str], Trial], control: Control, key: str, charges: int
) -> None:
    """langgraph#7417, #7213, what no lease can hold: time that passes between its check and the effect."""
    run = new_run("lease", key)
    first = run.begin("start", die="charge.before", do="freeze")
    control.until_all_wait("charge.before", first)
    let_its_lease_run_out(run)
    second = run.resumed()
    control.release(first)
    assert outcome(first.wait()) == "yielded"
    assert charged_by(run) == [second.assignment["attempt"], first.assignment["attempt"]]
    assert run.charges == charges
