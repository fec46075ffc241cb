"""What every worker program has to do, in whatever language it is written (docs/worker-contract.md)."""

from __future__ import annotations

from pathlib import Path

import pytest

from killpoint.core.points import OWN_EXIT
from tests.contract.fixtures import NewTrial
from tests.contract.rig import LOG_BYTES_MAX, Setup, setups

pytestmark = [pytest.mark.contract, pytest.mark.integration]

WORKLOADS = ("crewai", "langgraph", "llamaindex", "shell")
"""Folders of workloads/ whose setups are held to the contract. A new worker is added here, and nowhere else."""

CELLS = [
    pytest.param(setup, store, id=f"{setup.name}-{store}")
    for workload in WORKLOADS
    for setup in setups(workload)
    for store in setup.stores
]
KILLS = [
    pytest.param(setup, store, point, id=f"{setup.name}-{store}-{point}")
    for workload in WORKLOADS
    for setup in setups(workload)
    for store in setup.stores
    for point in setup.points
]

each_cell = pytest.mark.parametrize(("setup", "store"), CELLS)
each_kill = pytest.mark.parametrize(("setup", "store", "point"), KILLS)


def contents(volume: Path) -> dict[Path, bytes]:
    """Every file with its content, but for the shared memory that SQLite's readers coordinate by."""
    return {path: path.read_bytes() for path in volume.rglob("*") if path.is_file() and not path.name.endswith("-shm")}


@each_cell
def test_it_describes_itself_as_its_catalog_entry_does(new_trial: NewTrial, setup: Setup, store: str) -> None:
    ended = new_trial(setup, store).attempt("describe")
    assert ended.code == 0
    said = ended.lines[-1]
    assert said["outcome"] == "described"
    assert tuple(said["points"]) == setup.points
    assert said["parameters"] == setup.parameters
    assert set(said["versions"]) == set(setup.entry["versions"])
    assert all(said["versions"].values())
    assert "die" in said.get("does", ["die"])


@each_cell
def test_an_undisturbed_run_passes_every_point_in_order_and_charges_once(
    new_trial: NewTrial, setup: Setup, store: str
) -> None:
    trial = new_trial(setup, store)
    ended = trial.attempt("start")
    assert ended.code == 0, ended.output
    assert ended.reading.fault is None
    # Where a result is recorded may be told by another thread, while the run goes on.
    assert sorted(ended.points) == sorted(setup.points)
    assert [p for p in ended.points if p != "charge.recorded"] == [p for p in setup.points if p != "charge.recorded"]
    effects = {effect["action"]: effect["id"] for effect in trial.payments.effects(trial.run_id)}
    assert sorted(effects) == ["charge", "finalize"]
    outcome = ended.lines[-1]
    assert outcome["outcome"] == "finished"
    assert outcome["resumedFrom"] is None
    assert [claim["effect"] for claim in outcome["claims"]] == [effects["charge"]]


@each_cell
def test_the_header_carries_attempt_and_nonce_and_comes_first(new_trial: NewTrial, setup: Setup, store: str) -> None:
    ended = new_trial(setup, store).killed_at("prepare.before")
    assert ended.lines[0] == {
        "killpoint": 1,
        "attempt": ended.assignment["attempt"],
        "nonce": ended.assignment["nonce"],
    }
    assert len(ended.lines) == 2


@each_kill
def test_killed_at_a_point_it_is_dead_by_signal_9_and_the_resume_ends_the_run_with_one_charge(
    new_trial: NewTrial, setup: Setup, store: str, point: str
) -> None:
    trial = new_trial(setup, store)
    ended = trial.killed_at(point)
    assert ended.reading.fault is None
    assert ended.reading.outcome is None
    trial.resumed()
    assert trial.charges == 1


@each_cell
def test_scheduled_to_exit_it_leaves_with_91_and_nothing_after_the_point_or_says_that_it_cannot(
    new_trial: NewTrial, setup: Setup, store: str
) -> None:
    trial = new_trial(setup, store)
    offers = trial.attempt("describe").lines[-1].get("does", ["die"])
    ended = trial.attempt("start", die="charge.after", do="exit")
    if "exit" not in offers:
        assert (ended.code, ended.lines[-1]["outcome"], ended.points) == (1, "failed", [])
        return
    assert (ended.code, ended.signal) == (OWN_EXIT, None), ended.log + ended.output
    assert ended.reading.fault is None
    assert ended.lines[-1]["point"] == "charge.after"
    trial.resumed()
    assert trial.charges == 1


@each_cell
def test_a_word_of_the_schedule_that_it_does_not_know_is_a_failure_and_no_run(
    new_trial: NewTrial, setup: Setup, store: str
) -> None:
    trial = new_trial(setup, store)
    ended = trial.attempt("start", die="charge.after", do="vanish-in-a-puff")
    assert ended.code == 1
    assert not ended.points
    assert trial.charges == 0


@each_cell
def test_before_sent_and_after_are_true_of_the_payments_service(new_trial: NewTrial, setup: Setup, store: str) -> None:
    expected = {"charge.before": (0, 0), "charge.sent": (1, 1), "charge.after": (1, 1)}
    seen: dict[str, tuple[int, int]] = {}
    for point in expected.keys() & set(setup.points):
        trial = new_trial(setup, store, key="none")
        trial.killed_at(point)
        seen[point] = (len(trial.payments.requests(trial.run_id)), trial.charges)
    assert seen == {point: counts for point, counts in expected.items() if point in setup.points}
    assert {"charge.before", "charge.after"} <= seen.keys()


@each_cell
def test_recorded_is_true_of_the_store(new_trial: NewTrial, setup: Setup, store: str) -> None:
    after = new_trial(setup, store)
    after.killed_at("charge.after")
    assert after.recorded() == {"charge": False}
    recorded = new_trial(setup, store)
    recorded.killed_at("charge.recorded")
    assert recorded.recorded() == {"charge": True}


@each_cell
def test_a_look_into_the_store_before_anything_was_written_finds_nothing(
    new_trial: NewTrial, setup: Setup, store: str
) -> None:
    assert new_trial(setup, store).recorded() == {"charge": False}


@each_cell
def test_a_look_into_the_store_changes_nothing_of_the_run(new_trial: NewTrial, setup: Setup, store: str) -> None:
    trial = new_trial(setup, store, key="none")
    trial.killed_at("charge.recorded")
    before = contents(trial.volume)
    trial.recorded()
    assert contents(trial.volume) == before
    assert trial.charges == 1


@each_cell
def test_a_finished_run_that_is_resumed_again_says_so_and_does_nothing(
    new_trial: NewTrial, setup: Setup, store: str
) -> None:
    trial = new_trial(setup, store, key="none")
    first = trial.attempt("start")
    again = trial.resumed()
    assert again.points == []
    assert again.lines[-1]["claims"] == first.lines[-1]["claims"]
    assert trial.charges == 1


@each_cell
def test_a_failure_is_an_outcome_with_its_class_and_exit_1(new_trial: NewTrial, setup: Setup, store: str) -> None:
    trial = new_trial(setup, store, key="no-such-key")
    ended = trial.attempt("start")
    assert ended.code == 1
    outcome = ended.lines[-1]
    assert outcome["outcome"] == "failed"
    assert outcome["error"]["class"]
    assert outcome["error"]["message"]
    assert trial.charges == 0


@each_cell
def test_the_log_is_small(new_trial: NewTrial, setup: Setup, store: str) -> None:
    assert len(new_trial(setup, store).attempt("start").log.encode()) <= LOG_BYTES_MAX
