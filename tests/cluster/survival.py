"""What a run came to, from everything that kept an account of it, so that a disturbed one can be held to another."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from killpoint.databases.administration import EXPERIMENT_PREFIX, experiment_database
from killpoint.journal.codec import decode
from killpoint.model.events import Event, ServicesSeen
from tests.cluster.objects import Experiments
from tests.cluster.operator_process import Operator, wait_for
from tests.cluster.watched import Watched

LOOK_SECONDS = 0.05
_EVENTS = "SELECT kind, document::text FROM events WHERE run = %s ORDER BY sequence"
_EPOCHS = (
    "SELECT epoch, count(*), min(sequence), max(sequence) FROM events WHERE run = %s GROUP BY epoch ORDER BY epoch"
)
_REQUESTS = "SELECT attempt, action, outcome FROM requests WHERE run LIKE %s"
_EFFECTS = "SELECT attempt, action FROM effects WHERE run LIKE %s"
_DATABASES = "SELECT datname FROM pg_database WHERE datname LIKE %s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What there is to compare. Nothing in it hangs on time, or on the object's name."""

    result: str
    cells: Mapping[str, object]
    kills: Mapping[str, int]
    trials: Mapping[str, int]
    effects: Mapping[str, int]
    requests: Mapping[tuple[str, ...], int]
    """(attempt, action, what became of it) → how many payments was sent."""
    committed: Mapping[tuple[str, ...], int]
    """(attempt, action) → how often it happened."""
    events: Mapping[tuple[str, str], int]
    """(kind, attempt or trial) → how many the journal holds. That services were seen again is no part of the run."""
    pods: Mapping[str, int]
    """Attempt → how many pods the API server made for it."""


def account_of(name: str, *, experiments: Experiments, operator: Operator, watched: Watched | None) -> Account:
    """The account of an experiment that is complete. Without a watch, it says nothing of pods."""
    status = experiments.status(name)
    journal = status["journalID"]
    return Account(
        result=status["result"],
        cells={cell["id"]: {of: cell[of] for of in ("verdicts", "effects", "met")} for cell in status["cells"]},
        kills=status["kills"],
        trials=status["trials"],
        effects=status["effects"],
        requests=Counter(_rows(operator.ledger, _REQUESTS, f"{journal}-%")),
        committed=Counter(_rows(operator.ledger, _EFFECTS, f"{journal}-%")),
        events=Counter(_called(event) for event in events_of(journal, operator)),
        pods={attempt: len(uids) for attempt, uids in watched.uids(journal).items()} if watched else {},
    )


def events_of(journal: str, operator: Operator) -> list[Event]:
    """What the journal holds of a run, but for which services were seen."""
    rows = _rows(operator.journal, _EVENTS, journal)
    return [event for kind, document in rows if not isinstance(event := decode(kind, document), ServicesSeen)]


def epochs_of(journal: str, operator: Operator) -> list[tuple[int, ...]]:
    """(epoch, number of events, the first one's number, the last one's) of a run, in the order of epochs."""
    return _rows(operator.journal, _EPOCHS, journal)


def databases_left(operator: Operator) -> list[str]:
    """Databases of runs that are on the server."""
    return [name for (name,) in _rows(operator.server, _DATABASES, f"{EXPERIMENT_PREFIX}%")]


def assert_nothing_left(name: str, experiments: Experiments, operator: Operator) -> None:
    """No pod and no secret of any run in the namespace, and no database of this one's."""
    experiments.nothing_left(seconds=5)
    assert experiment_database(experiments.status(name)["journalID"]) not in databases_left(operator)


@contextmanager
def kept_running(operator: Operator) -> Iterator[list[int]]:
    """Start the operator again whenever it has ended, as a kubelet does. The exit codes until now."""
    codes: list[int] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(LOOK_SECONDS):
            code = operator.process.ended()
            if code is not None:
                codes.append(code)
                operator.process.start()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield codes
    finally:
        over.set()
        watcher.join()


def wait_for_events(journal: str, operator: Operator, *kinds: type[Event], seconds: float = 60.0) -> None:
    """Wait until the journal holds an event of each of these kinds."""
    wait_for(
        lambda: set(kinds) <= {type(event) for event in events_of(journal, operator)},
        f"{[kind.__name__ for kind in kinds]} in the journal",
        seconds=seconds,
    )


def _called(event: Event) -> tuple[str, str]:
    subject = getattr(event, "attempt", None) or getattr(event, "trial", "")
    return type(event).__name__, str(subject)


def _rows(dsn: str, query: str, *values: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True, connect_timeout=5) as connection:
        return connection.execute(query.encode(), values).fetchall()
