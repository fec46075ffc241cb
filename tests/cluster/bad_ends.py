"""Experiments that cannot run to a result, each for a reason of its own, and what their statuses have to say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.cluster.operator_process import experiment

GRACE_SECONDS = 20
"""How long an attempt may take to begin: on a busy node, the kubelet takes some of it to say what is wrong."""
TURN_SECONDS = 240
"""The same for what is to begin after all."""
PLACE_LABEL = "killpoint-test/place"
SECRET_LABEL = "killpoint-test/without-secret"
"""Of a node: the namespace whose pods are meant."""
REFUSED_LABEL = "killpoint-test/refused"
UNANSWERED_LABEL = "killpoint-test/unanswered"
REFUSAL = "nobody of team red gets in"
SMALL: Mapping[str, Any] = {"requests": {"cpu": "10m", "memory": "48Mi"}}
HEADER = (
    "import json,os;A=json.loads(os.environ['KILLPOINT_ASSIGNMENT']);"
    "L=os.open('/dev/termination-log',os.O_WRONLY|os.O_APPEND);"
    "os.write(L,json.dumps(dict(killpoint=1,attempt=A['attempt'],nonce=A['nonce'])).encode()+b'\\n');"
)
"""The first line of a worker that keeps to the contract."""
LONG_NAME = ".".join(("n" * 63, "m" * 63, "o" * 63, "p" * 61))
"""As long as a name may be: 253 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """An experiment, and what its end has to say."""

    name: str
    says: Sequence[str]
    """Texts that one reason of its status has all of: what is at fault, and what to do about it."""
    where: str = "plain"
    """The namespace that it is in, as the test calls it."""
    worker: Mapping[str, Any] = field(default_factory=dict)
    """Fields of its worker."""
    limits: Mapping[str, int] = field(default_factory=dict)
    grace: int | None = None
    """Seconds that it may wait for something; None: ``startupSeconds``."""

    def document(self) -> dict[str, Any]:
        limits = {"startupSeconds": GRACE_SECONDS, "inconclusiveRetries": 0, **self.limits}
        made = experiment(self.name, limits=limits)
        made["spec"]["workers"][0] |= {"resources": SMALL, **self.worker}
        return made

    def __str__(self) -> str:
        return self.name


def python(program: str) -> dict[str, Any]:
    return {"command": ["python", "-c", program]}


BEGINS: Mapping[str, Any] = {"limits": {"startupSeconds": TURN_SECONDS}, "grace": GRACE_SECONDS}
"""Of a worker that does begin: a busy node may take longer over it than over saying what is wrong."""
NO_IMAGE = "localhost/killpoint-no-such-image:1"
BAD: tuple[End, ...] = (
    # --- what the worker is made of
    End(name="image-missing", worker={"image": NO_IMAGE}, says=(NO_IMAGE, "cannot be had", "Check its name")),
    End(name="image-misnamed", worker={"image": "localhost/No:1"}, says=("InvalidImageName", "Check its name")),
    End(
        name="pull-secret-missing",
        worker={"image": NO_IMAGE, "imagePullSecrets": [{"name": "no-such-secret"}]},
        says=(NO_IMAGE, "no-such-secret", "imagePullSecrets"),
    ),
    End(
        name="command-missing",
        worker={"command": ["/no/such/program"]},
        says=("/no/such/program", "Check the worker's command"),
        **BEGINS,
    ),
    End(
        name="requests-above-limits",
        worker={"resources": {"requests": {"memory": "96Mi"}, "limits": {"memory": "64Mi"}}},
        says=("must be less than or equal to memory limit", "spec.workers[].resources"),
    ),
    # --- where it can run
    End(
        name="node-missing",
        worker={"nodeSelector": {PLACE_LABEL: "nowhere"}},
        says=("has no node", "didn't match Pod's node affinity/selector", "add a node that can take it"),
    ),
    End(
        name="node-too-small",
        worker={"resources": {"requests": {"memory": "900Gi"}, "limits": {"memory": "900Gi"}}},
        says=("has no node", "Insufficient memory", "Lower what the worker asks for"),
    ),
    End(
        name="device-missing",
        worker={"resources": {"requests": {"test.dev/gpu": "1"}, "limits": {"test.dev/gpu": "1"}}},
        says=("has no node", "Insufficient test.dev/gpu"),
    ),
    # --- who lets it in
    End(name="quota-full", where="quota", says=("ResourceQuota", "few-pods", "raise the quota")),
    End(name="quota-asks", where="quota-asks", says=("must specify limits.cpu", "spec.workers[].resources")),
    End(name="quota-of-secrets", where="quota-of-secrets", says=("secret ", "no-secrets", "raise the quota")),
    End(
        name="limit-range",
        where="limit-range",
        says=("maximum memory usage per Container", "Change spec.workers[].resources, or the LimitRange"),
    ),
    End(
        name="policy",
        worker={"labels": {REFUSED_LABEL: "yes"}},
        says=("admission policy", REFUSAL, "Change what the policy names"),
    ),
    End(
        name="webhook-away",
        worker={"labels": {UNANSWERED_LABEL: "for-ever"}},
        says=("admission webhook does not answer", "away.killpoint-test.example", "Mend the webhook"),
    ),
    # --- what it does before its first point
    End(
        name="crash-at-once",
        worker=python("raise SystemExit(3)"),
        says=("exit 3", "without a line in its termination log"),
        **BEGINS,
    ),
    End(
        name="crash-with-words",
        worker=python("import nowhere"),
        says=("exit 1", "No module named 'nowhere'"),
        **BEGINS,
    ),
    End(
        name="crash-after-its-first-line",
        worker=python(HEADER + "raise SystemExit(4)"),
        says=("exit 4", "without an outcome"),
        **BEGINS,
    ),
    End(
        name="never-speaks",
        worker=python("import time; time.sleep(600)"),
        says=("past its deadline",),
        limits={"attemptSeconds": GRACE_SECONDS},
    ),
)
GOOD: Mapping[str, Mapping[str, Any]] = {
    "good": SMALL,
    "n" * 63: SMALL,
    LONG_NAME: SMALL,
    "limited-below-our-request": {"limits": {"memory": "128Mi"}},
}
"""Experiments that go on meanwhile, by name → the resources of their workers."""
