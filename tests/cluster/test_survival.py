"""The crash tester survives crashes: its operator dies with its journal at each place, and nobody can tell afterwards.

Real pods, a real API server, real SIGKILL. ``tests/unit/engine/test_crashes.py`` has the same with a world in memory.
"""

from __future__ import annotations

import faulthandler
import random
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from killpoint.model.events import TrialJudged
from tests.cluster import mortal
from tests.cluster.kubectl import Kubectl
from tests.cluster.mortal import Fate
from tests.cluster.namespaces import namespace
from tests.cluster.objects import Experiments
from tests.cluster.operator_process import Operator, experiment, operator_for, wait_for
from tests.cluster.providers import Provider
from tests.cluster.survival import Account, account_of, assert_nothing_left, events_of, kept_running
from tests.cluster.watched import Watched, watching

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

TRIALS = 48
KILLS = 10
KILLS_MIN = 5
"""What a fast machine has time for until the run is over, at the least."""
SEED = 20261130
LARGE_SECONDS_MAX = 420.0
CHANGES_MIN = 15
"""Changes of the journal in the small experiment, at the least: with fewer, boundaries were not met."""


@pytest.fixture
def fate(tmp_path: Path) -> Path:
    """Where the operator is told when to die."""
    return tmp_path / "fate"


@pytest.fixture
def operator(cluster: Kubectl, fate: Path) -> Iterator[Operator]:
    """A mortal operator for the test's namespace, started."""
    told = {mortal.IDENTITY: "survivor", mortal.FATE: str(fate)}
    with operator_for(cluster, module=mortal.MODULE, **told) as operator:
        operator.start()
        yield operator
        assert "Traceback" not in operator.process.said(), operator.process.said()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """An operator with a namespace of its own, and the side of each change on which it dies."""

    side: str
    operator: Operator
    experiments: Experiments
    fate: Path

    def run(self) -> int:
        """Die at one change after the other, until there is none left to die at; how many there were."""
        with watching(self.experiments.kubectl) as watched, kept_running(self.operator) as codes:
            undisturbed = self._account("undisturbed", watched)
            for change in count(1):
                Fate(side=self.side, change=change).write(self.fate)
                assert self._account(f"{self.side}-{change}", watched) == undisturbed, f"killed {self.side} {change}"
                if self.fate.exists():
                    return change - 1
                assert codes == [-signal.SIGKILL] * change
        raise AssertionError("there is always one change less")

    def _account(self, name: str, watched: Watched) -> Account:
        self.experiments.apply(experiment(name))
        self.experiments.complete(name)
        assert_nothing_left(name, self.experiments, self.operator)
        return account_of(name, experiments=self.experiments, operator=self.operator, watched=watched)


@pytest.fixture
def lanes(operator: Operator, experiments: Experiments, provider: Provider, fate: Path) -> Iterator[list[Lane]]:
    """Two that run at the same time, on the same services."""
    with namespace(provider, "test") as kubectl:
        other = operator.beside(
            "other",
            **{mortal.FATE: f"{fate}-other"},
            KILLPOINT_NAMESPACES=kubectl.namespace,
            KILLPOINT_POD_NAMESPACE=kubectl.namespace,
        )
        other.start()
        yield [
            Lane(side="before", operator=operator, experiments=experiments, fate=fate),
            Lane(side="after", operator=other, experiments=Experiments(kubectl), fate=Path(f"{fate}-other")),
        ]
        other.process.stop()
        assert "Traceback" not in other.process.said(), other.process.said()


def test_killed_at_any_change_of_its_journal_it_ends_with_the_same_account(lanes: list[Lane]) -> None:
    """testkube#3167, k6-operator#800 and #310: killed between making a child and saying so, it made another or hung.

    Right before, and right after, each append in turn: same verdicts and effects, each pod made once, none left.
    """
    faulthandler.cancel_dump_traceback_later()  # a boundary has a bound of its own
    with ThreadPoolExecutor(len(lanes)) as threads:
        changes = set(threads.map(Lane.run, lanes))
    assert len(changes) == 1
    assert changes.pop() >= CHANGES_MIN


def test_what_a_judged_trial_held_goes_though_the_operator_died_before_it_freed_it(
    operator: Operator, experiments: Experiments, fate: Path
) -> None:
    """In the midst of the run, not at its end: a large one would fill its namespace with what is over."""
    Fate(side="after", event=TrialJudged.__name__).write(fate)
    experiments.apply(experiment("tiny", pause=8))
    wait_for(lambda: operator.process.ended() is not None, "the operator to die")
    journal = experiments.status("tiny")["journalID"]
    judged = events_of(journal, operator)[-1]
    assert isinstance(judged, TrialJudged)
    held = {item for item in experiments.left() if str(judged.trial).replace(".", "-") in item}
    assert {item.partition("/")[0] for item in held} == {"Pod", "Secret"}
    operator.start()
    wait_for(lambda: held.isdisjoint(experiments.left()), "what the control held to go", seconds=8)
    experiments.runs("tiny")
    assert experiments.complete("tiny")["result"] == "Pass"
    assert_nothing_left("tiny", experiments, operator)


def test_killed_at_random_moments_of_a_large_run_it_ends_as_if_nothing_had_been(
    operator: Operator, experiments: Experiments
) -> None:
    faulthandler.cancel_dump_traceback_later()  # it has a deadline of its own
    chance = random.Random(SEED)
    with watching(experiments.kubectl) as watched, kept_running(operator) as codes:
        experiments.apply(experiment("large", trials=TRIALS, parallelism=8))
        experiments.runs("large")
        for kill in range(1, KILLS + 1):
            time.sleep(chance.uniform(0.5, 6.0))
            if experiments.status("large")["phase"] != "Running":
                break
            operator.process.send(signal.SIGKILL)
            wait_for(lambda kill=kill: len(codes) == kill, "it to be started again")  # type: ignore[misc]
        wait_for(
            lambda: experiments.status("large")["phase"] == "Complete",
            f"its end: {experiments.said('large')}",
            seconds=LARGE_SECONDS_MAX,
        )
        assert len(codes) >= KILLS_MIN, "it was over too soon to show anything"
        assert set(codes) == {-signal.SIGKILL}
        assert_nothing_left("large", experiments, operator)
        account = account_of("large", experiments=experiments, operator=operator, watched=watched)
    assert account.result == "Pass"
    assert account.kills == {"planned": TRIALS, "confirmed": TRIALS}
    assert account.trials["retries"] == 0
    [cell] = {attempt.partition(".")[0] for attempt in account.pods if attempt.endswith(".2")}
    killed = {f"{cell}.{trial}.{number}" for trial in range(1, TRIALS + 1) for number in (1, 2)}
    [control] = account.pods.keys() - killed
    assert account.pods == dict.fromkeys(killed | {control}, 1)
    charges = {attempt: count for (attempt, action), count in account.committed.items() if action == "charge"}
    assert charges == dict.fromkeys(killed | {control}, 1)
    assert {outcome for _, _, outcome in account.requests} == {"committed"}
    assert set(account.requests.values()) == {1}
