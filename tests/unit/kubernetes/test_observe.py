"""What a pod says of its attempt, and what nobody may take it to say."""

from __future__ import annotations

from typing import Any

import pytest

from killpoint.core.points import landed
from killpoint.kubernetes.names import KILLED_BY, NOT_STARTED, Owner, Scope
from killpoint.kubernetes.observe import Ended, Running, Starting, is_ours, observation_of, state_of
from killpoint.model.cells import AttemptId, Method, Role
from killpoint.model.evidence import AttemptEnd, AttemptEvidence, EndReason, OutcomeWord
from tests.unit.kubernetes.pods import (
    ATTEMPT,
    FINISHED,
    LATER,
    NOW_MS,
    SCOPE,
    STARTED,
    TRIAL,
    deleted,
    disruption,
    log,
    pod,
    terminated,
)

FINISHED_OUTCOME = {"outcome": "finished", "claims": [{"action": "charge", "order": "order-1", "effect": "ch_1"}]}
UNKNOWN = {
    "terminated": {
        "exitCode": 137,
        "reason": "ContainerStatusUnknown",
        "message": "The container could not be located when the pod was terminated",
        "startedAt": None,
        "finishedAt": None,
    }
}
DIED_AT_ITS_POINT = terminated(137, message=log("charge.before", "charge.sent", "charge.after"))


def end_of(shown: dict[str, Any], *, now_ms: int = NOW_MS) -> AttemptEnd:
    state = state_of(shown, ATTEMPT, now_ms=now_ms)
    assert isinstance(state, Ended), state
    return state.end


def evidence(end: AttemptEnd, method: Method = Method.SIGKILL) -> AttemptEvidence:
    """Of an attempt that was parked, and whose end was asked for, where its method is one that does so."""
    return AttemptEvidence(
        id=ATTEMPT,
        action="start",
        scheduled="charge.after",
        intended_ms=0,
        method=method,
        parked_ms=1 if method.parks else None,
        kill_requested=method.parks,
        end=end,
    )


# --- ends that the runtime saw ---------------------------------------------------------------------------------


def test_a_worker_that_killed_itself_at_its_point_has_landed() -> None:
    end = end_of(pod(DIED_AT_ITS_POINT))
    assert (end.reason, end.exit_code) == (EndReason.SIGNALED, 137)
    assert [point.point for point in end.points] == ["charge.before", "charge.sent", "charge.after"]
    assert end.fault is None
    assert landed(evidence(end))


def test_a_finished_worker_has_its_outcome_and_its_times() -> None:
    shown = pod(terminated(0, reason="Completed", message=log("charge.after", outcome=FINISHED_OUTCOME)))
    end = end_of(shown)
    assert end.reason is EndReason.EXITED
    assert end.outcome is not None
    assert end.outcome.word is OutcomeWord.FINISHED
    assert end.started_ms is not None
    assert end.at_ms - end.started_ms == 2000


def test_an_end_is_never_before_the_workers_own_last_words() -> None:
    """The API server keeps whole seconds, the worker milliseconds."""
    message = log() + '{"point":"charge.after","n":1,"t":1796059289750}\n'
    assert end_of(pod(terminated(137, message=message))).at_ms == 1_796_059_289_750


def test_out_of_memory_is_what_the_kubelet_says_and_nothing_else() -> None:
    out_of_memory = end_of(pod(terminated(137, reason="OOMKilled", message=log("charge.after"))))
    assert out_of_memory.reason is EndReason.OUT_OF_MEMORY
    assert landed(evidence(out_of_memory, Method.OUT_OF_MEMORY))
    assert not landed(evidence(end_of(pod(DIED_AT_ITS_POINT)), Method.OUT_OF_MEMORY))


def test_a_worker_that_left_as_scheduled_lacks_nothing() -> None:
    end = end_of(pod(terminated(91, message=log("charge.after"))))
    assert (end.reason, end.exit_code, end.fault) == (EndReason.EXITED, 91, None)
    assert landed(evidence(end, Method.EXIT))


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ("", "it ended with exit 1 without a line in its termination log"),
        (log("charge.before"), "it ended with exit 1 without an outcome"),
    ],
)
def test_a_worker_that_ended_by_itself_without_an_outcome_is_at_fault(message: str, fault: str) -> None:
    assert end_of(pod(terminated(1, message=message))).fault == fault


def test_another_attempts_words_are_no_evidence() -> None:
    end = end_of(pod(terminated(137, message=log("charge.after").replace("c2f5b1a09e7d4463", "0" * 16))))
    assert end.fault is not None
    assert "nonce" in end.fault
    assert not landed(evidence(end))


def test_the_kubelets_own_deadline_is_a_time_out() -> None:
    end = end_of(pod(terminated(137, message=log()), status={"phase": "Failed", "reason": "DeadlineExceeded"}))
    assert end.reason is EndReason.TIMED_OUT


# --- whose doing an end is -------------------------------------------------------------------------------------


@pytest.mark.parametrize("exit_code", [137, 143])
def test_a_pod_that_we_deleted_was_killed_by_us(exit_code: int) -> None:
    shown = pod(
        terminated(exit_code, message=log("charge.after")),
        metadata=deleted(LATER, grace=5),
        annotations={KILLED_BY: "delete-pod"},
    )
    end = end_of(shown)
    assert (end.reason, end.exit_code) == (EndReason.SIGNALED, exit_code)
    assert landed(evidence(end, Method.DELETE_POD))


def test_a_pod_that_somebody_else_deleted_is_never_our_kill() -> None:
    """Even where it stood at its point, and we had just asked for its end."""
    end = end_of(pod(terminated(143, message=log("charge.after")), metadata=deleted(LATER, grace=5)))
    assert end.reason is EndReason.VANISHED
    assert end.fault == f"pod team-a/kp-{SCOPE.journal}-7f31e2c0-3-1: somebody else deleted it"
    assert not landed(evidence(end, Method.DELETE_POD))


def test_what_somebody_does_to_a_pod_after_its_worker_died_changes_nothing() -> None:
    end = end_of(pod(DIED_AT_ITS_POINT, metadata=deleted(LATER)))
    assert landed(evidence(end))


def test_what_happened_in_the_same_second_is_not_taken_for_our_kill() -> None:
    assert not landed(evidence(end_of(pod(DIED_AT_ITS_POINT, metadata=deleted(FINISHED)))))


def test_our_eviction_is_our_kill_and_somebody_elses_is_not() -> None:
    state = terminated(143, message=log("charge.after"))
    status = disruption("EvictionByEvictionAPI")
    ours = end_of(pod(state, status=status, metadata=deleted(LATER, grace=5), annotations={KILLED_BY: "evict"}))
    assert landed(evidence(ours, Method.EVICT))
    theirs = end_of(pod(state, status=status, metadata=deleted(LATER, grace=5)))
    assert theirs.reason is EndReason.VANISHED
    assert theirs.fault is not None
    assert "somebody else evicted it" in theirs.fault


@pytest.mark.parametrize("method", [Method.DELETE_POD, Method.EVICT])
def test_a_pod_that_we_were_about_to_end_and_somebody_else_killed_is_not_our_kill(method: Method) -> None:
    """As long as a disruption budget refuses its eviction, it bears our mark and is not on its way."""
    end = end_of(pod(DIED_AT_ITS_POINT, annotations={KILLED_BY: method.value}))
    assert end.reason is EndReason.VANISHED
    assert "somebody else killed it before it was asked to go" in (end.fault or "")
    assert not landed(evidence(end, method))


def test_a_pod_that_we_were_about_to_evict_and_somebody_else_deleted_is_not_our_kill() -> None:
    shown = pod(DIED_AT_ITS_POINT, metadata=deleted(LATER, grace=5), annotations={KILLED_BY: "evict"})
    end = end_of(shown)
    assert end.reason is EndReason.VANISHED
    assert "somebody else deleted it before it was evicted" in (end.fault or "")
    assert not landed(evidence(end, Method.EVICT))


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("PreemptionByScheduler", "a pod of higher priority took its place"),
        ("DeletionByTaintManager", "a taint of its node drove it away"),
        ("TerminationByKubelet", "its node ended it"),
    ],
)
def test_a_disruption_is_named(reason: str, words: str) -> None:
    end = end_of(pod(terminated(137, message=log("charge.after")), status=disruption(reason)))
    assert end.reason is EndReason.VANISHED
    assert words in (end.fault or "")


def test_a_pod_that_its_node_evicted_has_vanished() -> None:
    status = {
        "phase": "Failed",
        "reason": "Evicted",
        "message": "The node was low on resource: ephemeral-storage. Threshold quantity: 10%, available: 9%. ",
    }
    end = end_of(pod(terminated(137, message=log("charge.after")), status=status))
    assert end.reason is EndReason.VANISHED
    assert "low on resource" in (end.fault or "")


def test_an_outcome_counts_whatever_became_of_the_pod_meanwhile() -> None:
    state = terminated(0, reason="Completed", message=log(outcome=FINISHED_OUTCOME))
    assert end_of(pod(state, metadata=deleted(FINISHED))).reason is EndReason.EXITED


def test_a_worker_that_left_with_a_code_of_its_own_when_it_was_told_to_did_not_end_by_itself() -> None:
    """At a deadline the engine makes a time-out of it, and no failure of the framework's."""
    failed = {"outcome": "failed", "error": {"class": "KeyboardInterrupt", "message": ""}}
    state = terminated(1, message=log("charge.before", outcome=failed))
    end = end_of(pod(state, metadata=deleted(FINISHED), annotations={KILLED_BY: "sigkill"}))
    assert end.reason is EndReason.SIGNALED


# --- ends that nobody saw --------------------------------------------------------------------------------------


def test_a_container_of_unknown_status_proves_nothing() -> None:
    end = end_of(pod(UNKNOWN, status={"phase": "Failed"}))
    assert (end.reason, end.points) == (EndReason.VANISHED, ())
    assert not landed(evidence(end))


def test_a_pod_given_up_before_it_started_says_why() -> None:
    why = "pod team-a/x: image nowhere cannot be had"
    end = end_of(pod(UNKNOWN, status={"phase": "Failed"}, metadata=deleted(), annotations={NOT_STARTED: why}))
    assert (end.reason, end.fault) == (EndReason.NOT_STARTED, why)


def test_a_pod_that_started_after_it_was_given_up_is_not_one_that_did_not_start() -> None:
    shown = pod(
        terminated(137, message=log("charge.after")),
        metadata=deleted(),
        annotations={NOT_STARTED: "too slow", KILLED_BY: "sigkill"},
    )
    end = end_of(shown)
    assert (end.reason, end.fault) == (EndReason.SIGNALED, "too slow")
    assert [point.point for point in end.points] == ["charge.after"]
    assert not landed(evidence(end))


def test_a_command_that_is_not_there_is_a_start_that_failed() -> None:
    state = terminated(
        128,
        reason="StartError",
        message='failed to create containerd task: exec: "nothing": executable file not found in $PATH',
    )
    end = end_of(pod(state, status={"phase": "Failed"}))
    assert end.reason is EndReason.NOT_STARTED
    assert "executable file not found" in (end.fault or "")


def test_an_unscheduled_pod_that_is_being_deleted_never_ran() -> None:
    end = end_of(pod(node=None, metadata=deleted(LATER), annotations={NOT_STARTED: "no node"}))
    assert (end.reason, end.fault) == (EndReason.NOT_STARTED, "no node")
    foreign = end_of(pod(node=None, metadata=deleted(LATER)))
    assert "deleted by somebody else" in (foreign.fault or "")


def test_a_pod_that_a_node_did_not_admit_never_started() -> None:
    status = {"phase": "Failed", "reason": "OutOfcpu", "message": "Node didn't have enough resource: cpu"}
    end = end_of(pod(status=status))
    assert end.reason is EndReason.NOT_STARTED
    assert "OutOfcpu: Node didn't have enough resource" in (end.fault or "")


def test_a_deleted_pod_whose_node_is_silent_is_waited_for_and_then_lost() -> None:
    shown = pod({"running": {"startedAt": STARTED}}, status={"phase": "Running"}, metadata=deleted(FINISHED))
    assert isinstance(state_of(shown, ATTEMPT, now_ms=NOW_MS), Running)
    end = end_of(shown, now_ms=NOW_MS + 60_000)
    assert end.reason is EndReason.VANISHED
    assert "node-1 does not answer" in (end.fault or "")


# --- not ended -------------------------------------------------------------------------------------------------


def test_a_running_container_counts_as_the_first_line() -> None:
    seen = observation_of(pod({"running": {"startedAt": STARTED}}), ATTEMPT, now_ms=NOW_MS)
    assert (seen.lines, seen.end) == (1, None)
    assert seen.started_ms is not None


def test_a_pod_being_deleted_is_alive_until_its_container_is_dead() -> None:
    shown = pod({"running": {"startedAt": STARTED}}, metadata=deleted(LATER))
    assert isinstance(state_of(shown, ATTEMPT, now_ms=NOW_MS), Running)


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (
            pod({"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "killpoint-langgraph"'}}),
            "image killpoint-langgraph:0.1.0 cannot be had (ImagePullBackOff). Check its name",
        ),
        (
            pod({"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "kp-1" not found'}}),
            'Make what it names, or run it again. The cluster says: secret "kp-1" not found',
        ),
        (
            pod(
                node=None,
                status={
                    "conditions": [
                        {
                            "type": "PodScheduled",
                            "status": "False",
                            "reason": "Unschedulable",
                            "message": "0/1 nodes are available: 1 Insufficient memory.",
                        }
                    ]
                },
            ),
            "tolerate the taint (tolerations), or add a node that can take it. The cluster says: 0/1 nodes",
        ),
        (pod({"waiting": {"reason": "ContainerCreating"}}), "is still being made on node node-1"),
        (pod({"waiting": {"reason": "PodInitializing"}}), "is still being made on node node-1"),
        (
            pod({"waiting": {"reason": "RunContainerError", "message": "no"}}),
            "worker's command and image. The cluster says: no",
        ),
        (pod(node=None), "no scheduler says why"),
    ],
)
def test_what_a_pod_waits_for_is_said_with_the_name_of_what_is_at_fault(shown: dict[str, Any], words: str) -> None:
    state = state_of(shown, ATTEMPT, now_ms=NOW_MS)
    assert isinstance(state, Starting)
    assert words in state.why
    assert observation_of(shown, ATTEMPT, now_ms=NOW_MS).lines == 0


@pytest.mark.parametrize(
    ("reason", "refused"), [("ErrImagePull", True), ("RunContainerError", True), ("ContainerCreating", False)]
)
def test_a_first_try_that_failed_is_told_from_a_start_that_takes_a_moment(reason: str, refused: bool) -> None:  # noqa: FBT001
    assert observation_of(pod({"waiting": {"reason": reason}}), ATTEMPT, now_ms=NOW_MS).refused is refused


def test_an_image_that_cannot_be_had_is_told_of_with_the_secrets_to_pull_it_with() -> None:
    """A kubelet goes on without one that is missing; the pod says so nowhere."""
    shown = pod({"waiting": {"reason": "ErrImagePull", "message": "denied"}})
    shown["spec"]["imagePullSecrets"] = [{"name": "registry-of-team-a"}]
    state = state_of(shown, ATTEMPT, now_ms=NOW_MS)
    assert isinstance(state, Starting)
    assert "and that imagePullSecrets are there: registry-of-team-a. The cluster says: denied" in state.why


def test_another_containers_end_is_not_the_workers() -> None:
    shown = pod({"running": {"startedAt": STARTED}})
    sidecar = {"name": "istio-proxy", "state": terminated(137)}
    shown["status"]["containerStatuses"].insert(0, sidecar)
    assert isinstance(state_of(shown, ATTEMPT, now_ms=NOW_MS), Running)


# --- whose pod it is -------------------------------------------------------------------------------------------


def test_a_pod_is_ours_by_owner_journal_attempt_and_assignment() -> None:
    shown = pod()
    assert is_ours(shown, SCOPE, ATTEMPT)
    assert not is_ours(shown, SCOPE, ATTEMPT, digest="0" * 64)
    assert not is_ours(shown, SCOPE, AttemptId(trial=TRIAL, number=1, role=Role.INSPECTOR))
    other = Owner(api_version="v1", kind="ConfigMap", name="crash-table", uid="another")
    assert not is_ours(shown, Scope(namespace="team-a", journal=SCOPE.journal, owner=other), ATTEMPT)
    assert not is_ours(shown, Scope(namespace="team-a", journal="ffffffff", owner=SCOPE.owner), ATTEMPT)
