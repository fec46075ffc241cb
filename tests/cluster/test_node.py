"""The cluster itself: what every test on it takes for granted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cluster.kubectl import Kubectl
from tests.cluster.pods import pod

pytestmark = pytest.mark.cluster

UNTIL = """
import sys, time, urllib.request
wanted, deadline = sys.argv[1], time.monotonic() + 60
while time.monotonic() < deadline:
    try:
        urllib.request.urlopen("http://server:8000", timeout=3)
        seen = "through"
    except OSError:
        seen = "refused"
    if seen == wanted:
        sys.exit(0)
    time.sleep(0.2)
sys.exit(3)
"""
"""Asks the server until it gets through, or is refused: rules follow a new pod only when they are next written."""


def test_every_node_is_ready(kubectl: Kubectl) -> None:
    nodes = kubectl.get("nodes")["items"]
    ready = [
        condition["status"]
        for node in nodes
        for condition in node["status"]["conditions"]
        if condition["type"] == "Ready"
    ]
    assert ready
    assert set(ready) == {"True"}


def test_the_langgraph_image_imports_its_framework_where_pods_are_restricted(kubectl: Kubectl) -> None:
    check = "import os, langgraph.graph, killpoint_langgraph; assert os.getuid() != 0; print('imported')"
    kubectl.apply(pod("imports", "langgraph", command=["python", "-c", check]))
    assert kubectl.ended("imports")["exitCode"] == 0
    assert kubectl("logs", "imports").split() == ["imported"]


def test_a_worker_that_kills_itself_ends_with_137_and_its_termination_log(kubectl: Kubectl) -> None:
    """The point's line, written right before the SIGKILL, is read back from the pod's status."""
    env = {
        "KILLPOINT_ASSIGNMENT": json.dumps(assignment(die_at="charge.before")),
        "KILLPOINT_PAYMENTS_URL": "http://127.0.0.1:9",  # it dies before it calls anybody
        "KILLPOINT_TOKEN": "none",
        "KILLPOINT_VOLUME": "/tmp/volume",  # noqa: S108 - an empty volume of the pod
    }
    make_volume = (
        "import os, runpy; os.mkdir('/tmp/volume'); runpy.run_module('killpoint_langgraph', run_name='__main__')"
    )
    kubectl.apply(pod("dies", "langgraph", command=["python", "-c", make_volume], env=env))
    ended = kubectl.ended("dies")
    lines = [json.loads(line) for line in ended["message"].splitlines()]
    assert (ended["exitCode"], ended["reason"]) == (137, "Error")
    assert lines[0] == {"killpoint": 1, "attempt": "trial.1", "nonce": "5eed"}
    assert lines[-1]["point"] == "charge.before"


def test_a_policy_lets_in_whom_it_names_and_nobody_else(kubectl: Kubectl) -> None:
    """Names, Services and policies work as everywhere; anybody gets through until the policy is there."""
    serve = pod("server", "payments", command=["python", "-m", "http.server", "8000"], labels={"app": "server"})
    kubectl.apply(serve, service("server", port=8000))
    kubectl("wait", "pod/server", "--for=condition=Ready", "--timeout=60s")
    kubectl.apply(asking("anybody", until="through"))
    assert kubectl.ended("anybody")["exitCode"] == 0
    kubectl.apply(only_friends("server"))
    kubectl.apply(asking("stranger", until="refused"), asking("friend", until="through", labels={"role": "friend"}))
    assert kubectl.ended("stranger")["exitCode"] == 0
    assert kubectl.ended("friend")["exitCode"] == 0


def asking(name: str, *, until: str, labels: dict[str, str] | None = None) -> dict[str, Any]:
    return pod(name, "payments", command=["python", "-c", UNTIL, until], labels=labels)


def service(name: str, *, port: int) -> dict[str, Any]:
    spec = {"selector": {"app": name}, "ports": [{"port": port}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def only_friends(app: str) -> dict[str, Any]:
    spec = {
        "podSelector": {"matchLabels": {"app": app}},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"podSelector": {"matchLabels": {"role": "friend"}}}]}],
    }
    kind = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}
    return {**kind, "metadata": {"name": "only-friends"}, "spec": spec}


def assignment(*, die_at: str) -> dict[str, Any]:
    """The start of a trial of the charge workflow, as the worker contract has it."""
    return {
        "contract": 1,
        "experiment": "smoke",
        "trial": "trial",
        "run": "run-1",
        "tenant": "smoke",
        "attempt": "trial.1",
        "number": 1,
        "nonce": "5eed",
        "action": "start",
        "workflow": {"name": "charge", "versions": {"graph": "1", "state": "1", "policy": "1"}},
        "coordinates": {
            "setup": "langgraph",
            "store": "volume",
            "key": "stable",
            "resume": "continue",
            "parameters": {},
        },
        "job": {"orders": [{"id": "order-1", "amount": 4900, "currency": "EUR"}]},
        "schedule": [{"point": die_at, "occurrence": 1, "do": "die"}],
    }


def test_a_volume_outlives_the_pod_that_wrote_to_it(kubectl: Kubectl) -> None:
    """By the cluster's default storage class, and whatever user the pods run as."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Mi"}}}
    kubectl.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "kept"}, "spec": spec})
    kubectl.apply(keeping("writes", "open('/kept/file', 'w').write('kept')"))
    assert kubectl.ended("writes")["exitCode"] == 0
    kubectl("delete", "pod", "writes")
    kubectl.apply(keeping("reads", "print(open('/kept/file').read())"))
    assert kubectl.ended("reads")["exitCode"] == 0
    assert kubectl("logs", "reads").split() == ["kept"]


def keeping(name: str, program: str) -> dict[str, Any]:
    """A pod that runs this Python with the claim ``kept`` at /kept."""
    made = pod(name, "payments", command=["python", "-c", program])
    made["spec"]["volumes"].append({"name": "kept", "persistentVolumeClaim": {"claimName": "kept"}})
    made["spec"]["containers"][0]["volumeMounts"].append({"name": "kept", "mountPath": "/kept"})
    return made
