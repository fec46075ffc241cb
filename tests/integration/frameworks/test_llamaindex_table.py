"""How often LlamaIndex charges when it is killed around the charge and resumed: the published table, and beyond."""

from __future__ import annotations

import pytest

from tests.contract.fixtures import NewTrial
from tests.contract.rig import Setup, setups

pytestmark = pytest.mark.integration

LLAMAINDEX, DBOS = setups("llamaindex")
STORES = ("postgres", "volume")
UNSTABLE, STABLE = ("none", "fresh"), ("stable", "derived", "order", "run-scoped", "saved-random")

TABLE = [
    *((key, point, charges) for key in UNSTABLE for point, charges in (("charge.before", 1), ("charge.after", 2))),
    *((key, "charge.recorded", 1) for key in UNSTABLE),
    *((key, point, 1) for key in STABLE for point in ("charge.before", "charge.after", "charge.recorded")),
]
"""Key, point of the kill, charges."""

# DBOS is started cold, which takes seconds: keys that differ only in how they are made are left to the snapshot loop.
TABLE_DBOS = [row for row in TABLE if row[0] in ("none", "stable", "saved-random")]


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(("key", "point", "charges"), TABLE)
def test_killed_in_the_snapshot_loop(*, new_trial: NewTrial, store: str, key: str, point: str, charges: int) -> None:
    trial = new_trial(LLAMAINDEX, store, key=key)
    trial.killed_at(point)
    resumed = trial.resumed()
    assert trial.charges == charges
    assert resumed.lines[-1]["resumedFrom"] == ("2" if point == "charge.recorded" else "1")
    assert "prepare.before" not in resumed.points


@pytest.mark.slow
@pytest.mark.parametrize(("key", "point", "charges"), TABLE_DBOS)
def test_killed_on_the_dbos_runtime(*, new_trial: NewTrial, key: str, point: str, charges: int) -> None:
    trial = new_trial(DBOS, "postgres", key=key)
    trial.killed_at(point)
    resumed = trial.resumed()
    assert trial.charges == charges
    assert resumed.lines[-1]["resumedFrom"] == trial.run_id
    assert "prepare.before" not in resumed.points


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(("key", "charges"), [("none", 2), ("stable", 1)])
def test_a_request_that_was_sent_and_not_answered_is_repeated(
    new_trial: NewTrial, store: str, key: str, charges: int
) -> None:
    trial = new_trial(LLAMAINDEX, store, key=key)
    trial.killed_at("charge.sent")
    trial.resumed()
    assert trial.charges == charges


@pytest.mark.parametrize("store", STORES)
def test_killed_before_the_first_snapshot_the_run_begins_again(new_trial: NewTrial, store: str) -> None:
    trial = new_trial(LLAMAINDEX, store, key="saved-random")
    trial.killed_at("prepare.after")
    resumed = trial.resumed()
    assert trial.charges == 1
    assert resumed.lines[-1]["resumedFrom"] is None
    assert "prepare.before" in resumed.points


@pytest.mark.parametrize(("setup", "store"), [(LLAMAINDEX, "postgres"), (LLAMAINDEX, "volume"), (DBOS, "postgres")])
def test_input_that_is_sent_again_to_a_run_under_way_changes_nothing(
    new_trial: NewTrial, setup: Setup, store: str
) -> None:
    trial = new_trial(setup, store, key="none", resume="resend")
    trial.killed_at("charge.recorded")
    resumed = trial.resumed()
    assert trial.charges == 1
    assert "prepare.before" not in resumed.points
    assert "charge.before" not in resumed.points
