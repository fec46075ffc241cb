"""Pods as a kubelet of Kubernetes 1.34 shows them, cut down to what matters; values taken from real ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

from killpoint.core.contract import Assigned, assignment_of
from killpoint.kubernetes.manifests import Services, WorkerTemplate, worker_pod
from killpoint.kubernetes.names import Owner, Scope, journal_id
from killpoint.model.cells import AttemptId, Coordinates, Kill, Method, TrialId
from killpoint.model.evidence import Ordered
from killpoint.ports import Launch

UID = "0d9c6f0e-58f1-4a0f-9d4e-0a4f7c1f3f10"
SCOPE = Scope(
    namespace="team-a",
    journal=journal_id(UID),
    owner=Owner(api_version="killpoint.dev/v1alpha1", kind="CrashExperiment", name="crash-table", uid=UID),
)
TRIAL = TrialId(cell="7f31e2c0", number=3)
ATTEMPT = AttemptId(trial=TRIAL, number=1)
NONCE_VALUE = "c2f5b1a09e7d4463"
STARTED = "2026-11-30T17:21:27Z"
FINISHED = "2026-11-30T17:21:29Z"
LATER = "2026-11-30T17:21:31Z"
NOW_MS = round(datetime(2026, 11, 30, 17, 21, 40, tzinfo=UTC).timestamp() * 1000)
TEMPLATE = WorkerTemplate(image="killpoint-langgraph:0.1.0", command=("python", "-m", "killpoint_langgraph"))
SERVICES = Services(
    payments_url="http://killpoint-payments:8080",
    control_url="http://killpoint-control:8080",
    database_url="postgresql://killpoint_run_1:word@postgres:5432/killpoint_run_1",
)


def launch(
    attempt: AttemptId = ATTEMPT,
    *,
    method: Method = Method.SIGKILL,
    at: str | None = "charge.after",
    **changes: Any,  # noqa: ANN401 - any field of a Launch
) -> Launch:
    """An attempt to be started; ``changes``: of its Launch."""
    assigned = Assigned(
        experiment="crash-table",
        workflow="charge",
        attempt=attempt,
        run="run-1",
        nonce=NONCE_VALUE,
        action="start",
        scheduled=at,
        method=method,
        coordinates=Coordinates(setup="langgraph", kill=Kill(at=(at,) if at else (), method=method, name="k")),
        ordered=(Ordered(action="charge", order="order-1", amount=4900, currency="EUR"),),
    )
    values: dict[str, Any] = {
        "attempt": attempt, "run": "run-1", "setup": "langgraph", "store": "postgres",
        "assignment": assignment_of(assigned), "token": "kp1.token",
    }  # fmt: skip
    return Launch(**{**values, **changes})


def manifest(of: Launch | None = None, *, template: WorkerTemplate = TEMPLATE) -> dict[str, Any]:
    return worker_pod(SCOPE, of or launch(), template=template, services=SERVICES, active_seconds=210)


def pod(
    state: Mapping[str, Any] | None = None,
    *,
    status: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    annotations: Mapping[str, str] | None = None,
    node: str | None = "node-1",
) -> dict[str, Any]:
    """The pod of ATTEMPT. ``state``: of its worker; without one there are no container statuses."""
    made = deepcopy(manifest())
    made["metadata"] |= {"uid": "7a0b", "resourceVersion": "812", **(metadata or {})}
    made["metadata"]["annotations"] |= annotations or {}
    if node is not None:
        made["spec"]["nodeName"] = node
    made["status"] = {"phase": "Pending", **(status or {})}
    if state is not None:
        worker = {"name": "worker", "restartCount": 0, "ready": False, "lastState": {}, "state": dict(state)}
        made["status"]["containerStatuses"] = [worker]
    return made


def terminated(exit_code: int, *, reason: str = "Error", message: str = "", finished: str = FINISHED) -> dict[str, Any]:
    ended = {"exitCode": exit_code, "reason": reason, "startedAt": STARTED, "finishedAt": finished}
    return {"terminated": {**ended, **({"message": message} if message else {})}}


def log(*points: str, outcome: Mapping[str, Any] | None = None) -> str:
    """A termination log as a worker writes it."""
    lines: list[Mapping[str, Any]] = [
        {"killpoint": 1, "attempt": str(ATTEMPT), "nonce": NONCE_VALUE},
        *({"point": point, "n": 1} for point in points),
        *([outcome] if outcome else []),
    ]
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def deleted(at: str = FINISHED, *, grace: int = 0) -> dict[str, Any]:
    """Metadata of a pod that was deleted; ``at`` is when its grace is over."""
    return {"deletionTimestamp": at, "deletionGracePeriodSeconds": grace}


def disruption(reason: str, *, since: str = FINISHED) -> dict[str, Any]:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "lastTransitionTime": since}
    return {"conditions": [condition]}
