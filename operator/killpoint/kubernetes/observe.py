"""Observe: from a pod as the API server shows it to what is known of its attempt. Pure.

The state of the container ``worker`` is what counts. A pod's phase lags behind it by a second, and a pod object that is
gone, or being deleted, says nothing of its process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, assert_never

from killpoint.core.contract import Reading, read_termination
from killpoint.core.points import OWN_EXIT
from killpoint.kubernetes import names
from killpoint.kubernetes.starting import is_refused, why_not_started
from killpoint.kubernetes.wording import quoted
from killpoint.model.cells import AttemptId, Method
from killpoint.model.evidence import AttemptEnd, EndReason
from killpoint.model.observations import Observation

Pod = Mapping[str, Any]

LOST_SECONDS_MAX = 60
"""How long after its grace a deleted pod may still be shown as running before its node is taken to be lost."""
_SIGNALED = 128
_RAN = ("Completed", "Error", "OOMKilled")
"""Reasons of a container that ran, and whose end the container runtime saw."""
_NEVER_RAN = ("ContainerCannotRun", "StartError")
_OF_OTHERS = {
    "DeletionByPodGC": "its node is gone",
    "DeletionByTaintManager": "a taint of its node drove it away",
    "EvictionByEvictionAPI": "somebody else evicted it",
    "PreemptionByScheduler": "a pod of higher priority took its place",
    "TerminationByKubelet": "its node ended it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Starting:
    """Its worker has not started. ``why`` says what it waits for, and the remedy where one is known."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    started_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    end: AttemptEnd


PodState = Starting | Running | Ended


def observation_of(pod: Pod, attempt: AttemptId, *, now_ms: int) -> Observation:
    """What a pod shows of its attempt.

    The termination log of a living container cannot be read from outside: that it runs counts as its first line.
    """
    match state_of(pod, attempt, now_ms=now_ms):
        case Starting(why=why):
            return Observation(attempt=attempt, waits=why, refused=is_refused(pod))
        case Running(started_ms=started_ms):
            return Observation(attempt=attempt, started_ms=started_ms, lines=1)
        case Ended(end=end):
            lines = len(end.points) + (end.outcome is not None) + 1
            return Observation(attempt=attempt, started_ms=end.started_ms, lines=lines, end=end)
        case unknown:
            assert_never(unknown)


def state_of(pod: Pod, attempt: AttemptId, *, now_ms: int) -> PodState:
    """Whether a pod's worker is still to start, runs, or is certainly over."""
    state = _worker(pod).get("state") or {}
    if "terminated" in state:
        return Ended(end=_of_container(pod, attempt, state["terminated"], now_ms=now_ms))
    if (end := _without_container(pod, now_ms=now_ms)) is not None:
        return Ended(end=end)
    if "running" in state:
        return Running(started_ms=milliseconds(state["running"].get("startedAt")))
    return Starting(why=why_not_started(pod))


def asked_ms(pod: Pod) -> int | None:
    """When the deletion of a pod was asked for; None where it was not. To the second, as the API server keeps it."""
    until = milliseconds(pod["metadata"].get("deletionTimestamp"))
    if until is None:
        return None
    return until - 1000 * int(pod["metadata"].get("deletionGracePeriodSeconds") or 0)


def killed_by_us(pod: Pod) -> str | None:
    """The method by which the harness asked for the pod's end; None where it did not."""
    method = annotation(pod, names.KILLED_BY)
    return method or None


def is_parking(pod: Pod) -> bool:
    """Whether the pod's attempt is one that waits for the harness at its point."""
    return bool(annotation(pod, names.PARKS))


def is_ours(pod: Pod, scope: names.Scope, attempt: AttemptId, *, digest: str | None = None) -> bool:
    """Whether a pod of an attempt's name is really that attempt's, and with this assignment where one is given."""
    return (
        belongs(pod, scope)
        and pod["metadata"]["labels"].get(names.ATTEMPT) == str(attempt)
        and (digest is None or annotation(pod, names.ASSIGNMENT_DIGEST) == digest)
    )


def belongs(pod: Pod, scope: names.Scope) -> bool:
    """Whether a pod is the experiment's: labels anybody can set, an owner only with the right to."""
    return is_owned(pod, scope.owner.uid) and (pod["metadata"].get("labels") or {}).get(names.JOURNAL) == scope.journal


def is_owned(pod: Pod, uid: str) -> bool:
    """Whether a pod belongs to the object with this UID."""
    return uid in {owner.get("uid") for owner in pod["metadata"].get("ownerReferences") or ()}


def with_message(pod: Pod, change: Callable[[str], str]) -> Pod:
    """The pod with its worker's last words as ``change`` makes them."""
    worker = _worker(pod)
    terminated = (worker.get("state") or {}).get("terminated") or {}
    if not terminated.get("message"):
        return pod
    changed = {**worker, "state": {"terminated": {**terminated, "message": change(str(terminated["message"]))}}}
    others = [one for one in pod["status"]["containerStatuses"] if one.get("name") != names.CONTAINER]
    return {**pod, "status": {**pod["status"], "containerStatuses": [*others, changed]}}


def annotation(pod: Pod, name: str) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(name) or "")


def milliseconds(time: str | None) -> int | None:
    """An API time as milliseconds since the Unix epoch."""
    return None if not time else round(datetime.fromisoformat(time).timestamp() * 1000)


def _worker(pod: Pod) -> Mapping[str, Any]:
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    found: Mapping[str, Any] = next((status for status in statuses if status.get("name") == names.CONTAINER), {})
    return found


def _called(pod: Pod) -> str:
    return f"pod {pod['metadata'].get('namespace', '')}/{pod['metadata']['name']}"


# --- a container that ended ------------------------------------------------------------------------------------


def _of_container(pod: Pod, attempt: AttemptId, terminated: Mapping[str, Any], *, now_ms: int) -> AttemptEnd:
    reading = read_termination(
        str(terminated.get("message") or ""), attempt=str(attempt), nonce=annotation(pod, names.NONCE)
    )
    finished_ms = milliseconds(terminated.get("finishedAt")) or now_ms
    end = AttemptEnd(
        reason=EndReason.EXITED,
        exit_code=int(terminated.get("exitCode", 0)),
        # To the second. The worker's own words say when it still lived.
        at_ms=max(finished_ms, *(point.at_ms or 0 for point in reading.points), 0),
        started_ms=milliseconds(terminated.get("startedAt")),
        points=reading.points,
        points_left_out=reading.points_left_out,
        outcome=reading.outcome,
        fault=reading.fault,
    )
    said = str(terminated.get("reason") or "")
    if said not in _RAN:
        return _unseen(pod, end, said=said, message=str(terminated.get("message") or ""))
    return _as_it_ended(pod, end, finished_ms=finished_ms, out_of_memory=said == "OOMKilled", reading=reading)


def _unseen(pod: Pod, end: AttemptEnd, *, said: str, message: str) -> AttemptEnd:
    """A container of which the runtime does not say how it ended, or that it could not start."""
    given_up = annotation(pod, names.NOT_STARTED)
    if said in _NEVER_RAN:
        fault = (
            f"{_called(pod)}: its worker could not be started ({said}). Check the worker's command."
            f" The cluster says: {quoted(message)}"
        )
        return _nothing(end, EndReason.NOT_STARTED, fault)
    if given_up:
        return _nothing(end, EndReason.NOT_STARTED, given_up)
    return _nothing(end, EndReason.VANISHED, f"{_called(pod)} is over, and nobody saw how ({said or 'no reason'})")


def _nothing(end: AttemptEnd, reason: EndReason, fault: str) -> AttemptEnd:
    return AttemptEnd(reason=reason, at_ms=end.at_ms, fault=fault)


def _as_it_ended(pod: Pod, end: AttemptEnd, *, finished_ms: int, out_of_memory: bool, reading: Reading) -> AttemptEnd:
    if end.exit_code == 0 and end.outcome is not None:
        return end
    disruption = _disruption(pod, finished_ms) or _before_it_was_asked(pod, end)
    if disruption is not None:
        return replace(end, reason=EndReason.VANISHED, fault=f"{_called(pod)}: {disruption}")
    if pod.get("status", {}).get("reason") == "DeadlineExceeded":
        return replace(end, reason=EndReason.TIMED_OUT)
    if out_of_memory:
        return replace(end, reason=EndReason.OUT_OF_MEMORY)
    if (end.exit_code or 0) > _SIGNALED or _left_when_asked(pod, finished_ms):
        # Given up as not started, and then it had.
        return replace(end, reason=EndReason.SIGNALED, fault=end.fault or annotation(pod, names.NOT_STARTED) or None)
    return replace(end, fault=end.fault or _silence(end, reading))


def _left_when_asked(pod: Pod, finished_ms: int) -> bool:
    """Whether it ended itself because it was told to (SIGTERM comes first), with an exit code of its own."""
    asked = asked_ms(pod)
    return asked is not None and finished_ms >= asked


def _silence(end: AttemptEnd, reading: Reading) -> str | None:
    """What is wrong with an attempt that ended by itself and said too little."""
    if end.outcome is not None or end.exit_code == OWN_EXIT:
        return None
    missing = "an outcome" if reading.header else "a line in its termination log"
    return f"it ended with exit {end.exit_code} without {missing}"


def _disruption(pod: Pod, finished_ms: int | None) -> str | None:
    """Who else ended the pod, in words; None where nobody did, or only after the worker was over.

    API times are in whole seconds. What happened in the same second is not taken for our kill.
    """
    if pod.get("status", {}).get("reason") == "Evicted":
        return f"its node evicted it: {pod['status'].get('message') or 'no reason given'}"
    ours = killed_by_us(pod)
    for condition in pod.get("status", {}).get("conditions") or ():
        if condition.get("type") != "DisruptionTarget" or condition.get("status") != "True":
            continue
        reason = str(condition.get("reason") or "")
        since = milliseconds(condition.get("lastTransitionTime"))
        is_our_eviction = reason == "EvictionByEvictionAPI" and ours == Method.EVICT.value
        if not is_our_eviction and _not_before(finished_ms, since):
            return f"{_OF_OTHERS.get(reason, reason)} ({reason})"
    asked = asked_ms(pod)
    if asked is not None and ours is None and _not_before(finished_ms, asked):
        return "somebody else deleted it"
    return None


def _before_it_was_asked(pod: Pod, end: AttemptEnd) -> str | None:
    """Who else killed a pod that bears our mark, in words; None where nobody did.

    The mark comes before the request, by far where a disruption budget refuses the eviction again and again.
    """
    ours = killed_by_us(pod)
    if ours not in {Method.DELETE_POD.value, Method.EVICT.value} or (end.exit_code or 0) <= _SIGNALED:
        return None
    if asked_ms(pod) is None:
        return "somebody else killed it before it was asked to go"
    conditions = pod.get("status", {}).get("conditions") or ()
    if ours == Method.EVICT.value and all(one.get("reason") != "EvictionByEvictionAPI" for one in conditions):
        return "somebody else deleted it before it was evicted"
    return None


def _not_before(finished_ms: int | None, since: int | None) -> bool:
    return finished_ms is None or since is None or finished_ms >= since


# --- a pod whose container says nothing ------------------------------------------------------------------------


def _without_container(pod: Pod, *, now_ms: int) -> AttemptEnd | None:
    """The end of a pod that is over although its container does not say so; None where it is not certainly over."""
    status = pod.get("status", {})
    until = milliseconds(pod["metadata"].get("deletionTimestamp"))
    given_up = annotation(pod, names.NOT_STARTED)
    if until is not None and not pod.get("spec", {}).get("nodeName"):
        # A pod that is being deleted is not bound to a node any more: it never ran, and never will.
        fault = given_up or f"{_called(pod)} was deleted by somebody else before it had a node"
        return AttemptEnd(reason=EndReason.NOT_STARTED, at_ms=now_ms, fault=fault)
    if status.get("phase") in {"Failed", "Succeeded"}:
        return _of_phase(pod, given_up=given_up, now_ms=now_ms)
    if until is not None and now_ms > until + 1000 * LOST_SECONDS_MAX:
        words = f"{_called(pod)} does not end: node {pod['spec']['nodeName']} does not answer"
        return AttemptEnd(reason=EndReason.VANISHED, at_ms=now_ms, fault=words)
    return None


def _of_phase(pod: Pod, *, given_up: str, now_ms: int) -> AttemptEnd:
    status = pod["status"]
    words = f"{status.get('reason') or status['phase']}: {status.get('message') or 'no message'}"
    ran = "running" in (_worker(pod).get("state") or {})
    if ran or status.get("reason") == "Evicted":
        return AttemptEnd(
            reason=EndReason.VANISHED,
            at_ms=now_ms,
            fault=f"{_called(pod)} is over, and nobody saw how: {_disruption(pod, None) or words}",
        )
    fault = given_up or f"{_called(pod)}: its worker never started: {words}"
    return AttemptEnd(reason=EndReason.NOT_STARTED, at_ms=now_ms, fault=fault)
