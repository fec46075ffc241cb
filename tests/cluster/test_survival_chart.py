"""Killpoint's own Postgres and payments, deleted in mid-run: the run comes to its end, and nothing is counted twice."""

from __future__ import annotations

import json

import pytest

from tests.cluster.experiments import assert_passed, completed, effects, installed
from tests.cluster.kubectl import Kubectl
from tests.cluster.objects import Experiments
from tests.cluster.operator_process import experiment
from tests.cluster.providers import Provider
from tests.cluster.watched import watching

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

TRIALS = 6
SECONDS_MAX = 400.0
COMMITTED = """
SELECT json_build_object('run', run, 'attempt', attempt, 'action', action, 'times', count(*)) FROM effects
GROUP BY run, attempt, action
"""


def test_postgres_and_payments_that_are_deleted_are_waited_for(provider: Provider) -> None:
    with installed(provider) as kubectl, watching(kubectl) as watched:
        experiments = Experiments(kubectl)
        limits = {"inconclusiveRetries": 6}
        experiments.apply(experiment("tiny", pause=8, trials=TRIALS, parallelism=3, limits=limits))
        for component in ("postgres", "payments"):
            experiments.runs("tiny")
            _delete(kubectl, component)
        status = completed(kubectl, "tiny", seconds_max=SECONDS_MAX)
        assert_passed(status)
        assert status["kills"] == {"planned": TRIALS, "confirmed": TRIALS}
        assert status["trials"]["retries"] > 0, "workers ran when what they need went away"
        [killed] = [cell for cell in status["cells"] if cell["coordinates"].get("kill") == "charge.after"]
        assert effects(killed, "charge") == {2: TRIALS}
        committed = [json.loads(line) for line in _psql(kubectl, COMMITTED).splitlines()]
        assert {found["times"] for found in committed} == {1}, "no attempt did anything twice"
        pods = watched.uids(status["journalID"])
        assert {len(uids) for uids in pods.values()} == {1}, pods
        assert {found["attempt"] for found in committed} <= set(pods)
        experiments.nothing_left(seconds=5)


def _delete(kubectl: Kubectl, component: str) -> None:
    """Delete its pod, and wait until another one is ready."""
    selector = f"--selector=app.kubernetes.io/component={component}"
    kubectl("delete", "pod", selector, "--timeout=60s")
    kind = "statefulset" if component == "postgres" else "deployment"
    kubectl("rollout", "status", f"{kind}/killpoint-{component}", "--timeout=100s")


def _psql(kubectl: Kubectl, query: str) -> str:
    psql = ("psql", "--username=postgres", "--dbname=killpoint_payments", "--tuples-only", "--no-align")
    return kubectl("exec", "killpoint-postgres-0", "--", *psql, f"--command={query}")
