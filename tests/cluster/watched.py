"""Pods as a watch of ours saw them: what the API server said of each, whatever killpoint makes of it."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any

from tests.cluster.kubectl import Kubectl

ATTEMPTS = "killpoint.dev/attempt"
JOURNAL = "killpoint.dev/journal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One attempt's pod, as it was when it was last seen."""

    pod: Mapping[str, Any]

    @property
    def terminated(self) -> Mapping[str, Any]:
        """The end of its container: exitCode, reason, message. Empty while it runs."""
        statuses = self.pod["status"].get("containerStatuses", [])
        found: Mapping[str, Any] = statuses[0]["state"].get("terminated", {}) if statuses else {}
        return found

    @property
    def points(self) -> tuple[str, ...]:
        """The points in its termination message, in their order."""
        lines = [json.loads(line) for line in str(self.terminated.get("message", "")).splitlines()]
        return tuple(line["point"] for line in lines if "point" in line)

    @property
    def started(self) -> datetime:
        """In whole seconds, as the kubelet has it."""
        return datetime.fromisoformat(self.terminated["startedAt"])

    @property
    def ended(self) -> datetime:
        """In whole seconds, as the kubelet has it."""
        return datetime.fromisoformat(self.terminated["finishedAt"])

    @property
    def disruption(self) -> str | None:
        """Why it was about to be disrupted, as the API server has it."""
        conditions = self.pod["status"].get("conditions", [])
        return next((found["reason"] for found in conditions if found["type"] == "DisruptionTarget"), None)

    @property
    def killed_by(self) -> str | None:
        """The method by which the operator says that it is about to end it."""
        found: str | None = self.pod["metadata"].get("annotations", {}).get("killpoint.dev/killed-by")
        return found


class Watched:
    """The attempts' pods of a namespace since the watch began."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def first_end(self, attempt: str) -> Seen:
        """The pod in the first event that shows its end: before killpoint frees it."""
        return next(
            seen
            for pod in self._pods()
            if pod["metadata"]["labels"][ATTEMPTS] == attempt and (seen := Seen(pod=pod)).terminated
        )

    def ends(self) -> list[Seen]:
        """Every pod in the first event that shows its end."""
        found: dict[str, Seen] = {}
        for pod in self._pods():
            if (seen := Seen(pod=pod)).terminated:
                found.setdefault(pod["metadata"]["uid"], seen)
        return list(found.values())

    def uids(self, journal: str) -> dict[str, set[str]]:
        """Attempt → every pod that was made for it in this run."""
        made: dict[str, set[str]] = {}
        for pod in self._pods():
            labels = pod["metadata"]["labels"]
            if labels[JOURNAL] == journal:
                made.setdefault(labels[ATTEMPTS], set()).add(pod["metadata"]["uid"])
        return made

    def _pods(self) -> Iterator[dict[str, Any]]:
        """One event a line: the last one may be half written."""
        self._file.seek(0)
        for line in self._file:
            if line.endswith("\n"):
                yield json.loads(line)


@contextmanager
def watching(kubectl: Kubectl) -> Iterator[Watched]:
    """Watch the attempts' pods of kubectl's namespace."""
    with tempfile.TemporaryFile("w+") as file:
        watch = subprocess.Popen(
            (
                str(kubectl.program),
                f"--kubeconfig={kubectl.kubeconfig}",
                f"--namespace={kubectl.namespace}",
                "get",
                "pods",
                "--watch",
                f"--selector={ATTEMPTS}",
                '--output=jsonpath={@}{"\\n"}',
            ),
            stdin=subprocess.DEVNULL,
            stdout=file,
            env={name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
        )
        try:
            yield Watched(file)
        finally:
            watch.kill()
            watch.wait()
