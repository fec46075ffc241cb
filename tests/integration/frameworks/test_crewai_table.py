"""How often CrewAI charges when it is killed around the charge and resumed: the published table, and beyond."""

from __future__ import annotations

import pytest

from tests.contract.fixtures import NewTrial
from tests.contract.rig import setups

pytestmark = pytest.mark.integration

PERSIST, CHECKPOINT = setups("crewai")
STORES = ("postgres", "volume")
POINTS = ("charge.before", "charge.after", "charge.recorded")
UNSTABLE, STABLE = ("none", "fresh"), ("stable", "derived", "order", "run-scoped")

# prepare runs again as well and makes another random key, so that one is no better than none.
PERSIST_TABLE = [
    *(
        (key, point, charges)
        for key in (*UNSTABLE, "saved-random")
        for point, charges in zip(POINTS, (1, 2, 2), strict=True)
    ),
    *((key, point, 1) for key in STABLE for point in POINTS),
]
CHECKPOINT_TABLE = [
    *((key, point, charges) for key in UNSTABLE for point, charges in zip(POINTS, (1, 2, 1), strict=True)),
    *((key, point, 1) for key in STABLE for point in POINTS),
]
"""Key, point of the kill, charges."""


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(("key", "point", "charges"), PERSIST_TABLE)
def test_persist_runs_again_from_the_first_method(
    *, new_trial: NewTrial, store: str, key: str, point: str, charges: int
) -> None:
    trial = new_trial(PERSIST, store, key=key)
    trial.killed_at(point)
    resumed = trial.resumed()
    assert trial.charges == charges
    assert resumed.points[0] == "prepare.before"
    assert resumed.lines[-1]["resumedFrom"].startswith("charge:" if point == "charge.recorded" else "prepare:")


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(("key", "point", "charges"), CHECKPOINT_TABLE)
def test_checkpointing_goes_on_from_what_was_written_in_time(
    *, new_trial: NewTrial, store: str, key: str, point: str, charges: int
) -> None:
    trial = new_trial(CHECKPOINT, store, key=key)
    trial.killed_at(point)
    resumed = trial.resumed()
    assert trial.charges == charges
    if point == "charge.recorded":
        assert resumed.lines[-1]["resumedFrom"]
        assert not [passed for passed in resumed.points if passed.startswith(("prepare.", "charge."))]


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(("key", "charges"), [("none", 2), ("stable", 1)])
def test_resent_input_runs_everything_again_whatever_was_recorded(
    new_trial: NewTrial, store: str, key: str, charges: int
) -> None:
    trial = new_trial(CHECKPOINT, store, key=key, resume="resend")
    trial.killed_at("charge.recorded")
    resumed = trial.resumed()
    assert trial.charges == charges
    assert resumed.lines[-1]["resumedFrom"] is None
