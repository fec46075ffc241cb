"""Public reports about LlamaIndex Workflows and DBOS, as far as workflow ``charge`` can show them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.contract import rig
from tests.contract.fixtures import NewTrial
from tests.contract.rig import Launcher, Payments, Setup, Trial, setups
from tests.integration.frameworks.variants import variant_of

pytestmark = pytest.mark.integration

LLAMAINDEX, DBOS = setups("llamaindex")
CELLS = [
    pytest.param(LLAMAINDEX, "postgres", id="llamaindex-postgres"),
    pytest.param(LLAMAINDEX, "volume", id="llamaindex-volume"),
    pytest.param(DBOS, "postgres", id="llamaindex-dbos-postgres"),
]
NOBODY_LISTENS = {"KILLPOINT_PAYMENTS_URL": "http://127.0.0.1:9"}


@pytest.mark.parametrize(("setup", "store"), CELLS)
def test_state_that_cannot_be_saved_stops_the_run_before_the_effect(
    new_trial: NewTrial, setup: Setup, store: str
) -> None:
    """llama_index#18069. The charge step is already scheduled when the save fails: it must not get to its effect."""
    trial = new_trial(setup, store, key="none", parameters={"payload": "unserializable"})
    for action in ("start", "resume"):
        ended = trial.attempt(action)
        assert ended.code == 1
        assert ended.lines[-1]["error"]["class"] == "ValueError"
        assert "charge.before" not in ended.points
    assert trial.payments.requests(trial.run_id) == []


@pytest.mark.parametrize("store", LLAMAINDEX.stores)
def test_a_step_that_failed_does_not_make_the_run_look_finished(new_trial: NewTrial, store: str) -> None:
    """The event of its end comes with a snapshot that says the run is over; resumed from that, nothing would happen."""
    trial = new_trial(LLAMAINDEX, store)
    trial.further = NOBODY_LISTENS
    failed = trial.attempt("start")
    assert failed.lines[-1]["error"]["class"] == "PaymentsUnavailable"
    assert trial.recorded() == {"charge": False}
    trial.further = {}
    resumed = trial.resumed()
    assert resumed.lines[-1]["resumedFrom"] == "1"
    assert sorted(effect["action"] for effect in trial.payments.effects(trial.run_id)) == ["charge", "finalize"]


def test_dbos_never_tries_again_what_a_step_raised(new_trial: NewTrial) -> None:
    """The run stays in ERROR: a resume raises what the first attempt raised, and the order is never charged."""
    trial = new_trial(DBOS, "postgres")
    trial.further = NOBODY_LISTENS
    first = trial.attempt("start")
    assert first.lines[-1]["error"]["class"] == "PaymentsUnavailable"
    assert trial.recorded() == {"charge": False}, "a failure is on record as the step's output, and is no result"
    trial.further = {}
    again = trial.attempt("resume")
    assert again.lines[-1]["error"]["class"] == "PaymentsUnavailable"
    assert again.points == []
    assert trial.charges == 0


@pytest.mark.parametrize("resume", ["continue", "resend"])
def test_a_pending_run_is_left_to_its_own_resume(new_trial: NewTrial, resume: str) -> None:
    """dbos#804 and its reverse.

    Every launch recovers all pending runs of its executor and version. With a version for each run, a launch never
    carries out another one's run, and each is completed by its own resume.
    """
    stranded = new_trial(DBOS, "postgres", resume=resume)
    stranded.killed_at("charge.before")
    other = new_trial(DBOS, "postgres", resume=resume)
    other.killed_at("charge.after")
    assert other.resumed().points.count("finalize.after") == 1
    assert stranded.payments.requests(stranded.run_id) == []
    stranded.resumed()
    assert (stranded.charges, other.charges) == (1, 1)


@pytest.mark.slow
def test_a_crash_loop_ends_as_a_dead_letter(new_trial: NewTrial) -> None:
    """llama-agents#607. Two recoveries are allowed, so three executions charge; then DBOS gives the run up."""
    trial = new_trial(DBOS, "postgres", key="none", parameters={"recoveries": "2"})
    trial.killed_at("charge.after")
    for _ in range(2):
        assert trial.attempt("resume", die="charge.after").signal == 9
    for _ in range(2):
        ended = trial.attempt("resume")
        assert ended.code == 0
        assert ended.lines[-1]["outcome"] == "dead-lettered"
        assert ended.points == []
    assert trial.charges == 3


def test_what_a_killed_attempt_left_half_written_is_no_snapshot(new_trial: NewTrial) -> None:
    trial = new_trial(LLAMAINDEX, "volume", key="none")
    trial.killed_at("charge.recorded")
    (newest,) = trial.volume.glob("snapshot.*.000002.json")
    newest.with_name(newest.name.replace("000002.json", "000003.4711.partial")).write_text('{"sequence": 3, "st')
    assert trial.recorded() == {"charge": True}
    assert trial.resumed().lines[-1]["resumedFrom"] == "2"
    assert trial.charges == 1


@pytest.mark.parametrize("setup", [LLAMAINDEX, DBOS], ids=["llamaindex", "llamaindex-dbos"])
def test_workers_that_meet_an_empty_database_at_once_all_get_through(
    setup: Setup, server: str, payments: Payments, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(rig.database(server))
        trials = [
            _trial(setup, stack.enter_context(_launcher(setup, tmp_path / str(n))), payments, url) for n in range(3)
        ]
        started = [trial.begin("start") for trial in trials]
        ended = [one.wait() for one in started]
    assert [one.code for one in ended] == [0, 0, 0], [one.output for one in ended]
    assert [trial.charges for trial in trials] == [1, 1, 1]


@pytest.mark.parametrize("setup", [LLAMAINDEX, DBOS], ids=["llamaindex", "llamaindex-dbos"])
def test_every_database_session_of_an_attempt_bears_its_name(
    setup: Setup, server: str, payments: Payments, tmp_path: Path
) -> None:
    """DBOS calls its own sessions ``dbos_transact``: none could be told from another attempt's."""
    with ExitStack() as stack:
        url = stack.enter_context(rig.database(server))
        trial = _trial(setup, stack.enter_context(_launcher(setup, tmp_path)), payments, url)
        seen = stack.enter_context(_sessions(url))
        trial.killed_at("charge.after")
        trial.resumed()
    assert seen == {f"{trial.trial}.1", f"{trial.trial}.2"}


@pytest.fixture(scope="session")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Setup:
    """LlamaIndex's worker whose charge step waits for an approval after it has charged."""
    return variant_of(LLAMAINDEX, "waiting", tmp_path_factory.mktemp("waiting"))


@pytest.mark.parametrize(
    ("guard", "key", "charges"),
    [("none", "none", 2), ("none", "fresh", 2), ("none", "stable", 1), ("state", "none", 1), ("state", "fresh", 1)],
)
def test_the_effects_before_a_wait_happen_again_unless_the_state_or_a_key_keeps_them_single(
    *, new_trial: NewTrial, waiting: Setup, guard: str, key: str, charges: int
) -> None:
    """llama_index#22559: the step runs again from its beginning when the event has come, here in another process."""
    trial = new_trial(waiting, "postgres", key=key, further={"GUARD": guard})
    first = trial.attempt("start")
    assert (first.code, first.lines[-1]["outcome"]) == (0, "waiting"), first.output
    assert trial.charges == 1
    resumed = trial.resumed()
    assert resumed.lines[-1]["resumedFrom"] == "1"
    assert resumed.points.count("charge.after") == (0 if guard == "state" else 1)
    assert trial.charges == charges


@contextmanager
def _launcher(setup: Setup, folder: Path) -> Iterator[Launcher]:
    folder.mkdir(exist_ok=True)
    with Launcher(setup, folder) as launcher:
        yield launcher


def _trial(setup: Setup, launcher: Launcher, payments: Payments, database_url: str) -> Trial:
    return Trial(
        launcher=launcher,
        setup=setup,
        payments=payments,
        volume=Path("/nonexistent"),
        store="postgres",
        database_url=database_url,
    )


@contextmanager
def _sessions(database_url: str) -> Iterator[set[str]]:
    """The names of all sessions that were seen in the database while the block ran, but for its own."""
    seen: set[str] = set()
    done = threading.Event()
    # A session that is still being set up has no state yet, and no name.
    query = (
        "SELECT application_name FROM pg_stat_activity"
        " WHERE datname = current_database() AND backend_type = 'client backend'"
        " AND state IS NOT NULL AND pid <> pg_backend_pid()"
    )

    def look() -> None:
        with psycopg.connect(database_url, autocommit=True) as connection:
            while not done.wait(0.005):
                seen.update(str(name) for (name,) in connection.execute(query))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()
