"""The chart as it is rendered: what pods may do, who may reach whom, and which rights are asked for."""

from __future__ import annotations

import ast
import base64
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import killpoint
from killpoint.control.__main__ import Settings as ControlSettings
from killpoint.controller.settings import Settings as OperatorSettings
from killpoint.databases import dsn as dsns
from killpoint.databases.__main__ import Settings as DatabaseSettings
from killpoint_payments.cli import _parser, read_settings
from tests.unit.chart.rendering import CHART, NAMESPACE, Manifest, Refused, Rendered, environment, render

EXISTING = (
    "postgres.bundled=false",
    "postgres.existing.secretName=given",
    "postgres.existing.host=db.example:6432",
    "postgres.existing.parameters=sslmode=require",
)
VARIANTS: tuple[tuple[str, ...], ...] = (
    (),
    EXISTING,
    ("clusterWide=true",),
    ("namespaces={one,two}",),
    ("postgres.persistence.enabled=false",),
    ("postgres.persistence.storageClass=fast", "postgres.persistence.keep=false"),
    ("images.registry=registry.example/team", "images.pullSecrets={pull}"),
    ("crds.install=false", "networkPolicy.enabled=false", "uninstall.abortExperiments=false"),
    ("secrets.existing=mine",),
)
ASKS_THE_API = {"Deployment/killpoint-operator", "Job/killpoint-uninstall", "Pod/killpoint-test"}
OPERATOR = Path(killpoint.__file__).parent


@pytest.fixture(scope="module")
def chart() -> Rendered:
    """With no value changed."""
    return render()


# --- Pods -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", VARIANTS, ids=lambda settings: ",".join(settings) or "default")
def test_every_pod_keeps_to_the_restricted_standard(settings: tuple[str, ...]) -> None:
    pods = list(render(*settings).pods())
    assert len(pods) >= 4
    for called, spec in pods:
        assert spec["securityContext"]["runAsNonRoot"] is True, called
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, called
        assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys(), called
        kinds = {kind for volume in spec.get("volumes", []) for kind in volume if kind != "name"}
        assert kinds <= {"emptyDir", "configMap"}, called
        for container in containers(spec):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": True,
            }, called


def test_every_container_says_what_it_needs_and_has_a_limit_on_memory(chart: Rendered) -> None:
    named = [(called, container) for called, spec in chart.pods() for container in containers(spec)]
    assert named
    for called, container in named:
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}, called
        assert container["resources"]["limits"].keys() == {"memory"}, called


def test_only_who_asks_the_api_server_has_a_token_for_it(chart: Rendered) -> None:
    assert {called for called, spec in chart.pods() if spec["automountServiceAccountToken"]} == ASKS_THE_API
    assert all(account["automountServiceAccountToken"] is False for account in chart.of("ServiceAccount"))
    assert all(spec["enableServiceLinks"] is False for _, spec in chart.pods())


def test_no_secret_is_written_into_anything_but_the_secret(chart: Rendered) -> None:
    (secret,) = chart.of("Secret")
    values = [base64.b64decode(value).decode() for value in secret["data"].values()]
    rest = yaml.safe_dump([one for one in chart.manifests if one["kind"] != "Secret"])
    assert len({*values}) == 5
    assert all(len(value) == 40 and value.isalnum() and value not in rest for value in values)


def test_one_process_at_a_time_has_payments_database_and_one_the_operators_lease(chart: Rendered) -> None:
    for name in ("killpoint-payments", "killpoint-operator"):
        spec = chart.one("Deployment", name)["spec"]
        assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


def test_no_label_of_a_pod_changes_with_the_version(chart: Rendered) -> None:
    """An upgrade that changes nothing about a pod does not restart it."""
    for one in chart.of("Deployment", "StatefulSet"):
        labels = one["spec"]["template"]["metadata"]["labels"]
        assert labels == one["spec"]["selector"]["matchLabels"]
        assert killpoint.__version__ not in labels.values()


# --- What the programs are told ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [(), EXISTING], ids=["bundled", "existing"])
def test_every_program_takes_the_environment_that_it_is_given(settings: tuple[str, ...]) -> None:
    rendered = render(*settings)
    given = "postgresql://admin:word@db.example:6432/postgres"
    secrets = {f"{name}-password": name for name in ("payments", "control", "postgres")} | {
        "signing-key": "key",
        "payments-admin-token": "token",
        "url": given,
    }
    operator = environment(container_of(rendered, "operator"), secrets)
    told = OperatorSettings.from_environment(operator, own_namespace=None, identity="me")
    control = ControlSettings.from_environment(environment(container_of(rendered, "control"), secrets))
    payments = container_of(rendered, "payments")
    serving = read_settings(environment(payments, secrets), _parser().parse_args(payments["args"]))
    assert told.signing_key == control.signing_key == serving.signing_key.decode() == "key"
    assert told.payments_admin_token == serving.admin_token.decode() == "token"
    assert told.control_database_url == control.database
    assert told.namespaces == (NAMESPACE,)
    assert told.worker_database_host == ("killpoint-postgres.here.svc:5432" if not settings else "db.example:6432")
    for url, role in ((control.database, "control"), (serving.database_url, "payments")):
        parts = dsns.parse(url)
        assert (parts["user"], parts["dbname"]) == (f"killpoint_{role}", f"killpoint_{role}")
        assert parts.get("sslmode") == ("require" if settings else None)
        made = initial_container(rendered, role)
        ensured = DatabaseSettings.read(made["command"][3:], environment(made, secrets))
        assert (ensured.name, ensured.password) == (parts["user"], parts["password"])
        assert ensured.admin == told.database_url
    service = rendered.one("Service", "killpoint-operator")["spec"]["ports"][0]
    assert told.evidence_service == f"killpoint-operator:{service['name']}"
    ports = {one["name"]: one["containerPort"] for one in container_of(rendered, "operator")["ports"]}
    assert told.evidence_port == ports[service["targetPort"]]
    assert serving.port == port_of(told.payments_url)
    assert serving.admin_port == port_of(told.payments_admin_url)


def test_worker_images_are_those_of_the_release_unless_one_is_named() -> None:
    rendered = render("images.registry=registry.example/team/", "images.tag=v9", "images.workers.crewai=mine:1")
    variables = {one["name"]: one.get("value") for one in container_of(rendered, "operator")["env"]}
    assert yaml.safe_load(variables["KILLPOINT_IMAGES"]) == {
        "crewai": "mine:1",
        "langgraph": "registry.example/team/killpoint-langgraph:v9",
        "llamaindex": "registry.example/team/killpoint-llamaindex:v9",
    }


def test_the_chart_is_of_this_version_and_holds_this_definition(chart: Rendered) -> None:
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == killpoint.__version__
    ours = yaml.safe_load((CHART.parents[1] / "crds" / "crashexperiments.killpoint.dev.yaml").read_text())
    (installed,) = chart.of("CustomResourceDefinition")
    assert installed["spec"] == ours["spec"]
    assert installed["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    (loose,) = render("crds.keep=false").of("CustomResourceDefinition")
    assert "annotations" not in loose["metadata"]
    assert render("crds.install=false").of("CustomResourceDefinition") == []


# --- Rights -----------------------------------------------------------------------------------------------------------


def test_the_operator_has_no_right_outside_of_its_namespace_unless_it_is_asked_for(chart: Rendered) -> None:
    assert chart.of("ClusterRole", "ClusterRoleBinding") == []
    assert {one["metadata"]["namespace"] for one in chart.of("Role", "RoleBinding")} == {NAMESPACE}
    more = render("namespaces={one,two}")
    assert more.of("ClusterRole", "ClusterRoleBinding") == []
    served = {
        one["metadata"]["namespace"] for one in more.of("Role") if one["metadata"]["name"] == "killpoint-operator"
    }
    assert served == {NAMESPACE, "one", "two"}
    assert {one["metadata"]["namespace"] for one in more.of("NetworkPolicy")} == {NAMESPACE, "one", "two"}


def test_cluster_wide_the_rights_are_the_same(chart: Rendered) -> None:
    wide = render("clusterWide=true")
    (role,) = wide.of("ClusterRole")
    assert role["rules"] == chart.one("Role", "killpoint-operator")["rules"]
    assert [one["metadata"]["name"] for one in wide.of("Role")] == [
        "killpoint-operator-lease",
        "killpoint-evidence-reader",
        "killpoint-test",
    ]


def test_secrets_are_made_and_deleted_and_never_read(chart: Rendered) -> None:
    verbs = {verb for _, resource, verb in rights(chart) if resource == "secrets"}
    assert verbs == {"create", "delete", "deletecollection"}
    assert not {right for right in rights(chart) if "*" in right}


def test_the_rights_are_those_that_the_code_says_it_needs(chart: Rendered) -> None:
    """The tables are in the packages' docstrings. The lease is in the chart, so that nobody has to create it."""
    said = table_of("kubernetes") | table_of("controller")
    unneeded = {("coordination.k8s.io", "leases", "create")}
    assert unneeded < said
    assert rights(chart) == said - unneeded


# --- Network ----------------------------------------------------------------------------------------------------------


def test_workers_reach_payments_control_postgres_and_names_and_nothing_else(chart: Rendered) -> None:
    spec = chart.one("NetworkPolicy", "killpoint-workers")["spec"]
    assert spec["podSelector"] == {"matchExpressions": [{"key": "killpoint.dev/attempt", "operator": "Exists"}]}
    assert (spec["policyTypes"], spec["ingress"]) == (["Ingress", "Egress"], [])
    reached = {
        (rule["to"][0]["podSelector"]["matchLabels"]["app.kubernetes.io/component"], rule["ports"][0]["port"])
        for rule in spec["egress"]
        if "to" in rule
    }
    anywhere = {port["port"] for rule in spec["egress"] if "to" not in rule for port in rule["ports"]}
    assert reached == {("payments", "public"), ("control", "http"), ("postgres", 5432)}
    assert anywhere == {53, 5353}


def test_evidence_is_for_the_api_server_and_for_whoever_may_use_its_proxy() -> None:
    kube_system = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}
    named = {"ipBlock": {"cidr": "192.0.2.7/32"}}
    for settings, peers in (
        ((), [kube_system]),
        (("clusterWide=true",), [kube_system]),
        (("networkPolicy.apiServer[0].ipBlock.cidr=192.0.2.7/32",), [named]),
    ):
        rendered = render(*settings)
        (rule,) = rendered.one("NetworkPolicy", "killpoint-operator")["spec"]["ingress"]
        assert (rule["from"], rule["ports"]) == (peers, [{"port": "evidence"}])
        (right,) = rendered.one("Role", "killpoint-evidence-reader")["rules"]
        assert right == {
            "apiGroups": [""],
            "resources": ["services/proxy"],
            "resourceNames": ["http:killpoint-operator:evidence"],
            "verbs": ["get"],
        }


def test_the_admin_port_lets_the_operator_in_and_nobody_else(chart: Rendered) -> None:
    spec = chart.one("NetworkPolicy", "killpoint-payments")["spec"]
    (rule,) = [rule for rule in spec["ingress"] if {"port": "admin"} in rule["ports"]]
    (peer,) = rule["from"]
    assert peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "operator"
    assert "namespaceSelector" not in peer


@pytest.mark.parametrize(
    ("settings", "selector"),
    [
        ((), None),
        (
            ("namespaces={one}",),
            {
                "matchExpressions": [
                    {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [NAMESPACE, "one"]}
                ]
            },
        ),
        (("clusterWide=true",), {}),
    ],
)
def test_services_let_workers_in_from_where_experiments_are_run(
    settings: tuple[str, ...], selector: dict[str, Any] | None
) -> None:
    rendered = render(*settings)
    for name in ("control", "payments", "postgres"):
        peers = rendered.one("NetworkPolicy", f"killpoint-{name}")["spec"]["ingress"][0]["from"]
        assert peers[0].get("namespaceSelector") == selector


# --- Postgres and what stays ------------------------------------------------------------------------------------------


def test_a_given_postgres_is_used_and_none_is_brought() -> None:
    rendered = render(*EXISTING)
    assert rendered.of("StatefulSet") == []
    assert "killpoint-postgres" not in yaml.safe_dump(list(rendered.manifests))
    (secret,) = rendered.of("Secret")
    assert "postgres-password" not in secret["data"]


def test_the_volume_outlives_the_release_if_it_shall() -> None:
    for settings, expected in (((), "Retain"), (("postgres.persistence.keep=false",), "Delete")):
        spec = render(*settings).one("StatefulSet", "killpoint-postgres")["spec"]
        assert spec["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] == expected
    assert "volumeClaimTemplates" not in render("postgres.persistence.enabled=false").of("StatefulSet")[0]["spec"]


def test_names_are_of_the_release_and_never_too_long() -> None:
    rendered = render(release="r" * 53)
    (stateful,) = rendered.of("StatefulSet")
    assert len(stateful["metadata"]["name"]) <= 52  # a label of its pods adds a hash of eleven characters
    names = {one["metadata"]["name"] for one in rendered.manifests if one["kind"] != "CustomResourceDefinition"}
    assert max(map(len, names)) <= 63
    assert {one["metadata"]["name"] for one in render("fullnameOverride=kp").of("Deployment")} == {
        "kp-control",
        "kp-operator",
        "kp-payments",
    }


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("images.tagg=1", "additional properties 'tagg' not allowed"),
        ("clusterWide=yes", "got string, want boolean"),
        ("operator.resources.limits.memory=lots", "does not match pattern"),
        ("operator.replicas=2", "additional properties 'replicas' not allowed"),
        ("postgres.bundled=false", "/postgres/existing/host"),
        ("postgres.existing.host=db", "does not match pattern"),
        ("postgres.maxConnections=10", "minimum: got 10, want 60"),
        ("postgres.persistence.size=big", "does not match pattern"),
        ("payments.connections=0", "minimum: got 0, want 1"),
        ("images.pullPolicy=Sometimes", "value must be one of"),
        ("namespaces={Upper}", "does not match pattern"),
        ("clusterWide=true,namespaces={one}", "maxItems: got 1, want 0"),
        ("uninstall.secondsMax=1", "minimum: got 1, want 10"),
    ],
)
def test_wrong_values_are_refused_with_their_place(setting: str, said: str) -> None:
    with pytest.raises(Refused, match=re.escape(said)):
        render(setting)


def containers(spec: Manifest) -> list[Manifest]:
    return [*spec.get("initContainers", []), *spec["containers"]]


def container_of(rendered: Rendered, component: str) -> Manifest:
    (container,) = rendered.pod(f"Deployment/killpoint-{component}")["containers"]
    found: Manifest = container
    return found


def initial_container(rendered: Rendered, component: str) -> Manifest:
    (container,) = rendered.pod(f"Deployment/killpoint-{component}")["initContainers"]
    found: Manifest = container
    return found


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def rights(rendered: Rendered) -> set[tuple[str, str, str]]:
    """Group, resource and verb of all that the operator may do."""
    roles = [one for one in rendered.of("Role") if one["metadata"]["name"].startswith("killpoint-operator")]
    return {
        (group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def table_of(package: str) -> set[tuple[str, str, str]]:
    """What a package's docstring says that it asks of the API server."""
    docstring = ast.get_docstring(ast.parse((OPERATOR / package / "__init__.py").read_text())) or ""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in docstring.splitlines() if line[:1] == "|"]
    kinds = [row for row in rows[2:] if row[0] != "(discovery)"]
    return {
        ("" if group == "(core)" else group, resource, verb.strip())
        for group, resource, verbs, *_ in kinds
        for verb in verbs.split(",")
    }
