"""Public reports on CrewAI's recovery, turned into trials. Each test names the report whose kind it shows."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.contract.fixtures import NewTrial
from tests.contract.rig import Trial, setups

pytestmark = pytest.mark.integration

PERSIST, CHECKPOINT = setups("crewai")
STORES = ("postgres", "volume")


def saved_methods(trial: Trial) -> dict[str, list[str]]:
    """Flow id → methods whose state was saved under it, in order, for all flows of the trial's store."""
    if trial.database_url is not None:
        with psycopg.connect(trial.database_url) as connection:
            rows = connection.execute("SELECT flow_uuid, method_name FROM crewai_flow_states ORDER BY id").fetchall()
    else:
        with closing(sqlite3.connect(trial.volume / "crewai-flow-states.sqlite3")) as file:
            rows = file.execute("SELECT flow_uuid, method_name FROM flow_states ORDER BY id").fetchall()
    found: dict[str, list[str]] = {}
    for flow, method in rows:
        found.setdefault(flow, []).append(method)
    return found


def checkpoints(volume: Path) -> list[dict[str, Any]]:
    return [
        json.loads(path.read_text()) for path in volume.rglob("crewai-checkpoints/**/*.json") if path.stat().st_size
    ]


@pytest.mark.parametrize("store", STORES)
def test_a_resumed_flow_has_the_id_of_the_run_and_not_a_fresh_one(new_trial: NewTrial, store: str) -> None:
    """CrewAI#5378: a new Flow takes a fresh id, and with it finds nothing of what it saved."""
    trial = new_trial(PERSIST, store)
    trial.killed_at("charge.recorded")
    before = saved_methods(trial)
    assert before[trial.run_id] == ["prepare", "charge"]
    resumed = trial.resumed()
    assert resumed.lines[-1]["resumedFrom"].startswith("charge:")
    after = saved_methods(trial)
    assert after[trial.run_id] == ["prepare", "charge", "prepare", "charge", "finalize"]
    assert set(after) == set(before), "nothing was saved under another id"


def test_a_restored_flow_has_the_id_of_the_run_too(new_trial: NewTrial) -> None:
    """CrewAI#5378, with Checkpointing: whichever flow of a document has completed something is the run's."""
    trial = new_trial(CHECKPOINT, "volume")
    trial.killed_at("charge.recorded")
    trial.resumed()
    flows = [flow for document in checkpoints(trial.volume) for flow in document["entities"]]
    assert {flow["checkpoint_state"]["id"] for flow in flows if flow["checkpoint_completed_methods"]} == {trial.run_id}


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("key", ["stable", "none"])
def test_the_key_is_the_runs_in_the_third_generation_too(new_trial: NewTrial, store: str, key: str) -> None:
    """A checkpoint that a restored flow wrote does not restore: the third goes on from an older one, or anew."""
    trial = new_trial(CHECKPOINT, store, key=key)
    trial.killed_at("charge.before")
    second = trial.attempt("resume", die="charge.recorded")
    assert second.signal == 9, second.log
    assert trial.recorded() == {"charge": True}
    third = trial.resumed()
    sent = {request["key"] for request in trial.payments.requests(trial.run_id) if request["action"] == "charge"}
    if key == "stable":
        assert sent == {f"{trial.run_id}:charge"}
        assert trial.charges == 1
    else:
        # Recorded and yet charged again, where the second attempt had itself been restored.
        assert trial.charges == (2 if "charge.before" in third.points else 1)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(("key", "charges"), [("none", 2), ("stable", 1)])
def test_that_no_checkpoint_was_ever_written_is_noticed(
    new_trial: NewTrial, store: str, key: str, charges: int
) -> None:
    """CrewAI PR#5320: with the default event, which a flow without a crew never emits, nothing is written."""
    trial = new_trial(CHECKPOINT, store, key=key, parameters={"events": "task_completed"})
    trial.killed_at("finalize.after")
    assert trial.recorded() == {"charge": False}
    resumed = trial.resumed()
    assert resumed.lines[-1]["resumedFrom"] is None
    assert "charge.recorded" not in resumed.points
    assert trial.charges == charges


@pytest.mark.parametrize("left_behind", ["", '{"entities": [{"entity_type": "flow"'])
def test_what_a_kill_left_of_a_checkpoint_file_is_passed_over(new_trial: NewTrial, left_behind: str) -> None:
    """The framework's file writes are not atomic: of the newest file, a kill may leave nothing, or a part."""
    trial = new_trial(CHECKPOINT, "volume", key="none")
    trial.killed_at("charge.recorded")
    (written, *_) = trial.volume.glob("crewai-checkpoints/*/main/*.json")
    written.with_name("29991231T235959_ffffffff_p-none.json").write_text(left_behind)
    assert trial.recorded() == {"charge": True}
    resumed = trial.resumed()
    assert resumed.lines[-1]["resumedFrom"]
    assert trial.charges == 1


@pytest.mark.parametrize("store", STORES)
def test_a_datetime_in_the_state_is_saved_and_comes_back(new_trial: NewTrial, store: str) -> None:
    """CrewAI#7358: it stopped the run after the charge; neither store does that now."""
    trial = new_trial(PERSIST, store, parameters={"payload": "datetime"})
    trial.killed_at("charge.recorded")
    assert trial.recorded() == {"charge": True}
    trial.resumed()
    assert trial.charges == 1


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(("key", "charges"), [("none", 2), ("stable", 1)])
def test_saving_fails_after_the_method_and_a_stable_key_keeps_the_effect_single(
    new_trial: NewTrial, store: str, key: str, charges: int
) -> None:
    """CrewAI#7358, the kind: the charge was made, its state can't be saved, and the run is resumed with mended code."""
    trial = new_trial(PERSIST, store, key=key, parameters={"payload": "unserializable"})
    first = trial.attempt("start")
    assert first.code == 1
    assert "charge.after" in first.points
    assert "charge.recorded" not in first.points
    assert first.reading.outcome is not None
    assert first.reading.outcome.error_message
    assert trial.recorded() == {"charge": False}
    assert trial.charges == 1
    trial.resumed()
    assert trial.charges == charges
