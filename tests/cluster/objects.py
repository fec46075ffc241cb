"""Experiments of a namespace as their users see them: objects, what they say, and what is there of them."""

from __future__ import annotations

import json
from typing import Any

from tests.cluster.kubectl import Kubectl
from tests.cluster.operator_process import wait_for

END_SECONDS_MAX = 120.0
GONE_SECONDS_MAX = 30.0


class Experiments:
    """Experiments of a namespace, as a user sees them."""

    def __init__(self, kubectl: Kubectl) -> None:
        self.kubectl = kubectl

    def apply(self, *documents: dict[str, Any]) -> None:
        self.kubectl.apply(*documents)

    def get(self, name: str) -> dict[str, Any]:
        return self.kubectl.get("crashexperiment", name)

    def status(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(name).get("status", {})
        return found

    def said(self, name: str) -> dict[str, tuple[str, str]]:
        conditions = self.status(name).get("conditions", [])
        return {found["type"]: (found["status"], found["reason"]) for found in conditions}

    def patch(self, name: str, **spec: object) -> None:
        change = json.dumps({"spec": spec})
        self.kubectl("patch", "crashexperiment", name, "--type=merge", f"--patch={change}")

    def complete(self, name: str) -> dict[str, Any]:
        """Wait for its end, as users do; its status."""
        self.kubectl("wait", f"crashexperiment/{name}", "--for=condition=Complete", f"--timeout={END_SECONDS_MAX:.0f}s")
        return self.status(name)

    def runs(self, name: str) -> None:
        """Wait until a worker of it runs."""
        wait_for(lambda: self._running(name), f"a worker of {name} to run: {self.said(name)}")

    def _running(self, name: str) -> bool:
        uid = self.get(name)["metadata"]["uid"]
        pods = self.kubectl.get("pods", f"--selector=killpoint.dev/experiment-uid={uid}")["items"]
        return any(pod["status"]["phase"] == "Running" for pod in pods)

    def left(self) -> list[str]:
        """What there is of any experiment in the namespace, besides the objects themselves."""
        found = self.kubectl.get("pods,secrets", "--selector=app.kubernetes.io/managed-by=killpoint")["items"]
        return [f"{item['kind']}/{item['metadata']['name']}" for item in found]

    def nothing_left(self, *, seconds: float = GONE_SECONDS_MAX) -> None:
        wait_for(lambda: not self.left(), f"nothing to be left: {self.left()}", seconds=seconds)
