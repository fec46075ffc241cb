"""Pods for tests, as the strictest Pod Security standard wants them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.cluster.images.catalog import TAG, named


def pod(
    name: str,
    image: str,
    *,
    command: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A pod that runs once, from one of the project's images. Without ``command``: the image's own entry point."""
    (known,) = named([image])
    container = {
        "name": "worker",
        "image": f"{known.repository}:{TAG}",
        "imagePullPolicy": "IfNotPresent",
        "env": [{"name": key, "value": value} for key, value in (env or {}).items()],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 - an empty volume of this pod
        **({"command": list(command)} if command else {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {
            "restartPolicy": "Never",
            # A process that is number 1 of its namespace cannot kill itself.
            "shareProcessNamespace": True,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 1,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [container],
            "volumes": [{"name": "tmp", "emptyDir": {}}],
        },
    }
