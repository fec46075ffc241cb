"""A real API server takes the definition, refuses bad objects in the recorded words, and shows what a status says."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from killpoint.api.available import Where
from killpoint.api.crd import COLUMNS, NAME
from killpoint.api.load import load
from killpoint.api.problems import ProblemsError
from killpoint.api.status import document_of, status_of
from tests.cluster.kubectl import Kubectl
from tests.objects.corpus import Sample, answers, bad, good
from tests.objects.server import ApiServer
from tests.unit.api.samples import CATALOG
from tests.unit.api.specs import damaged, specs
from tests.unit.api.test_status import large

pytestmark = pytest.mark.cluster

REPOSITORY = Path(__file__).resolve().parents[2]
EXPERIMENTS = sorted((REPOSITORY / "experiments").glob("*.yaml"))
SERVED_SECONDS_MAX = 30.0
EXAMPLES = 150
HEAD: dict[str, Any] = {
    "apiVersion": "killpoint.dev/v1alpha1",
    "kind": "CrashExperiment",
    "metadata": {"name": "sample"},
}
PLAIN: dict[str, Any] = {**HEAD, "spec": {"matrix": {"setup": ["langgraph"]}}}


@pytest.fixture
def defined(kubectl: Kubectl) -> Kubectl:
    """A namespace of a cluster that knows the definition, applied as a user applies it."""
    kubectl("apply", f"--filename={REPOSITORY / 'crds'}")
    kubectl("wait", f"crd/{NAME}", "--for=condition=Established", f"--timeout={SERVED_SECONDS_MAX:.0f}s")
    return kubectl


@pytest.fixture
def server(defined: Kubectl) -> ApiServer:
    """The API server, once it serves the kind with all its rules: a definition takes a moment to be in force."""
    found = ApiServer.at(defined.kubeconfig, defined.namespace)
    sample = next(sample for sample in bad() if sample.name == "a store that clusters lack")
    deadline = time.monotonic() + SERVED_SECONDS_MAX
    while found.says(sample) != answers()[sample.name]:
        assert time.monotonic() < deadline, found.says(sample)
        time.sleep(0.2)
    return found


def refused(text: str, *, checked: bool) -> str:
    """What validation says for a cluster, with what the catalog shows or without; empty: it is taken."""
    try:
        load(text, catalog=CATALOG if checked else None, where=Where.CLUSTER)
    except ProblemsError as error:
        return str(error)
    return ""


@pytest.mark.slow
def test_the_server_says_of_bad_objects_what_was_recorded(server: ApiServer) -> None:
    recorded = answers()
    said = {sample.name: server.says(sample) for sample in bad()}
    assert {name: words for name, words in said.items() if words != recorded.get(name)} == {}


def test_the_server_takes_what_is_just_allowed(server: ApiServer) -> None:
    said = {sample.name: server.says(sample) for sample in good()}
    assert {name: words for name, words in said.items() if words} == {}


@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda file: file.stem)
def test_of_killpoints_own_experiments_the_server_takes_those_that_a_cluster_can_run(
    server: ApiServer, file: Path
) -> None:
    text = file.read_text(encoding="utf-8")
    said = server.says(Sample(name=file.stem, text=text))
    mine = refused(text, checked=True)
    assert [words.partition(": ")[2] for words in said if words.partition(": ")[2] not in mine] == []
    assert bool(said) == ("not available in a cluster" in mine or "say which image" in mine), mine


@pytest.mark.slow
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(document=damaged() | specs().map(lambda spec: {**HEAD, "spec": spec}))
def test_the_server_refuses_nothing_that_validation_takes(server: ApiServer, document: dict[str, Any]) -> None:
    text = json.dumps(document)
    said = server.says(Sample(name="generated", text=text))
    if said:
        assert refused(text, checked=True), said


def test_a_status_is_stored_as_it_is_made_and_shown_in_the_columns(defined: Kubectl, server: ApiServer) -> None:
    assert server.says(Sample(name="plain", text=json.dumps(PLAIN))) == []
    defined("create", "--filename=-", manifest={**PLAIN, "spec": {**PLAIN["spec"], "suspend": True}})
    status = status_of(large(400), generation=1)
    made = document_of(status)
    stored = defined.get("cexp", "sample")
    defined("replace", "--subresource=status", "--filename=-", manifest={**stored, "status": made})
    assert defined.get("crashexperiment", "sample")["status"] == made
    header, row = defined("get", "cexp").splitlines()
    assert header.split() == ["NAME", *(name.upper() for name, *_ in COLUMNS)]
    assert row.split()[:4] == ["sample", made["phase"], made["result"], made["progress"]]
    [complete] = [condition for condition in status.conditions if condition.type == "Complete"]
    assert row.split()[-2] == complete.reason, "the last but one column, before the age"


def test_every_field_is_explained(defined: Kubectl) -> None:
    told = defined("explain", "cexp.spec.matrix.kill")
    assert "The point at which attempt 1 is killed" in told
    assert "enum: sigkill, delete-pod" in told
