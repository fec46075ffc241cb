"""The chart in a cluster: from an empty namespace to one that holds nothing but what the notes say.

Each release is in a namespace of its own and looks after that one only, so that others may work beside it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cluster.helm import NAME, Release, find_helm
from tests.cluster.kubectl import Kubectl
from tests.cluster.namespaces import namespace
from tests.cluster.node.layout import Layout
from tests.cluster.pods import pod
from tests.cluster.providers import Provider

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

CONNECT = """
import socket, sys, time

def opens(place):
    host, port = place.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), 3).close()
    except OSError:
        return False
    return True

# A policy knows a new pod after a moment.
time.sleep(8)
print(" ".join(place for place in sys.argv[1:] if opens(place)))
"""
PAYMENTS, ADMIN, CONTROL, POSTGRES, API = (
    f"{NAME}-payments:8080",
    f"{NAME}-payments:8081",
    f"{NAME}-control:8080",
    f"{NAME}-postgres:5432",
    "kubernetes.default.svc:443",
)
OF_EVERY_NAMESPACE = {"configmaps/kube-root-ca.crt", "serviceaccounts/default"}
BUSY_SECONDS_MAX = 90.0


@pytest.fixture(scope="module")
def release(provider: Provider) -> Iterator[Release]:
    """An installed one, for tests that leave it as it is."""
    with namespace(provider, "kp-chart") as kubectl:
        made = release_in(kubectl)
        made.install()
        yield made
        made.uninstall()


def release_in(kubectl: Kubectl) -> Release:
    return Release(program=find_helm(Layout.from_environment()), kubectl=kubectl)


def test_everything_is_ready_without_a_restart_and_helm_test_says_so(release: Release) -> None:
    pods = release.kubectl.get("pods", f"--selector=app.kubernetes.io/instance={NAME}")["items"]
    restarts = {
        one["metadata"]["labels"]["app.kubernetes.io/component"]: one["status"]["containerStatuses"][0]["restartCount"]
        for one in pods
    }
    assert restarts == {"operator": 0, "control": 0, "payments": 0, "postgres": 0}
    said = release.test()
    for line in ("payments is ready", "control is ready", "experiments are taken, and wrong ones refused"):
        assert line in said


def test_an_experiment_is_completed_as_expected_and_leaves_no_pod_and_no_secret(release: Release) -> None:
    kubectl = release.kubectl
    kubectl.apply(experiment("first", trials=1))
    complete(kubectl, "first")
    status = kubectl.get("cexp", "first")["status"]
    assert (status["phase"], status["result"], status["progress"]) == ("Complete", "Pass", "4/4")
    assert status["kills"] == {"planned": 2, "confirmed": 2}
    assert status["effects"] == {"ordered": 4, "witnessed": 5, "duplicate": 1, "lost": 0}
    left = "--selector=killpoint.dev/experiment-uid"
    eventually(lambda: kubectl.get("pods,secrets", left)["items"] == [])


def test_workers_reach_what_an_experiment_gives_them_and_only_the_operator_reaches_the_ledger(release: Release) -> None:
    kubectl = release.kubectl
    ours = {"app.kubernetes.io/name": "killpoint", "app.kubernetes.io/instance": NAME}
    kinds = {
        "worker": {"killpoint.dev/attempt": "none"},
        "operator": {**ours, "app.kubernetes.io/component": "operator"},
        "control": {**ours, "app.kubernetes.io/component": "control"},
        "stranger": {"app": "stranger"},
    }
    command = ["python", "-c", CONNECT, PAYMENTS, ADMIN, CONTROL, POSTGRES, API]
    kubectl.apply(*(pod(f"as-{kind}", "payments", command=command, labels=labels) for kind, labels in kinds.items()))
    reached = {}
    for kind in kinds:
        assert kubectl.ended(f"as-{kind}")["exitCode"] == 0
        reached[kind] = set(kubectl("logs", f"as-{kind}").split())
    kubectl("delete", "pod", *(f"as-{kind}" for kind in kinds), "--wait=false")
    assert reached == {
        "worker": {PAYMENTS, CONTROL, POSTGRES},
        "operator": {PAYMENTS, ADMIN, POSTGRES, API},
        "control": {POSTGRES},
        "stranger": {API},
    }


def test_an_upgrade_keeps_passwords_data_and_the_experiment_that_runs(release: Release) -> None:
    kubectl = release.kubectl
    before = kubectl.get("secret", NAME)["data"]
    postgres = kubectl.get("pod", f"{NAME}-postgres-0")["metadata"]["uid"]
    kubectl.apply(experiment("over-an-upgrade", trials=3))
    under_way(kubectl, "over-an-upgrade")
    release.upgrade(
        "--set=operator.podAnnotations.again=yes",
        "--set=payments.podAnnotations.again=yes",
        "--set=control.podAnnotations.again=yes",
    )
    assert kubectl.get("secret", NAME)["data"] == before
    assert kubectl.get("pod", f"{NAME}-postgres-0")["metadata"]["uid"] == postgres
    complete(kubectl, "over-an-upgrade")
    status = kubectl.get("cexp", "over-an-upgrade")["status"]
    assert (status["result"], status["progress"]) == ("Pass", "8/8")
    assert status["effects"]["duplicate"] == 3


def test_postgres_comes_back_with_its_data_and_experiments_go_on(release: Release) -> None:
    """Also when it is deleted by force: the next one then starts while the last may still be running."""
    kubectl = release.kubectl
    former = kubectl.get("pod", f"{NAME}-postgres-0")["metadata"]["uid"]
    kubectl("delete", "pod", f"{NAME}-postgres-0", "--grace-period=0", "--force")
    eventually(lambda: ready(kubectl, f"{NAME}-postgres-0"))
    again = kubectl.get("pod", f"{NAME}-postgres-0")
    assert again["metadata"]["uid"] != former
    assert again["status"]["containerStatuses"][0]["restartCount"] == 0
    kubectl.apply(experiment("after-postgres", trials=1))
    complete(kubectl, "after-postgres")
    assert kubectl.get("cexp", "after-postgres")["status"]["result"] == "Pass"


def test_uninstalling_ends_what_runs_and_leaves_only_what_the_notes_say(provider: Provider) -> None:
    with namespace(provider, "kp-chart") as kubectl:
        release = release_in(kubectl)
        notes = release.install()
        kubectl.apply(experiment("still-runs", trials=50))
        under_way(kubectl, "still-runs")
        release.uninstall()
        assert left_in(kubectl) == {
            f"persistentvolumeclaims/data-{NAME}-postgres-0",
            "crashexperiments.killpoint.dev/still-runs",
        }
        assert f"delete pvc data-{NAME}-postgres-0" in notes
        assert "delete crd crashexperiments.killpoint.dev" in notes
        left = kubectl.get("cexp", "still-runs")
        assert left["spec"]["abort"] is True
        assert left["status"]["phase"] == "Complete"
        assert "finalizers" not in left["metadata"]
        wide = kubectl.get("clusterroles,clusterrolebindings", "--selector=app.kubernetes.io/name=killpoint")
        assert wide["items"] == []


def test_a_new_release_takes_over_the_volume_of_the_one_before_it(provider: Provider) -> None:
    """The passwords are new ones, the volume is not."""
    with namespace(provider, "kp-chart") as kubectl:
        release = release_in(kubectl)
        release.install()
        first = kubectl.get("secret", NAME)["data"]
        release.uninstall()
        release.install()
        second = kubectl.get("secret", NAME)["data"]
        assert {key for key in first if first[key] == second[key]} == set()
        release.test()
        release.uninstall()


def experiment(name: str, *, trials: int) -> dict[str, Any]:
    """Two cells: one that charges twice, and is expected to, and one that does not."""
    return {
        "apiVersion": "killpoint.dev/v1alpha1",
        "kind": "CrashExperiment",
        "metadata": {"name": name},
        "spec": {
            "matrix": {"setup": ["langgraph"], "key": ["none", "stable"], "kill": [{"at": ["charge.after"]}]},
            "trials": trials,
            # This machine may be doing something else.
            "limits": {"startupSeconds": 120, "attemptSeconds": 120},
            "expect": [
                {
                    "where": {"key": ["none"], "kill": ["charge.after"]},
                    "verdict": ["duplicate"],
                    "effects": {"charge": 2},
                }
            ],
        },
    }


def complete(kubectl: Kubectl, name: str) -> None:
    """Wait until the experiment is. Fails with its status."""
    deadline = time.monotonic() + 600
    while True:
        status = kubectl.get("cexp", name).get("status", {})
        conditions = {one["type"]: one["status"] for one in status.get("conditions", [])}
        if conditions.get("Complete") == "True":
            return
        assert time.monotonic() < deadline, json.dumps(status, indent=1)
        time.sleep(1)


def under_way(kubectl: Kubectl, name: str) -> None:
    """Wait until a worker of it runs."""
    uid = kubectl.get("cexp", name)["metadata"]["uid"]
    selector = f"--selector=killpoint.dev/experiment-uid={uid}"
    eventually(lambda: any(one["status"].get("phase") == "Running" for one in kubectl.get("pods", selector)["items"]))


def ready(kubectl: Kubectl, name: str) -> bool:
    found = kubectl.get("pods", f"--field-selector=metadata.name={name}")["items"]
    conditions = found[0]["status"].get("conditions", []) if found else []
    return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)


def left_in(kubectl: Kubectl) -> set[str]:
    """What the namespace holds beyond what each one does, once the cluster has taken away what it is about to."""
    deadline = time.monotonic() + BUSY_SECONDS_MAX
    before: set[str] = set()
    while (found := everything(kubectl) - OF_EVERY_NAMESPACE) != before and time.monotonic() < deadline:
        before = found
        time.sleep(5)
    return found


def everything(kubectl: Kubectl) -> set[str]:
    """All objects of the namespace, as resource/name, but for what tells of the past."""
    kinds = kubectl("api-resources", "--namespaced", "--verbs=list", "--output=name").split()
    kept = [kind for kind in kinds if kind.partition(".")[0] != "events"]
    found: set[str] = set()
    for kind in kept:
        names = kubectl("get", kind, "--output=name", "--ignore-not-found").split()
        found |= {f"{kind}/{name.partition('/')[2]}" for name in names}
    return found


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + BUSY_SECONDS_MAX
    while not holds():
        assert time.monotonic() < deadline, f"not within {BUSY_SECONDS_MAX:.0f} s"
        time.sleep(0.5)
