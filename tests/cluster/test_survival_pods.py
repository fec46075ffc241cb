"""Pods that somebody else deletes: their trials are run again and counted, and the deletion is taken for no kill."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping

import pytest

from killpoint.model.cells import AttemptId
from killpoint.model.events import AttemptEnded, AttemptIntended, AttemptKillIntended, TrialJudged
from killpoint.model.evidence import EndReason
from killpoint.model.findings import Cause, Verdict
from tests.cluster.kubectl import Kubectl
from tests.cluster.objects import Experiments
from tests.cluster.operator_process import Operator, experiment, operator_for, wait_for
from tests.cluster.survival import account_of, assert_nothing_left, events_of
from tests.cluster.watched import watching

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

PAUSE_SECONDS = 6
"""How long each attempt lives before it does anything: time to delete its pod."""


def gracefully(kubectl: Kubectl, pod: str) -> None:
    kubectl("delete", "pod", pod, "--wait=false")


def by_force(kubectl: Kubectl, pod: str) -> None:
    kubectl("delete", "pod", pod, "--grace-period=0", "--force", "--wait=false")


def for_good(kubectl: Kubectl, pod: str) -> None:
    """By force, and its finalizer taken off: nothing is left to be read."""
    by_force(kubectl, pod)
    kubectl("patch", "pod", pod, "--type=merge", f"--patch={json.dumps({'metadata': {'finalizers': None}})}")


def runs(kubectl: Kubectl, pod: str) -> bool:
    query = "--output=jsonpath={.status.containerStatuses[0].state.running.startedAt}"
    return bool(kubectl("get", "pod", pod, "--ignore-not-found", query).strip())


WAYS: Mapping[int, Callable[[Kubectl, str], None]] = {1: gracefully, 2: by_force, 3: for_good}
"""Trial → how its pod is deleted."""


@pytest.fixture
def operator(cluster: Kubectl) -> Iterator[Operator]:
    with operator_for(cluster) as operator:
        operator.start()
        yield operator
        assert "Traceback" not in operator.process.said(), operator.process.said()


@pytest.mark.parametrize("number", [1, 2], ids=["in-a-killed-attempt", "in-a-resume"])
def test_a_pod_that_somebody_else_deletes_costs_a_retry_and_is_no_kill(
    number: int, operator: Operator, experiments: Experiments
) -> None:
    """argo-workflows#3006: a pod that was gone for another reason was taken for one that had been ended."""
    kubectl = experiments.kubectl
    with watching(kubectl) as watched:
        experiments.apply(experiment("tiny", pause=PAUSE_SECONDS, trials=len(WAYS), parallelism=len(WAYS)))
        wait_for(lambda: experiments.status("tiny").get("journalID"), "the journal's name")
        journal = experiments.status("tiny")["journalID"]

        def victims() -> dict[AttemptId, str]:
            """The attempts that are to be disturbed, and their pods, as they are started."""
            attempts = [event.attempt for event in events_of(journal, operator) if isinstance(event, AttemptIntended)]
            killed = {attempt.trial.cell for attempt in attempts} - {attempts[0].trial.cell}
            return {
                attempt: f"kp-{journal}-{str(attempt).replace('.', '-')}"
                for attempt in attempts
                if attempt.trial.cell in killed and attempt.number == number and attempt.trial.retry == 0
            }

        disturbed: dict[AttemptId, str] = {}
        for _ in WAYS:
            wait_for(lambda: set(victims()) - set(disturbed), "the next attempt to disturb")
            attempt, pod = next(item for item in victims().items() if item[0] not in disturbed)
            kubectl(
                "wait", f"pod/{pod}", "--for=jsonpath={.status.containerStatuses[0].state.running}", "--timeout=60s"
            )
            WAYS[attempt.trial.number](kubectl, pod)
            disturbed[attempt] = pod

        status = experiments.complete("tiny")
        assert status["result"] == "Pass", status.get("reasons")
        assert status["trials"]["retries"] == len(WAYS)
        assert status["kills"] == {"planned": len(WAYS), "confirmed": len(WAYS)}
        events = events_of(journal, operator)
        ends = {event.attempt: event.end for event in events if isinstance(event, AttemptEnded)}
        assert {ends[attempt].reason for attempt in disturbed} == {EndReason.VANISHED}
        assert not [event for event in events if isinstance(event, AttemptKillIntended)]
        judged = {event.trial: event.judgement for event in events if isinstance(event, TrialJudged)}
        for attempt in disturbed:
            judgement = judged[attempt.trial]
            assert judgement.verdict is Verdict.INCONCLUSIVE
            assert Cause.INFRASTRUCTURE in {finding.cause for finding in judgement.findings}
        account = account_of("tiny", experiments=experiments, operator=operator, watched=watched)
        assert set(account.pods.values()) == {1}, account.pods
        assert set(account.committed.values()) == {1}, account.committed
        assert not [of for of in account.committed if of[0] in set(map(str, disturbed))]
        assert_nothing_left("tiny", experiments, operator)
