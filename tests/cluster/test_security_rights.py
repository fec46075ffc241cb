"""What the operator may do, whose pods it ends, and what a worker can be made of, in a release with its defaults."""

from __future__ import annotations

import faulthandler
import json
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from killpoint.api.available import Where
from killpoint.api.load import load
from killpoint.api.problems import ProblemsError
from killpoint.api.rules import LABELS_ARE_FREE
from killpoint.api.v1alpha1.spec import API_VERSION, KIND
from killpoint.kubernetes.names import journal_id
from tests.cluster.experiments import completed, installed
from tests.cluster.helm import NAME
from tests.cluster.kubectl import Kubectl
from tests.cluster.objects import Experiments
from tests.cluster.operator_process import experiment, wait_for
from tests.cluster.pods import pod
from tests.cluster.providers import Provider
from tests.objects.corpus import BASE, Sample
from tests.objects.server import ApiServer
from tests.unit.api.samples import CATALOG

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

RUN_SECONDS_MAX = 400.0
Asked = tuple[str, str, str, str, str]
"""Verb, group, resource, subresource, namespace."""
EXPERIMENTS = {"get", "list", "watch", "patch", "delete"}
RIGHTS = {
    *(f"{verb} killpoint.dev/crashexperiments" for verb in EXPERIMENTS),
    "patch killpoint.dev/crashexperiments/status",
    "update killpoint.dev/crashexperiments/finalizers",
    *(f"{verb} core/pods" for verb in EXPERIMENTS | {"create"}),
    "create core/pods/eviction",
    "get core/pods/log",
    *(f"{verb} core/secrets" for verb in ("create", "delete", "deletecollection")),
    "create core/events",
    *(f"{verb} coordination.k8s.io/leases killpoint-operator" for verb in ("get", "update")),
}
"""Of the operator, in the release's namespace."""
NOT_ALLOWED: dict[str, Any] = {
    "volumes": [{"name": "root", "hostPath": {"path": "/"}}],
    "volumeMounts": [{"name": "root", "mountPath": "/root"}],
    "securityContext": {"privileged": True},
    "privileged": True,
    "serviceAccountName": "admin",
    "automountServiceAccountToken": True,
    "hostNetwork": True,
    "hostPID": True,
    "hostIPC": True,
    "nodeName": "node1",
    "priorityClassName": "system-node-critical",
    "runtimeClassName": "other",
    "schedulerName": "other",
    "affinity": {},
    "annotations": {"a": "b"},
    "envFrom": [{"secretRef": {"name": "theirs"}}],
    "initContainers": [],
    "containers": [],
    "template": {},
    "podTemplate": {},
}
"""Fields of a worker that there are none of."""


@pytest.fixture(scope="module")
def release(provider: Provider) -> Iterator[Kubectl]:
    faulthandler.cancel_dump_traceback_later()
    with installed(provider) as kubectl:
        yield kubectl


# --- rights ----------------------------------------------------------------------------------------------------


def test_the_operator_may_do_in_its_namespace_what_it_has_to_and_nothing_elsewhere(release: Kubectl) -> None:
    operator, services = f"{NAME}-operator", f"{NAME}-services"
    here, basic = release.namespace, rights(release, "default", release.namespace)
    assert basic, "what everybody may, such as asking what one may"
    assert rights(release, operator, here) - basic == RIGHTS
    assert rights(release, services, here) == basic
    for elsewhere in ("default", "kube-system"):
        assert rights(release, operator, elsewhere) == rights(release, "default", elsewhere)


def rights(kubectl: Kubectl, account: str, namespace: str) -> set[str]:
    """What an account of the release's namespace may do in a namespace, cluster-wide rights included."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    status = json.loads(
        kubectl(
            "create", "--raw=/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", "--filename=-",
            f"--as=system:serviceaccount:{kubectl.namespace}:{account}", manifest=review,
        )
    )["status"]  # fmt: skip
    assert not status["incomplete"]
    return {
        f"{verb} {group or 'core'}/{resource}" + (f" {','.join(names)}" if (names := rule.get("resourceNames")) else "")
        for rule in status["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_whoever_has_the_operators_token_can_neither_read_secrets_nor_enter_pods_nor_give_itself_more(
    release: Kubectl,
) -> None:
    user = f"system:serviceaccount:{release.namespace}:{NAME}-operator"
    here = release.namespace
    asked = [
        *((verb, "", "secrets", "", here) for verb in ("get", "list", "watch", "update", "patch")),
        *(
            ("create", "", "pods", sub, here)
            for sub in ("exec", "attach", "portforward", "ephemeralcontainers", "proxy")
        ),
        *(("get", "", "pods", sub, here) for sub in ("exec", "attach", "portforward")),
        *(("patch", "", "pods", sub, here) for sub in ("ephemeralcontainers", "status", "resize")),
        ("create", "", "serviceaccounts", "token", here),
        ("create", "killpoint.dev", "crashexperiments", "", here),
        *((verb, "rbac.authorization.k8s.io", "roles", "", here) for verb in ("create", "update", "bind", "escalate")),
        ("create", "rbac.authorization.k8s.io", "rolebindings", "", here),
        ("create", "apps", "deployments", "", here),
        ("create", "batch", "jobs", "", here),
        ("get", "", "configmaps", "", here),
        *((verb, "", resource, "", "") for verb in ("get", "list") for resource in ("nodes", "namespaces")),
        ("get", "", "nodes", "proxy", ""),
        ("impersonate", "", "users", "", ""),
        *((verb, "", "pods", "", "kube-system") for verb in ("list", "create", "delete")),
        *((verb, "", "secrets", "", "kube-system") for verb in ("get", "list", "create")),
        *((verb, "killpoint.dev", "crashexperiments", "", "default") for verb in ("get", "list")),
    ]
    allowed = [("create", "", "pods", "", here), ("delete", "", "pods", "", here), ("create", "", "secrets", "", here)]
    reviews = [review(user, one) for one in (*asked, *allowed)]
    printed = release("create", "--filename=-", '--output=jsonpath={@}{"\\n"}', manifest=listed(reviews))
    answers = [json.loads(line) for line in printed.splitlines()]
    said = {words(answer["spec"]): answer["status"]["allowed"] for answer in answers}
    assert {what for what, may in said.items() if may} == {words(review(user, one)["spec"]) for one in allowed}
    assert len(said) == len(asked) + len(allowed)


def review(user: str, asked: Asked) -> dict[str, Any]:
    attributes = dict(zip(("verb", "group", "resource", "subresource", "namespace"), asked, strict=True))
    groups = ["system:authenticated", "system:serviceaccounts", f"system:serviceaccounts:{user.split(':')[2]}"]
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": user,
            "groups": groups,
            "resourceAttributes": {name: value for name, value in attributes.items() if value},
        },
    }


def words(spec: Mapping[str, Any]) -> str:
    return " ".join(map(str, sorted(spec["resourceAttributes"].items())))


def listed(items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": items}


def test_pods_that_are_not_the_experiments_own_are_never_ended_whatever_they_look_like(
    release: Kubectl,
) -> None:
    """One has the name that the first attempt is to have, one only its labels, one another experiment as its owner."""
    experiments = Experiments(release)
    besieged = experiment("besieged", suspend=True, limits={"inconclusiveRetries": 0})
    release.apply(besieged, experiment("another", suspend=True))
    wait_for(lambda: experiments.status("besieged").get("cells"), "the cells to be known")
    uid = experiments.get("besieged")["metadata"]["uid"]
    control = next(cell["id"] for cell in experiments.status("besieged")["cells"] if cell["control"])
    wanted = f"kp-{journal_id(uid)}-{control}-1-1"
    labels = {
        "app.kubernetes.io/managed-by": "killpoint",
        "killpoint.dev/experiment-uid": uid,
        "killpoint.dev/journal": journal_id(uid),
        "killpoint.dev/trial": f"{control}.1",
        "killpoint.dev/attempt": f"{control}.1.1",
    }
    sleeps = ["python", "-c", "import time; time.sleep(3600)"]
    foreign = [pod(name, "payments", command=sleeps, labels=labels) for name in (wanted, "alike", "anothers")]
    another = {"apiVersion": API_VERSION, "kind": KIND, "name": "another", "controller": True}
    foreign[2]["metadata"]["ownerReferences"] = [{**another, "uid": experiments.get("another")["metadata"]["uid"]}]
    release.apply(*foreign)
    uids = {one["metadata"]["name"]: one["metadata"]["uid"] for one in alike(release, uid)}
    assert len(uids) == 3
    experiments.patch("besieged", suspend=False)
    status = completed(release, "besieged", seconds_max=RUN_SECONDS_MAX)
    assert status["result"] == "Inconclusive"
    assert any(f"{wanted} is there already and is not this attempt's. Delete it." in one for one in status["reasons"])
    release("delete", "cexp", "besieged", "--timeout=30s")
    time.sleep(5)
    found = alike(release, uid)
    assert {one["metadata"]["name"]: one["metadata"]["uid"] for one in found} == uids
    assert [one for one in found if one["metadata"].get("deletionTimestamp")] == []
    release("delete", "pods", *uids, "--grace-period=1", "--wait=false")


def alike(kubectl: Kubectl, uid: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = kubectl.get("pods", f"--selector=killpoint.dev/experiment-uid={uid}")["items"]
    return found


# --- what a worker is made of ----------------------------------------------------------------------------------


def specified(**worker: object) -> dict[str, Any]:
    matrix = {"setup": ["mine"], "kill": [{"at": ["charge.after"]}]}
    return {**BASE, "spec": {"matrix": matrix, "workers": [{"setup": "mine", "image": "mine:1", **worker}]}}


@pytest.mark.parametrize(("field", "value"), NOT_ALLOWED.items(), ids=NOT_ALLOWED)
def test_a_field_beyond_the_allowlist_is_refused_with_its_path_here_and_by_the_server(
    release: Kubectl, field: str, value: object
) -> None:
    text = yaml.safe_dump(specified(**{field: value}))
    path = f"spec.workers[0].{field}"
    server = ApiServer.at(release.kubeconfig, release.namespace)
    assert server.says(Sample(name=field, text=text)) == [f'{path}: unknown field "{path}"']
    with pytest.raises(ProblemsError, match=re.escape(f'unknown field "{path}"')):
        load(text, catalog=CATALOG, where=Where.CLUSTER)


def test_who_does_not_ask_the_server_to_be_strict_gets_an_object_without_them(release: Kubectl) -> None:
    manifest = specified(**NOT_ALLOWED)
    sent = ("create", "--dry-run=server", "--validate=ignore", "--filename=-", "--output=json")
    worker = json.loads(release(*sent, manifest=manifest))["spec"]["workers"][0]
    assert worker["image"] == "mine:1"
    assert NOT_ALLOWED.keys() & worker.keys() == set()


@pytest.mark.parametrize("label", ["app.kubernetes.io/component", "killpoint.dev/retained"])
def test_a_label_by_which_others_are_found_is_refused_here_and_by_the_server(release: Kubectl, label: str) -> None:
    """A worker with the labels of payments would be sent what is meant for it, tokens included."""
    text = yaml.safe_dump(specified(labels={label: "payments"}))
    said = f"spec.workers[0].labels: Forbidden: {LABELS_ARE_FREE.reason}; {LABELS_ARE_FREE.remedy}"
    server = ApiServer.at(release.kubeconfig, release.namespace)
    assert server.says(Sample(name=label, text=text)) == [said]
    with pytest.raises(ProblemsError, match=re.escape(f"Forbidden: {LABELS_ARE_FREE.reason}")):
        load(text, catalog=CATALOG, where=Where.CLUSTER)
