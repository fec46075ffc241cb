"""How often LangGraph charges when it is killed around the charge and resumed: the published table, and beyond."""

from __future__ import annotations

import pytest

from tests.contract.fixtures import NewTrial
from tests.contract.rig import setups

pytestmark = pytest.mark.integration

(LANGGRAPH,) = setups("langgraph")
STORES = ("postgres", "volume")
UNSTABLE, STABLE = ("none", "fresh"), ("stable", "derived", "order", "run-scoped")

TABLE = [
    *((key, point, charges) for key in UNSTABLE for point, charges in (("charge.before", 1), ("charge.after", 2))),
    *((key, "charge.recorded", 1) for key in UNSTABLE),
    *((key, point, 1) for key in STABLE for point in ("charge.before", "charge.after", "charge.recorded")),
]
"""Key, point of the kill, charges."""

# Nothing is written before the graph has ended, so that a kill at any point loses all.
TABLE_EXIT = [
    *(
        ("none", point, charges)
        for point, charges in (("charge.before", 1), ("charge.after", 2), ("finalize.before", 2))
    ),
    *(("stable", point, 1) for point in ("charge.before", "charge.after", "finalize.before")),
    # prepare runs again and makes another one.
    ("saved-random", "charge.after", 2),
]


@pytest.mark.parametrize("durability", ["async", "sync"])
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(("key", "point", "charges"), TABLE)
def test_killed_while_the_graph_runs(
    *, new_trial: NewTrial, store: str, durability: str, key: str, point: str, charges: int
) -> None:
    trial = new_trial(LANGGRAPH, store, key=key, parameters={"durability": durability})
    trial.killed_at(point)
    resumed = trial.resumed()
    assert trial.charges == charges
    # With async, no checkpoint may have been written yet: the input is sent again then.
    assert resumed.lines[-1]["resumedFrom"] or durability == "async"


@pytest.mark.parametrize("store", STORES)
def test_a_random_key_that_prepare_saved_holds_when_checkpoints_are_written_before_the_next_step(
    new_trial: NewTrial, store: str
) -> None:
    trial = new_trial(LANGGRAPH, store, key="saved-random", parameters={"durability": "sync"})
    trial.killed_at("charge.after")
    trial.resumed()
    assert trial.charges == 1


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(("key", "point", "charges"), TABLE_EXIT)
def test_killed_before_the_only_write_of_durability_exit(
    *, new_trial: NewTrial, store: str, key: str, point: str, charges: int
) -> None:
    trial = new_trial(LANGGRAPH, store, key=key, parameters={"durability": "exit"})
    trial.killed_at(point)
    assert trial.recorded() == {"charge": False}
    resumed = trial.resumed()
    assert trial.charges == charges
    assert resumed.lines[-1]["resumedFrom"] is None, "there was nothing to go on from, so the input was sent"
    assert "prepare.before" in resumed.points


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(("key", "charges"), [("none", 2), ("stable", 1)])
def test_resent_input_runs_everything_again_whatever_was_recorded(
    new_trial: NewTrial, store: str, key: str, charges: int
) -> None:
    trial = new_trial(LANGGRAPH, store, key=key, resume="resend", parameters={"durability": "sync"})
    trial.killed_at("charge.recorded")
    resumed = trial.resumed()
    assert trial.charges == charges
    assert resumed.lines[-1]["resumedFrom"] is None
    assert resumed.points.index("charge.recorded") > resumed.points.index("charge.after"), (
        "its own charge, no older one"
    )


@pytest.mark.parametrize("store", STORES)
def test_killed_after_everything_but_its_own_row_the_run_is_finished_without_a_second_charge(
    new_trial: NewTrial, store: str
) -> None:
    trial = new_trial(LANGGRAPH, store, key="none", parameters={"durability": "sync"})
    trial.killed_at("finalize.after")
    resumed = trial.resumed()
    assert trial.charges == 1
    assert resumed.points == ["finalize.before", "finalize.after"]
