"""Abort every experiment that still runs, and wait until nothing of it is left but its result.

Run before a release is removed: without an operator, nobody would take the finalizers off unfinished experiments and
their pods. Uses the standard library and the operator's own service account.

Environment: KILLPOINT_NAMESPACES (comma list, or *), KILLPOINT_SECONDS_MAX.
Exit codes: 0 none is left running, 1 some are.
"""

from __future__ import annotations

import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
GROUP = "/apis/killpoint.dev/v1alpha1"
PAUSE_SECONDS = 1.0
GONE = 404
OURS = "killpoint.dev/"


def main() -> int:
    deadline = time.monotonic() + float(os.environ["KILLPOINT_SECONDS_MAX"])
    aborted: set[str] = set()
    while running := list(unfinished()):
        for experiment in running:
            name, path = called(experiment), path_of(experiment)
            if name not in aborted:
                say(f"{name} still runs: it is aborted")
                ask(path, change={"spec": {"abort": True}})
                aborted.add(name)
        if time.monotonic() > deadline:
            names = ", ".join(sorted(called(experiment) for experiment in running))
            say(f"not over yet: {names}. Does the operator run? Its log may say more.")
            say("With --no-hooks, nobody takes the finalizers off these experiments and their pods but you.")
            return 1
        time.sleep(PAUSE_SECONDS)
    say("no experiment runs")
    return 0


def unfinished() -> Iterator[dict[str, Any]]:
    """Experiments that are not complete, or on which the operator still has its finalizer."""
    namespaces = os.environ["KILLPOINT_NAMESPACES"]
    for place in [""] if namespaces == "*" else [f"/namespaces/{name}" for name in namespaces.split(",")]:
        found = ask(f"{GROUP}{place}/crashexperiments")
        for experiment in found.get("items", []):
            conditions = experiment.get("status", {}).get("conditions", [])
            complete = any((one["type"], one["status"]) == ("Complete", "True") for one in conditions)
            if not complete or any(OURS in name for name in experiment["metadata"].get("finalizers", [])):
                yield experiment


def ask(path: str, change: dict[str, Any] | None = None) -> dict[str, Any]:
    """The answer's document; empty where there is nothing, such as no CRD. Raises HTTPError for other refusals."""
    address = f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}{path}"
    request = urllib.request.Request(
        address,
        method="GET" if change is None else "PATCH",
        data=None if change is None else json.dumps(change).encode(),
        headers={
            "Authorization": f"Bearer {(ACCOUNT / 'token').read_text().strip()}",
            "Content-Type": "application/merge-patch+json",
        },
    )
    trusted = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    try:
        with urllib.request.urlopen(request, timeout=10, context=trusted) as answer:  # noqa: S310 - as above
            document: dict[str, Any] = json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code == GONE:
            return {}
        raise
    return document


def called(experiment: dict[str, Any]) -> str:
    return f"{experiment['metadata']['namespace']}/{experiment['metadata']['name']}"


def path_of(experiment: dict[str, Any]) -> str:
    return f"{GROUP}/namespaces/{experiment['metadata']['namespace']}/crashexperiments/{experiment['metadata']['name']}"


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
