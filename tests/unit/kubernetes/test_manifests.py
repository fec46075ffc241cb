"""Pods and secrets as they are asked for."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from killpoint.kubernetes import names
from killpoint.kubernetes.manifests import (
    Services,
    WorkerTemplate,
    database_secret,
    literal,
    token_secret,
    worker_pod,
)
from killpoint.kubernetes.names import digest_of, journal_id, suffix_of
from killpoint.model.catalog import Setup
from killpoint.model.cells import AttemptId, Method, Role, TrialId
from tests.unit.kubernetes.pods import SCOPE, SERVICES, TEMPLATE, TRIAL, UID, launch, manifest

LABEL = re.compile(r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$")
NAME = re.compile(r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")


def variables(pod: dict[str, Any]) -> dict[str, Any]:
    container = pod["spec"]["containers"][0]
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container["env"]}


def expanded(value: str, known: dict[str, str]) -> str:
    """As a kubelet does it."""
    return re.sub(
        r"\$(\$|\((?P<name>[^)]*)\))",
        lambda found: "$" if found["name"] is None else known.get(found["name"], found[0]),
        value,
    )


def test_a_pod_keeps_to_restricted_pod_security() -> None:
    spec = manifest()["spec"]
    container = spec["containers"][0]
    assert spec["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "privileged": False,
        "readOnlyRootFilesystem": True,
    }
    assert spec["automountServiceAccountToken"] is False
    assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/tmp", "/var/run/killpoint/volume"}  # noqa: S108


def test_a_worker_is_never_number_one_and_never_started_twice() -> None:
    spec = manifest()["spec"]
    assert spec["shareProcessNamespace"] is True
    assert spec["restartPolicy"] == "Never"
    assert (spec["activeDeadlineSeconds"], spec["terminationGracePeriodSeconds"]) == (210, 5)


def test_a_pod_is_kept_until_its_end_is_known_and_goes_with_its_experiment() -> None:
    metadata = manifest()["metadata"]
    assert metadata["finalizers"] == ["killpoint.dev/evidence"]
    [owner] = metadata["ownerReferences"]
    assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == (UID, True, True)


def test_a_pod_has_what_it_is_found_by() -> None:
    labels = manifest()["metadata"]["labels"]
    assert labels == {
        "app.kubernetes.io/managed-by": "killpoint",
        "killpoint.dev/experiment-uid": UID,
        "killpoint.dev/journal": SCOPE.journal,
        "killpoint.dev/trial": "7f31e2c0.3",
        "killpoint.dev/attempt": "7f31e2c0.3.1",
        "killpoint.dev/role": "executor",
        "killpoint.dev/setup": "langgraph",
    }
    assert SCOPE.selector == (
        f"killpoint.dev/experiment-uid={UID},killpoint.dev/journal={SCOPE.journal},!killpoint.dev/retained"
    )


def test_a_users_labels_do_not_hide_ours() -> None:
    template = replace(TEMPLATE, labels={"team": "a", names.ATTEMPT: "another"})
    labels = manifest(template=template)["metadata"]["labels"]
    assert (labels["team"], labels[names.ATTEMPT]) == ("a", "7f31e2c0.3.1")


@given(
    cell=st.text("0123456789abcdef", min_size=8, max_size=8),
    number=st.integers(1, 100_000),
    retry=st.integers(0, 10),
    attempt=st.integers(1, 32),
    role=st.sampled_from(Role),
)
def test_names_and_labels_are_ones_that_kubernetes_takes(
    *, cell: str, number: int, retry: int, attempt: int, role: Role
) -> None:
    trial = TrialId(cell=cell, number=number, retry=retry)
    of = AttemptId(trial=trial, number=attempt, role=role)
    pod = manifest(launch(of))
    assert NAME.match(pod["metadata"]["name"])
    assert NAME.match(SCOPE.token_secret(trial))
    assert all(LABEL.match(value) for value in pod["metadata"]["labels"].values())
    assert re.fullmatch(r"[-._a-zA-Z0-9]+", suffix_of(of))


def test_every_attempt_has_a_name_of_its_own() -> None:
    attempts = [
        AttemptId(trial=TrialId(cell="7f31e2c0", number=number, retry=retry), number=executor, role=role)
        for number in (1, 11, 111)
        for retry in (0, 1)
        for executor in (1, 11)
        for role in Role
    ]
    assert len({SCOPE.pod(attempt) for attempt in attempts}) == len(attempts)


def test_the_journal_is_named_after_the_experiments_object() -> None:
    assert re.fullmatch(r"[0-9a-f]{8}", journal_id(UID))
    assert journal_id(UID) != journal_id("another")


# --- environment -----------------------------------------------------------------------------------------------


def test_a_worker_is_told_what_the_contract_says_and_secrets_only_by_reference() -> None:
    told = variables(manifest())
    assert told["KILLPOINT_PAYMENTS_URL"] == "http://killpoint-payments:8080"
    assert told["KILLPOINT_VOLUME"] == "/var/run/killpoint/volume"
    assert told["HOME"] == "/tmp"  # noqa: S108 - the pod's own
    assert told["KILLPOINT_TOKEN"] == {"secretKeyRef": {"name": f"kp-{SCOPE.journal}-7f31e2c0-3", "key": "1"}}
    assert told["KILLPOINT_DATABASE_BASE"] == {"secretKeyRef": {"name": f"kp-{SCOPE.journal}", "key": "database-url"}}
    text = json.dumps(manifest())
    assert "word" not in text
    assert "kp1.token" not in text


def test_a_worker_gets_its_assignment_unchanged_whatever_is_in_it() -> None:
    odd = {**launch().assignment, "experiment": "$(HOME) costs $$5 and $"}
    told = variables(manifest(launch(assignment=odd)))
    assert json.loads(expanded(told["KILLPOINT_ASSIGNMENT"], {"HOME": "/tmp"})) == odd  # noqa: S108


@given(st.text("a$()H", max_size=12))
def test_a_literal_is_never_expanded(value: str) -> None:
    assert expanded(literal(value), {"H": "wrong", "": "wrong", "a": "wrong"}) == value


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("postgresql://u:p@db/d", "postgresql://u:p@db/d?application_name=7f31e2c0.3.1"),
        (
            "postgresql://u:p@db/d?sslmode=require",
            "postgresql://u:p@db/d?sslmode=require&application_name=7f31e2c0.3.1",
        ),
    ],
)
def test_sessions_bear_the_attempts_name(base: str, url: str) -> None:
    services = replace(SERVICES, database_url=base)
    pod = worker_pod(SCOPE, launch(), template=TEMPLATE, services=services, active_seconds=1)
    told = variables(pod)
    assert list(told).index("KILLPOINT_DATABASE_BASE") < list(told).index("KILLPOINT_DATABASE_URL")
    assert expanded(told["KILLPOINT_DATABASE_URL"], {"KILLPOINT_DATABASE_BASE": base}) == url


def test_the_database_is_for_those_who_keep_state_there() -> None:
    assert "KILLPOINT_DATABASE_URL" not in variables(manifest(launch(store="pod")))
    needing = replace(TEMPLATE, needs_database=True)
    assert "KILLPOINT_DATABASE_URL" in variables(manifest(launch(store="pod"), template=needing))


@pytest.mark.parametrize(
    ("method", "told"), [(Method.SIGKILL, False), (Method.DELETE_POD, True), (Method.FREEZE, True)]
)
def test_only_who_parks_knows_where(method: Method, told: bool) -> None:  # noqa: FBT001 - a parameter of the test
    pod = manifest(launch(method=method))
    assert ("KILLPOINT_CONTROL_URL" in variables(pod)) is told
    assert (names.PARKS in pod["metadata"]["annotations"]) is told


def test_frameworks_tell_nobody() -> None:
    assert variables(manifest())["OTEL_SDK_DISABLED"] == "true"


# --- templates and secrets -------------------------------------------------------------------------------------


def test_a_setup_of_the_catalog_is_started_by_its_module_so_that_setups_share_an_image() -> None:
    setup = Setup(
        name="llamaindex-dbos", summary="", project="llamaindex", module="killpoint_dbos", stores=("postgres",),
        resumes=("continue",), keys=("none",), workflows=("charge",), points=(), needs_database=True,
    )  # fmt: skip
    template = WorkerTemplate.of(setup, image="killpoint-llamaindex:1")
    assert template.command == ("python", "-m", "killpoint_dbos")
    assert template.needs_database
    own = WorkerTemplate.of(replace(setup, module=None, command=("sh", "worker.sh")), image="own:1")
    assert own.command == ("sh", "worker.sh")


def test_an_images_own_command_stands_where_none_is_given() -> None:
    assert "command" not in manifest(template=WorkerTemplate(image="own:1"))["spec"]["containers"][0]


def test_placement_is_passed_on() -> None:
    template = replace(
        TEMPLATE,
        node_selector={"pool": "tests"},
        tolerations=({"key": "tests", "operator": "Exists"},),
        pull_secrets=("registry",),
        requests={"cpu": "1"},
        limits={"memory": "2Gi"},
    )
    spec = manifest(template=template)["spec"]
    assert spec["nodeSelector"] == {"pool": "tests"}
    assert spec["tolerations"] == [{"key": "tests", "operator": "Exists"}]
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    assert spec["containers"][0]["resources"] == {"requests": {"cpu": "1"}, "limits": {"memory": "2Gi"}}


def test_secrets_hold_what_they_are_for_and_cannot_be_changed() -> None:
    tokens = token_secret(SCOPE, trial=TRIAL, tokens={"1": "a", "1i": "b"})
    database = database_secret(SCOPE, database_url=SERVICES.database_url)
    assert {key: base64.b64decode(value) for key, value in tokens["data"].items()} == {"1": b"a", "1i": b"b"}
    assert base64.b64decode(database["data"]["database-url"]).decode() == SERVICES.database_url
    assert tokens["immutable"] is database["immutable"] is True
    assert SERVICES.database_url not in repr(Services(payments_url="", database_url=SERVICES.database_url))


def test_another_nonce_is_another_assignment() -> None:
    first, second = launch().assignment, {**launch().assignment, "nonce": "0" * 16}
    assert digest_of(first) == digest_of(dict(sorted(first.items(), reverse=True)))
    assert digest_of(first) != digest_of(second)
    assert manifest()["metadata"]["annotations"][names.ASSIGNMENT_DIGEST] == digest_of(first)
