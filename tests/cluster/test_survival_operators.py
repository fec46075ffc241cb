"""Two operators for one namespace: one acts. A leader that dies is followed; one that was paused does nothing more."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from killpoint.controller.lease import NAME, RENEW_SECONDS, SECONDS
from tests.cluster import mortal
from tests.cluster.kubectl import Kubectl
from tests.cluster.mortal import Fate
from tests.cluster.objects import Experiments
from tests.cluster.operator_process import Operator, experiment, operator_for, wait_for
from tests.cluster.survival import account_of, assert_nothing_left, epochs_of
from tests.cluster.watched import watching

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

TAKEN_OVER_SECONDS_MAX = SECONDS + RENEW_SECONDS + 4
LEFT_SECONDS_MAX = 30.0
"""How long one that finds its lease in other hands may take until its process is gone."""


@pytest.fixture
def fate(tmp_path: Path) -> Path:
    return tmp_path / "fate"


@pytest.fixture
def leader(cluster: Kubectl, fate: Path) -> Iterator[Operator]:
    told = {mortal.IDENTITY: "leader", mortal.FATE: str(fate)}
    with operator_for(cluster, module=mortal.MODULE, **told) as operator:
        operator.start()
        wait_for(lambda: holder(cluster) == "leader", "the first one to lead")
        yield operator
        assert "Traceback" not in operator.process.said(), operator.process.said()


@pytest.fixture
def follower(leader: Operator, tmp_path: Path) -> Iterator[Operator]:
    operator = leader.beside("follower", **{mortal.IDENTITY: "follower", mortal.FATE: str(tmp_path / "none")})
    operator.start()
    yield operator
    operator.process.stop()
    assert "Traceback" not in operator.process.said(), operator.process.said()


def holder(kubectl: Kubectl) -> str:
    found = kubectl("get", "lease", NAME, "--ignore-not-found", "--output=jsonpath={.spec.holderIdentity}")
    return found.strip()


def test_one_of_two_acts_and_the_other_one_follows_it_when_it_dies(
    leader: Operator, follower: Operator, experiments: Experiments
) -> None:
    with watching(experiments.kubectl) as watched:
        experiments.apply(experiment("tiny", pause=6, trials=2))
        experiments.runs("tiny")
        journal = experiments.status("tiny")["journalID"]
        assert [epoch for epoch, *_ in epochs_of(journal, leader)] == [1], "nobody else took it over"
        leader.process.kill()
        died = time.monotonic()
        wait_for(lambda: holder(experiments.kubectl) == "follower", "the other one to lead", seconds=60)
        assert time.monotonic() - died < TAKEN_OVER_SECONDS_MAX
        status = experiments.complete("tiny")
        assert (status["result"], status["kills"]) == ("Pass", {"planned": 2, "confirmed": 2})
        assert status["trials"]["retries"] == 0
        account = account_of("tiny", experiments=experiments, operator=follower, watched=watched)
        assert set(account.pods.values()) == {1}, account.pods
        assert set(account.committed.values()) == {1}, account.committed
        assert [epoch for epoch, *_ in epochs_of(journal, follower)] == [1, 2]
        assert_nothing_left("tiny", experiments, follower)


@pytest.mark.parametrize("over", [False, True], ids=["while-the-other-one-runs-it", "after-the-end"])
@pytest.mark.parametrize(
    ("side", "change"), [("after", 3), ("before", 4)], ids=["between-intent-and-pod", "between-pod-and-journal"]
)
def test_a_leader_that_was_paused_does_nothing_more_once_another_one_leads(
    side: str, change: int, *, over: bool, leader: Operator, follower: Operator, experiments: Experiments, fate: Path
) -> None:
    """It is stopped at the two places where it has most to make up for when it wakes."""
    with watching(experiments.kubectl) as watched:
        Fate(side=side, change=change, signal="SIGSTOP").write(fate)
        experiments.apply(experiment("tiny", pause=0 if over else 10))
        wait_for(lambda: not fate.exists(), "the leader to stop")
        wait_for(lambda: holder(experiments.kubectl) == "follower", "the other one to lead", seconds=60)
        wait_for(lambda: experiments.status("tiny").get("journalID"), "the journal's name")
        journal = experiments.status("tiny")["journalID"]
        wait_for(lambda: len(epochs_of(journal, follower)) == 2, "the other one to journal")
        if over:
            experiments.complete("tiny")
        else:
            assert experiments.status("tiny")["phase"] != "Complete"
        leader.process.send(signal.SIGCONT)
        wait_for(lambda: leader.process.ended() is not None, "the former leader to go", seconds=LEFT_SECONDS_MAX)
        assert leader.process.ended() == 1
        status = experiments.complete("tiny")
        assert (status["result"], status["trials"]["retries"]) == ("Pass", 0)
        (_, first, _, last), (_, _, start, _) = epochs_of(journal, follower)
        assert (first, start) == (last, last + 1), "nothing of the former leader's is above the other one's first"
        account = account_of("tiny", experiments=experiments, operator=follower, watched=watched)
        assert set(account.pods.values()) == {1}, account.pods
        assert set(account.committed.values()) == {1}, account.committed
        assert_nothing_left("tiny", experiments, follower)
