"""What nobody may get at, tried on a release that is installed with its defaults.

Each refusal stands beside something that works, so that it is not refused for another reason.
"""

from __future__ import annotations

import faulthandler
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from killpoint.databases import dsn as dsns
from tests.cluster.bad_ends import HEADER
from tests.cluster.experiments import installed
from tests.cluster.helm import NAME
from tests.cluster.inside import IDLE, LISTENS, Inside, Probes
from tests.cluster.kubectl import Kubectl
from tests.cluster.leaks import leaks, read_by_people, secrets_of
from tests.cluster.objects import Experiments
from tests.cluster.operator_process import experiment
from tests.cluster.providers import Provider
from tests.cluster.test_cli import Cli

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

RUN_SECONDS_MAX = 400.0
SETTLED_SECONDS_MAX = 60.0
POWERS = (
    "SELECT rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls FROM pg_roles"
    " WHERE rolname = current_user"
)
STATEMENTS = (
    "SELECT count(*) FROM pg_stat_activity WHERE usename <> current_user AND query <> '<insufficient privilege>'"
)
TERMINATION = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename <> current_user"
TELL = (
    "os.environ['KILLPOINT_TOKEN']"
    "+str({k:v for k,v in os.environ.items() if k.startswith('KILLPOINT_') and k!='KILLPOINT_ASSIGNMENT'})"
)
TELLTALES = {
    "telltale-prints": f"import os,time;time.sleep(6);print({TELL});raise SystemExit(5)",
    "telltale-logs": f"import os,time;time.sleep(6);open('/dev/termination-log','a').write({TELL})",
    "telltale-fails": f"{HEADER}import time;time.sleep(6);e=dict(message={TELL});e['class']='E';"
    "os.write(L,json.dumps(dict(outcome='failed',error=e)).encode()+b'\\n');raise SystemExit(1)",
}
"""Workers that show the secrets that they have: in their output, in their termination log, in their outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A living attempt, and what it was given."""

    inside: Inside
    pod: Mapping[str, Any]
    given: Mapping[str, str]

    @property
    def token(self) -> str:
        return self.given["KILLPOINT_TOKEN"]

    @property
    def dsn(self) -> str:
        return self.given["KILLPOINT_DATABASE_URL"]

    @property
    def assignment(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.given["KILLPOINT_ASSIGNMENT"])
        return found


@pytest.fixture(scope="module")
def release(provider: Provider) -> Iterator[Kubectl]:
    faulthandler.cancel_dump_traceback_later()
    with installed(provider) as kubectl:
        yield kubectl


@pytest.fixture(scope="module")
def workers(release: Kubectl) -> tuple[Worker, Worker]:
    """Two experiments' first attempts. They idle until the release goes."""
    return idling(release, "left"), idling(release, "right")


def idling(kubectl: Kubectl, name: str) -> Worker:
    document = experiment(name, limits={"attemptSeconds": 3600, "startupSeconds": 300})
    worker = document["spec"]["workers"][0]
    worker["command"][-1] = IDLE
    # Another word for the same: cells of the two have ids of their own, and so have their attempts.
    worker["parameters"] = document["spec"]["matrix"]["parameters"] = {"side": [name]}
    kubectl.apply(document)
    Experiments(kubectl).runs(name)
    (pod,) = pods_of(kubectl, name)
    inside = Inside(kubectl=kubectl, pod=pod["metadata"]["name"])
    return Worker(inside=inside, pod=pod, given=inside.variables())


def pods_of(kubectl: Kubectl, name: str) -> list[dict[str, Any]]:
    uid = kubectl.get("cexp", name)["metadata"]["uid"]
    found: list[dict[str, Any]] = kubectl.get("pods", f"--selector=killpoint.dev/experiment-uid={uid}")["items"]
    return found


def settled(inside: Inside, probes: Probes, wanted: Mapping[str, str]) -> dict[str, str]:
    """The answers, each cut down to what is said of it in ``wanted`` where that is in it.

    A policy knows a new pod, and a pod a policy, only after a moment.
    """
    deadline = time.monotonic() + SETTLED_SECONDS_MAX
    while True:
        answers = inside.answers(probes)
        found = {name: wanted[name] if wanted[name] in answer else answer for name, answer in answers.items()}
        if found == wanted or time.monotonic() > deadline:
            return found
        time.sleep(2)


# --- the network -----------------------------------------------------------------------------------------------


def test_a_worker_reaches_payments_control_and_postgres_and_nothing_else(
    release: Kubectl, workers: tuple[Worker, Worker]
) -> None:
    left, right = workers
    api = release.get("endpointslices", "kubernetes", "--namespace=default")
    pods = {
        pod["metadata"]["labels"]["app.kubernetes.io/component"]: pod["status"]["podIP"]
        for pod in release.get("pods", f"--selector=app.kubernetes.io/instance={NAME}")["items"]
    }
    node = right.pod["status"]["hostIP"]
    let_in = {
        "payments": f"{NAME}-payments:8080",
        "control": f"{NAME}-control:8080",
        "postgres": f"{NAME}-postgres:5432",
    }
    kept_out = {
        "payments' admin port": f"{NAME}-payments:8081",
        "payments' admin port, at the pod": f"{pods['payments']}:8081",
        "evidence": f"{NAME}-operator:8081",
        "evidence, at the pod": f"{pods['operator']}:8081",
        "the operator's probes": f"{pods['operator']}:8080",
        "the API server": "kubernetes.default.svc:443",
        "the API server, at its address": f"{api['endpoints'][0]['addresses'][0]}:{api['ports'][0]['port']}",
        "the kubelet": f"{node}:10250",
        "another experiment's worker": f"{right.pod['status']['podIP']}:{LISTENS}",
    }
    probes = {name: ["connect", place] for name, place in (let_in | kept_out).items()}
    wanted = dict.fromkeys(let_in, "open") | dict.fromkeys(kept_out, "refused")
    assert settled(left.inside, probes, wanted) == wanted
    itself = {"itself": ["connect", f"127.0.0.1:{LISTENS}"]}
    assert right.inside.answers(itself) == {"itself": "open"}, "somebody listens there"


# --- the database ----------------------------------------------------------------------------------------------


def test_a_workers_role_is_good_for_its_own_database_and_nothing_in_it_is_another_runs(
    workers: tuple[Worker, Worker],
) -> None:
    left, right = workers
    others = dsns.parse(right.dsn)
    own = dsns.parse(left.dsn)
    denied = "permission denied for database"
    probes: dict[str, list[object]] = {
        "own": ["query", left.dsn, "SELECT current_database() = current_user"],
        "own table": ["query", left.dsn, "CREATE TABLE IF NOT EXISTS t (n int)", "SELECT count(*) >= 0 FROM t"],
        "another run's": ["query", dsns.with_database(left.dsn, others["dbname"]), "SELECT 1"],
        "another run's, as its role": [
            "query",
            dsns.with_login(left.dsn, user=others["user"], password=own["password"], database=others["dbname"]),
            "SELECT 1",
        ],
        **{
            name: ["query", dsns.with_database(left.dsn, name), "SELECT 1"]
            for name in ("killpoint_journal", "killpoint_payments", "killpoint_control", "postgres", "template1")
        },
        "power": ["query", left.dsn, POWERS],
        "another's role": ["query", left.dsn, "SET ROLE killpoint_payments"],
        "the administrator's role": ["query", left.dsn, "SET ROLE killpoint"],
        "passwords": ["query", left.dsn, "SELECT rolpassword FROM pg_authid"],
        "a program": ["query", left.dsn, "COPY (SELECT 1) TO PROGRAM 'id'"],
        "a file": ["query", left.dsn, "SELECT pg_read_file('/etc/passwd')"],
        "others' statements": ["query", left.dsn, STATEMENTS],
        "others' sessions": ["query", left.dsn, TERMINATION],
    }
    wanted = {
        "own": "[(True,)]",
        "own table": "[(True,)]",
        "another run's": denied,
        "another run's, as its role": "password authentication failed",
        **dict.fromkeys(
            ("killpoint_journal", "killpoint_payments", "killpoint_control", "postgres", "template1"), denied
        ),
        "power": "[(False, False, False, False, False)]",
        "another's role": "permission denied to set role",
        "the administrator's role": "permission denied to set role",
        "passwords": "permission denied for table pg_authid",
        "a program": "to or from an external program",
        "a file": "permission denied for function pg_read_file",
        "others' statements": "[(0,)]",
        "others' sessions": "to terminate",
    }
    assert settled(left.inside, probes, wanted) == wanted
    assert right.inside.answers({"own": ["query", right.dsn, "SELECT 1"]}) == {"own": "[(1,)]"}, "it is there"


# --- tokens ----------------------------------------------------------------------------------------------------


def test_a_token_is_good_for_its_own_run_at_payments_and_control(workers: tuple[Worker, Worker]) -> None:
    left, right = workers
    payments, control = f"http://{NAME}-payments:8080/v1/charges", f"http://{NAME}-control:8080/v1/attempts"
    order = right.assignment["job"]["orders"][0]
    charge = {"order": order["id"], "amount": order["amount"], "currency": order["currency"]}
    own = settled(
        right.inside,
        {"charge": ["ask", "POST", payments, right.token, charge]},
        {"charge": '"id"'},
    )
    assert own == {"charge": '"id"'}
    run, attempt = right.assignment["run"], right.assignment["attempt"]
    mine = left.assignment["attempt"]
    head, claims, signature = left.token.split(".")
    forged = ".".join((head, right.token.split(".")[1], signature))
    park = {"point": "charge.before"}
    assert right.inside.answers({"run": ["ask", "GET", f"{payments}?run={run}", right.token]})["run"].count('"id"') == 1
    probes: dict[str, list[object]] = {
        "its own run": ["ask", "GET", f"{payments}?run={left.assignment['run']}", left.token],
        "another's run": ["ask", "GET", f"{payments}?run={run}", left.token],
        "another's order": ["ask", "GET", f"{payments}?order={order['id']}", left.token],
        "forged, at payments": ["ask", "GET", f"{payments}?run={run}", forged],
        "none, at payments": ["ask", "GET", f"{payments}?run={run}", ""],
        "its own attempt": ["ask", "POST", f"{control}/{mine}/parked", left.token, park],
        "another's attempt": ["ask", "POST", f"{control}/{attempt}/parked", left.token, park],
        "forged, at control": ["ask", "POST", f"{control}/{attempt}/parked", forged, park],
        "none, at control": ["ask", "POST", f"{control}/{attempt}/parked", "", park],
    }
    wanted = {
        "its own run": '200 {"charges":[]}',
        "another's run": '200 {"charges":[]}',
        "another's order": '200 {"charges":[]}',
        "forged, at payments": "401 ",
        "none, at payments": "401 ",
        "its own attempt": '200 {"do":"wait"}',
        "another's attempt": "403 ",
        "forged, at control": "401 ",
        "none, at control": "401 ",
    }
    assert claims != right.token.split(".")[1]
    assert settled(left.inside, probes, wanted) == wanted


# --- pods ------------------------------------------------------------------------------------------------------


def test_every_live_pod_is_restricted_and_only_the_operator_has_a_token_for_the_api_server(
    release: Kubectl, workers: tuple[Worker, Worker]
) -> None:
    pods = release.get("pods")["items"]
    components = {pod["metadata"]["labels"].get("app.kubernetes.io/component", "worker") for pod in pods}
    assert components == {"operator", "control", "payments", "postgres", "worker"}
    assert [told for pod in pods for told in looser(pod["metadata"]["name"], pod["spec"])] == []
    with_token = {
        pod["metadata"]["labels"].get("app.kubernetes.io/component", "worker")
        for pod in pods
        if any("serviceAccountToken" in source for source in projected(pod["spec"]))
    }
    assert with_token == {"operator"}
    inside = workers[0].inside.answers(
        {
            "token": ["there", "/var/run/secrets/kubernetes.io", "/run/secrets/kubernetes.io"],
            "files": ["written", "/here", "/usr/here", "/etc/here", "/tmp/here"],  # noqa: S108 - what a worker may
        }
    )
    assert inside == {"token": "[]", "files": "['/tmp/here']"}
    assert not [name for name in workers[0].given if name.endswith("_SERVICE_HOST") and "KUBERNETES" not in name]


def projected(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for volume in spec.get("volumes", ()):
        yield from volume.get("projected", {}).get("sources", ())


def looser(name: str, spec: Mapping[str, Any]) -> Iterator[str]:
    """What a pod has that goes beyond what ours need."""
    whole = spec.get("securityContext", {})
    if spec.get("enableServiceLinks") is not False:
        yield f"{name}: service links"
    if spec.get("hostNetwork") or spec.get("hostPID") or spec.get("hostIPC"):
        yield f"{name}: a namespace of the node's"
    if any("hostPath" in volume for volume in spec.get("volumes", ())):
        yield f"{name}: a path of the node's"
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        own = {**whole, **container.get("securityContext", {})}
        asked = {
            "runAsNonRoot": own.get("runAsNonRoot") is True,
            "seccomp": own.get("seccompProfile", {}).get("type") == "RuntimeDefault",
            "allowPrivilegeEscalation": own.get("allowPrivilegeEscalation") is False,
            "privileged": not own.get("privileged"),
            "capabilities": own.get("capabilities") == {"drop": ["ALL"]},
            "readOnlyRootFilesystem": own.get("readOnlyRootFilesystem") is True,
            "requests": {"cpu", "memory"} <= container["resources"].get("requests", {}).keys(),
            "limit on memory": "memory" in container["resources"].get("limits", {}),
        }
        yield from (f"{name}: {container['name']}: {what}" for what, kept in asked.items() if not kept)


def test_a_workers_pod_gets_into_a_restricted_namespace_only_as_it_is(
    release: Kubectl, workers: tuple[Worker, Worker]
) -> None:
    """So the API server holds us to it, and a live pod is one that it let in."""
    spec = workers[0].pod["spec"]
    (container,) = spec["containers"]
    looseners: dict[str, dict[str, Any]] = {
        "as it is": {},
        "the node's network": {"hostNetwork": True},
        "the node's processes": {"hostPID": True, "shareProcessNamespace": False},
        "a path of the node's": {"volumes": [*spec["volumes"], {"name": "root", "hostPath": {"path": "/"}}]},
        "as root": {"securityContext": {**spec["securityContext"], "runAsNonRoot": False}},
        "without seccomp": {"securityContext": {"runAsNonRoot": True}},
        **{
            what: {"containers": [{**container, "securityContext": {**container["securityContext"], **change}}]}
            for what, change in (
                ("privileged", {"privileged": True, "allowPrivilegeEscalation": True}),
                ("more privileges later", {"allowPrivilegeEscalation": True}),
                ("capabilities", {"capabilities": {"drop": []}}),
            )
        },
    }
    said = {what: dry_run(release, {**spec, **change}) for what, change in looseners.items()}
    assert said.pop("as it is") == ""
    assert {what: words for what, words in said.items() if "violates PodSecurity" not in words} == {}


def dry_run(kubectl: Kubectl, spec: Mapping[str, Any]) -> str:
    """What the API server has against a pod; empty: nothing."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": spec}
    try:
        kubectl("create", "--dry-run=server", "--filename=-", manifest=pod)
    except AssertionError as error:
        return str(error)
    return ""


# --- secrets ---------------------------------------------------------------------------------------------------


def test_no_secret_is_in_anything_that_people_read(
    release: Kubectl, workers: tuple[Worker, Worker], tmp_path: Path
) -> None:
    """Though three workers do what they can to get theirs into it, and all is done once that is killed for."""
    for name, program in TELLTALES.items():
        document = experiment(name, limits={"startupSeconds": 120, "inconclusiveRetries": 0})
        document["spec"]["workers"][0]["command"][-1] = program
        release.apply(document)
    kill = {"at": ["charge.after"], "method": "delete-pod"}
    release.apply(
        experiment("parks", workers=[], matrix={"setup": ["langgraph"], "key": ["none"], "kill": [kill]}, expect=[])
    )
    names = (*TELLTALES, "parks")
    secrets: dict[str, str] = {}
    deadline = time.monotonic() + RUN_SECONDS_MAX
    experiments = Experiments(release)
    while [name for name in names if experiments.status(name).get("phase") != "Complete"]:
        assert time.monotonic() < deadline, [experiments.status(name) for name in names]
        secrets |= secrets_of(release)
        time.sleep(0.5)
    assert experiments.status("parks")["kills"] == {"planned": 1, "confirmed": 1}
    texts = read_by_people(Cli(kubectl=release, folder=tmp_path), names)
    assert leaks(texts, secrets) == []
    may_be_silent = tuple(f"log of {of}-" for of in ("kp", f"{NAME}-control"))
    assert [what for what, text in texts.items() if not (text.strip() or what.startswith(may_be_silent))] == []
    assert leaks(texts, {"a name": "telltale-prints"}), "and it is searched"
    assert workers[0].token in secrets.values()
    for name in names:
        journal = experiments.status(name)["journalID"]
        assert {what.split()[-1] for what in secrets if what.startswith(f"kp-{journal}")} >= {"1", "password"}, name
    for name in TELLTALES:
        assert "kp1.…" in json.dumps(experiments.status(name), ensure_ascii=False), f"{name} did tell"
