"""What an operator needs goes away in mid-run and comes again: the run ends as ever, and nothing is counted twice."""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from killpoint.model.events import AttemptLaunched
from tests.cluster.kubectl import Kubectl
from tests.cluster.node.layout import NODE_ADDRESS, PROCESS
from tests.cluster.objects import Experiments
from tests.cluster.operator_process import LOOPBACK, Operator, Relay, experiment, operator_for, wait_for
from tests.cluster.survival import Account, account_of, assert_nothing_left, databases_left, epochs_of, events_of
from tests.cluster.watched import watching

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

API_PORT = 6443
CUTS = 6
TRIALS = 6
END_SECONDS_MAX = 180.0


@pytest.fixture
def relay() -> Iterator[Relay]:
    """Between the operator and the API server. The server's certificate is good for this address as well."""
    relay = Relay(target=API_PORT, near=LOOPBACK, far=NODE_ADDRESS)
    yield relay
    relay.close()


@pytest.fixture
def operator(cluster: Kubectl, relay: Relay, tmp_path: Path) -> Iterator[Operator]:
    """One that reaches the API server through the relay."""
    document = json.loads(cluster.kubeconfig.read_text())
    document["clusters"][0]["cluster"]["server"] = f"https://{relay.place}"
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(document))
    with operator_for(cluster, KUBECONFIG=str(kubeconfig)) as operator:
        operator.start()
        yield operator
        assert "Traceback" not in operator.process.said(), operator.process.said()


def assert_undisturbed(account: Account) -> None:
    """Every kill confirmed, no retry, no pod made twice and no effect but once an attempt."""
    assert account.result == "Pass"
    assert account.kills == {"planned": TRIALS, "confirmed": TRIALS}
    assert account.trials["retries"] == 0
    assert set(account.committed.values()) == {1}, account.committed
    assert {outcome for _, _, outcome in account.requests} == {"committed"}


def test_connections_to_the_api_server_that_break_are_made_anew(
    operator: Operator, relay: Relay, experiments: Experiments
) -> None:
    """Watches, too: an edit that is made after they were cut reaches the operator."""
    with watching(experiments.kubectl) as watched:
        experiments.apply(experiment("tiny", pause=2, trials=TRIALS, parallelism=2), experiment("other", pause=300))
        experiments.runs("tiny")
        for cut in range(CUTS):
            relay.cut()
            time.sleep(1 + cut % 3)
            relay.mend()
            time.sleep(2)
        assert experiments.status("tiny")["phase"] == "Running", "the cuts were in mid-run"
        experiments.patch("other", abort=True)
        experiments.complete("other")
        experiments.complete("tiny")
        account = account_of("tiny", experiments=experiments, operator=operator, watched=watched)
        assert_undisturbed(account)
        assert set(account.pods.values()) == {1}, account.pods
        [(epoch, *_)] = epochs_of(experiments.status("tiny")["journalID"], operator)
        assert epoch == 1, "it was the same operator all the time"
        assert_nothing_left("tiny", experiments, operator)


@pytest.mark.alone
def test_an_api_server_that_is_killed_in_mid_run_is_waited_for(operator: Operator, experiments: Experiments) -> None:
    experiments.apply(experiment("tiny", pause=2, trials=TRIALS, parallelism=2))
    experiments.runs("tiny")
    journal = experiments.status("tiny")["journalID"]
    killed = [kill_api_server()]
    time.sleep(6)
    killed.append(kill_api_server())
    last = datetime.now(UTC)

    def over() -> bool:
        with suppress(AssertionError):  # the API server is away for kubectl as well
            return bool(experiments.status("tiny")["phase"] == "Complete")
        return False

    wait_for(over, "its end", seconds=END_SECONDS_MAX)
    assert killed[0] != killed[1], "it had been started anew"
    assert datetime.fromisoformat(experiments.status("tiny")["completionTime"]) > last, "it was in mid-run"
    assert_nothing_left("tiny", experiments, operator)
    # The watch of the tests is as dead as the first API server. What was launched is in the journal, and what was run
    # twice would have charged twice.
    account = account_of("tiny", experiments=experiments, operator=operator, watched=None)
    assert_undisturbed(account)
    launched = Counter(event.attempt for event in events_of(journal, operator) if isinstance(event, AttemptLaunched))
    assert set(launched.values()) == {1}
    charged = {attempt for attempt, action in account.committed if action == "charge"}
    assert charged == set(map(str, launched))


def kill_api_server() -> str:
    """SIGKILL to it, by its id within the node, which is returned. The node's first process starts it anew."""
    first = str(json.loads(PROCESS.read_text())["pid"])
    within = ("nsenter", f"--target={first}", "--pid", "--mount")
    found = subprocess.run(
        (*within, "pgrep", "--oldest", "--full", "kube kube-apiserver"), check=True, capture_output=True, text=True
    )
    process = found.stdout.strip()
    subprocess.run((*within, "kill", "-9", process), check=True)
    return process


def test_a_database_that_could_not_be_dropped_is_dropped_later(operator: Operator, experiments: Experiments) -> None:
    """Its experiment is deleted while Postgres is away. The object does not wait for it, the database does."""
    experiments.apply(experiment("tiny", pause=300))
    experiments.runs("tiny")
    operator.database.cut()
    experiments.kubectl("delete", "crashexperiment", "tiny", "--timeout=60s")
    experiments.nothing_left()
    assert len(databases_left(operator)) == 1
    operator.process.kill()
    operator.database.mend()
    operator.start()
    wait_for(lambda: databases_left(operator) == [], "its database to go")
    assert operator.is_well()
