"""Public reports on LangGraph's recovery, as far as workflow ``charge`` can show them. Each test names its report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import psycopg
import pytest

from tests.contract import rig
from tests.contract.fixtures import NewTrial
from tests.contract.rig import Setup, Trial, setups
from tests.integration.frameworks.variants import variant_of

pytestmark = pytest.mark.integration

(LANGGRAPH,) = setups("langgraph")
STORES = ("postgres", "volume")


@pytest.fixture(scope="session")
def variant(tmp_path_factory: pytest.TempPathFactory) -> Setup:
    """LangGraph's worker with faults: the same lock, the same package, and a main() that breaks something first."""
    return variant_of(LANGGRAPH, "variant", tmp_path_factory.mktemp("variant"))


def with_fault(trial: Trial, *faults: str) -> Trial:
    trial.further = {"VARIANT": " ".join(faults)}
    return trial


@pytest.mark.parametrize("store", STORES)
def test_killed_between_the_writes_of_the_charge_and_the_next_checkpoint_it_is_replayed_and_never_run_again(
    new_trial: NewTrial, variant: Setup, store: str
) -> None:
    """langgraph#8039, #8234, as far as it is put right: writes that are committed are used."""
    trial = with_fault(new_trial(variant, store, key="none", parameters={"durability": "sync"}), "slow-put")
    trial.killed_at("charge.recorded")
    resumed = with_fault(trial).resumed()
    assert trial.charges == 1
    assert resumed.points == ["finalize.before", "finalize.after"]


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(("key", "charges"), [("none", 2), ("stable", 1)])
def test_killed_where_the_next_checkpoint_is_put_the_charge_is_run_again_while_its_writes_are_under_way(
    *, new_trial: NewTrial, variant: Setup, store: str, key: str, charges: int
) -> None:
    """langgraph#8039, #8234 still hold for 1.2.24: sync does not wait for a step's writes before it puts a checkpoint.

    A version in which this fails has mended it.
    """
    trial = with_fault(new_trial(variant, store, key=key, parameters={"durability": "sync"}), "slow-writes")
    trial.killed_at("charge.put")
    assert trial.recorded() == {"charge": False}
    trial.resumed()
    assert trial.charges == charges


@pytest.mark.parametrize("store", STORES)
def test_writes_without_their_checkpoint_are_not_a_record_and_are_not_called_one(
    new_trial: NewTrial, variant: Setup, store: str
) -> None:
    """Under async a step's writes can be committed before the checkpoint that they belong to."""
    written = with_fault(new_trial(variant, store, key="none", parameters={"durability": "async"}), "slow-put")
    written.killed_at("charge.written")
    assert written.recorded() == {"charge": False}
    written.resumed()
    assert written.charges == 2, "the writes were committed, and found by nobody"
    recorded = with_fault(new_trial(variant, store, key="none", parameters={"durability": "async"}), "slow-put")
    recorded.killed_at("charge.recorded")
    assert recorded.recorded() == {"charge": True}
    recorded.resumed()
    assert recorded.charges == 1


def test_a_connection_that_closes_during_a_step_is_replaced_and_the_charge_is_recorded(
    new_trial: NewTrial, variant: Setup
) -> None:
    """langgraph#5675."""
    trial = with_fault(new_trial(variant, "postgres", key="none", parameters={"durability": "sync"}), "sessions-end")
    ended = trial.attempt("start")
    assert ended.code == 0, ended.output
    assert "charge.recorded" in ended.points
    assert trial.charges == 1


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(("key", "charges"), [("none", 2), ("stable", 1)])
def test_a_result_that_cannot_be_serialized_is_a_failure_after_the_charge_and_only_a_key_keeps_it_from_being_repeated(
    *, new_trial: NewTrial, variant: Setup, store: str, key: str, charges: int
) -> None:
    """langgraph#8606, #6789."""
    trial = with_fault(new_trial(variant, store, key=key, parameters={"durability": "sync"}), "unserializable")
    failed = trial.attempt("start")
    assert failed.code == 1
    assert failed.lines[-1]["error"]["class"] == "TypeError"
    assert "charge.recorded" not in failed.points
    assert trial.recorded() == {"charge": False}
    with_fault(trial).resumed()
    assert trial.charges == charges


@pytest.fixture
def empty_database(server: str) -> Iterator[str]:
    """A database in which nobody has set up anything."""
    with rig.database(server) as url:
        yield url


def outcomes_at_once(trials: list[Trial]) -> list[tuple[str, int]]:
    """Start all runs together: how each ended, and how often it charged."""
    started = [trial.begin("start") for trial in trials]
    ended = [attempt.wait() for attempt in started]
    return [(end.lines[-1]["outcome"], trial.charges) for end, trial in zip(ended, trials, strict=True)]


@pytest.fixture
def crowd(new_trial: NewTrial, empty_database: str) -> Callable[[str], list[Trial]]:
    """Several runs that share a new store."""

    def make(store: str) -> list[Trial]:
        first = replace(new_trial(LANGGRAPH, store), database_url=empty_database)
        others = [new_trial(LANGGRAPH, store) for _ in range(5)]
        return [first, *(replace(t, database_url=first.database_url, volume=first.volume) for t in others)]

    return make


@pytest.mark.parametrize("store", STORES)
def test_several_workers_at_once_set_up_a_new_store(crowd: Callable[[str], list[Trial]], store: str) -> None:
    """langgraph#6356, #5925: all but one of the callers of setup() failed."""
    assert outcomes_at_once(crowd(store)) == [("finished", 1)] * 6


def test_several_workers_at_once_go_on_with_a_half_migrated_database(
    crowd: Callable[[str], list[Trial]], empty_database: str
) -> None:
    """langgraph#7630."""
    assert outcomes_at_once(crowd("postgres")[:1]) == [("finished", 1)]
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute("DELETE FROM checkpoint_migrations WHERE v > 4")
        connection.execute("DROP INDEX checkpoints_thread_id_idx")
        connection.execute("ALTER TABLE checkpoint_writes DROP COLUMN task_path")
    assert outcomes_at_once(crowd("postgres")) == [("finished", 1)] * 6


@pytest.fixture(scope="session")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Setup:
    """LangGraph's worker where two questions are to be answered, one resume after another."""
    return variant_of(LANGGRAPH, "asking", tmp_path_factory.mktemp("asking"))


def executions_of_the_charge(trial: Trial) -> list[int]:
    """How often the charge step ran before the first answer, after it, and after the second, which ends the run."""
    ended = [trial.attempt(action) for action in ("start", "resume", "resume")]
    assert [end.lines[-1]["outcome"] for end in ended] == ["waiting", "waiting", "finished"]
    return [end.points.count("charge.after") for end in ended]


@pytest.mark.parametrize(("key", "charges"), [("none", 3), ("fresh", 3), ("stable", 1), ("saved-random", 1)])
def test_a_node_with_two_interrupts_runs_again_after_each_answer_and_only_a_saved_key_keeps_its_effect_single(
    *, new_trial: NewTrial, asking: Setup, key: str, charges: int
) -> None:
    """langgraph#6208."""
    trial = new_trial(asking, "postgres", key=key, further={"ASKS": "charge"})
    assert executions_of_the_charge(trial) == [1, 1, 1]
    assert trial.charges == charges


@pytest.mark.parametrize("key", ["none", "fresh"])
def test_two_interrupts_in_a_later_node_leave_the_charge_single(new_trial: NewTrial, asking: Setup, key: str) -> None:
    """langgraph#6208, with a guard: the effect has a node of its own, which no answer runs again."""
    trial = new_trial(asking, "postgres", key=key, further={"ASKS": "finalize"})
    assert executions_of_the_charge(trial) == [1, 0, 0]
    assert trial.charges == 1
