"""CrashExperiment objects as an API server hands them out, for the tests of the operator."""

from __future__ import annotations

from typing import Any

UID = "1aa05aa8-6291-415b-8901-19eff3391dc0"


def experiment(*, status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - any field
    return {
        "apiVersion": "killpoint.dev/v1alpha1",
        "kind": "CrashExperiment",
        "metadata": {
            "name": "tiny",
            "namespace": "team",
            "uid": UID,
            "generation": 1,
            "resourceVersion": "7",
            "creationTimestamp": "2026-11-30T10:00:00Z",
        },
        "spec": spec,
        **({} if status is None else {"status": status}),
    }


def status(*, complete: bool = False, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - any field
    condition = {
        "type": "Complete",
        "status": "True" if complete else "False",
        "reason": "AsExpected" if complete else "Running",
        "message": "",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-11-30T10:00:05Z",
    }
    ended = {"completionTime": "2026-11-30T10:00:05Z"} if complete else {}
    return {"observedGeneration": 1, "conditions": [condition], **ended, **fields}
