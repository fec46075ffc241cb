"""Check that a release is fit for experiments: its services answer, and the API server takes an experiment (dry run).

Environment: KILLPOINT_PAYMENTS_URL, KILLPOINT_CONTROL_URL, KILLPOINT_POD_NAMESPACE.
Exit codes: 0 fit, 1 not; what is wrong is on standard output.
"""

from __future__ import annotations

import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
SECONDS_MAX = 10
READY_SECONDS_MAX = 40.0
PAUSE_SECONDS = 1.0
OK, CREATED = 200, 201
REFUSED = frozenset({400, 422})


def main() -> int:
    faults = [
        *ready("payments", os.environ["KILLPOINT_PAYMENTS_URL"]),
        *ready("control", os.environ["KILLPOINT_CONTROL_URL"]),
        *takes_experiments(),
    ]
    for fault in faults:
        say(f"FAULT {fault}")
    return 1 if faults else 0


def ready(name: str, url: str) -> list[str]:
    """What is wrong with a service. It is asked for a while: network policies know a new pod after a moment only."""
    request = urllib.request.Request(f"{url}/readyz")  # noqa: S310 - one of our own addresses, by http
    deadline = time.monotonic() + READY_SECONDS_MAX
    while (answer := fetch(request))[0] != OK:
        if time.monotonic() > deadline:
            return [f"{name} is not ready: {url}/readyz answers {answer[0]} {answer[1].strip()}"]
        time.sleep(PAUSE_SECONDS)
    say(f"{name} is ready")
    return []


def takes_experiments() -> list[str]:
    """What is wrong with how experiments are taken: a right one has to be, a wrong one must not."""
    right = create({"matrix": {"setup": ["langgraph"], "key": ["stable"], "kill": [{"at": ["charge.after"]}]}})
    wrong = create({"matrix": {"setup": ["langgraph"]}, "trials": 0})
    faults = []
    if right[0] != CREATED:
        faults.append(f"an experiment is refused: {right[0]} {right[1]}")
    if wrong[0] not in REFUSED:
        faults.append(f"an experiment with no trial is not refused: {wrong[0]}. Is the CRD this version's?")
    if not faults:
        say("experiments are taken, and wrong ones refused")
    return faults


def create(spec: dict[str, Any]) -> tuple[int, str]:
    """The answer to making an experiment, which is not made."""
    namespace = os.environ["KILLPOINT_POD_NAMESPACE"]
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    path = f"/apis/killpoint.dev/v1alpha1/namespaces/{namespace}/crashexperiments?dryRun=All&fieldValidation=Strict"
    document = {
        "apiVersion": "killpoint.dev/v1alpha1",
        "kind": "CrashExperiment",
        "metadata": {"generateName": "helm-test-"},
        "spec": spec,
    }
    request = urllib.request.Request(
        f"https://{host}:{port}{path}",
        data=json.dumps(document).encode(),
        headers={
            "Authorization": f"Bearer {(ACCOUNT / 'token').read_text().strip()}",
            "Content-Type": "application/json",
        },
    )
    return fetch(request)


def fetch(request: urllib.request.Request) -> tuple[int, str]:
    """Status and text of an answer; 0 and the reason where there is none."""
    trusted = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    try:
        with urllib.request.urlopen(request, timeout=SECONDS_MAX, context=trusted) as answer:  # noqa: S310 - as made
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
