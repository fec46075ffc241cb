"""``killpoint --cluster`` and ``kubectl killpoint``: a kubeconfig is all that they need."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from killpoint.api.v1alpha1.status import Status
from killpoint.local.home import Home
from tests.cluster.experiments import installed
from tests.cluster.helm import NAME
from tests.cluster.kubectl import Kubectl
from tests.cluster.node.commands import sanitized
from tests.cluster.pods import pod
from tests.cluster.providers import Provider

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

PROGRAMS = Path(sys.executable).parent
END_SECONDS_MAX = 240.0
CONNECT = """
import socket, sys, time

# A policy knows a new pod after a moment.
time.sleep(8)
for place in sys.argv[1:]:
    host, _, port = place.partition(":")
    try:
        socket.create_connection((host, int(port)), 3).close()
    except OSError:
        print("kept out")
    else:
        print("let in")
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cli:
    """The commands, with a kubeconfig alone."""

    kubectl: Kubectl
    folder: Path

    def __call__(self, *arguments: str | Path, program: str = "killpoint") -> subprocess.CompletedProcess[str]:
        running = self.start(*arguments, program=program)
        out, err = running.communicate(timeout=END_SECONDS_MAX)
        assert "Traceback" not in err
        return subprocess.CompletedProcess(arguments, running.returncode, out, err)

    def start(self, *arguments: str | Path, program: str = "killpoint") -> subprocess.Popen[str]:
        """``program`` may be several words."""
        first, *rest = program.split()
        environment = sanitized(os.environ) | {"PATH": f"{PROGRAMS}:{os.environ['PATH']}", "HOME": str(self.folder)}
        environment["KUBECONFIG"] = str(self.kubectl.kubeconfig)
        environment["KILLPOINT_CACHE"] = str(Home.from_environment(os.environ).cache)
        return subprocess.Popen(
            (first, *rest, *map(str, arguments), f"--namespace={self.kubectl.namespace}"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=self.folder,
        )

    def file(self, name: str, *, trials: int = 1, expect: bool = True) -> Path:
        """Two cells: one that charges twice, and is expected to unless ``expect`` is false, and one that does not."""
        duplicate = {"where": {"key": ["none"], "kill": ["charge.after"]}, "verdict": ["duplicate"]}
        document = {
            "apiVersion": "killpoint.dev/v1alpha1",
            "kind": "CrashExperiment",
            "metadata": {"name": name},
            "spec": {
                "matrix": {"setup": ["langgraph"], "key": ["none", "stable"], "kill": [{"at": ["charge.after"]}]},
                "trials": trials,
                "limits": {"startupSeconds": 120, "attemptSeconds": 120},
                "expect": [duplicate] if expect else [],
            },
        }
        path = self.folder / f"{name}-{trials}-{expect}.yaml"
        path.write_text(yaml.safe_dump(document))
        return path


@pytest.fixture(scope="module")
def cli(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    with installed(provider) as kubectl:
        yield Cli(kubectl=kubectl, folder=tmp_path_factory.mktemp("cli"))


@pytest.fixture(scope="module")
def ran(cli: Cli) -> subprocess.CompletedProcess[str]:
    """An experiment that was run to its end."""
    return cli("run", "--cluster", cli.file("first"), "-o", "json", "--report", cli.folder / "first.html")


def test_a_run_shows_its_progress_and_ends_as_one_on_this_machine_does(
    cli: Cli, ran: subprocess.CompletedProcess[str]
) -> None:
    assert ran.returncode == 0, ran.stderr
    status = Status.model_validate_json(ran.stdout)
    assert (status.result, status.progress) == ("Pass", "4/4")
    assert (status.kills.planned, status.kills.confirmed) == (2, 2)
    assert (status.effects.witnessed, status.effects.duplicate) == (5, 1)
    assert status.provenance.substrate == "kubernetes"
    assert "of 4 trials" in ran.stderr
    assert "<html" in (cli.folder / "first.html").read_text()


def test_a_stored_experiment_is_reported_in_every_form(cli: Cli, ran: subprocess.CompletedProcess[str]) -> None:
    assert ran.returncode == 0
    assert cli("report", "--cluster", "first", "-o", "json").stdout == ran.stdout
    html = cli("report", "--cluster", "first", "-o", "html")
    assert html.returncode == 0
    assert html.stdout.rstrip("\n") == (cli.folder / "first.html").read_text().rstrip("\n")
    assert "<testsuites" in cli("report", "--cluster", "first", "-o", "junit").stdout
    assert "duplicate" in cli("report", "--cluster", "first").stdout


def test_its_status_is_told_and_kubectl_knows_the_program_as_a_plugin(
    cli: Cli, ran: subprocess.CompletedProcess[str]
) -> None:
    assert ran.returncode == 0
    told = cli("status", program=f"{cli.kubectl.program} killpoint")
    row = next(line.split() for line in told.stdout.splitlines() if line.startswith("first"))
    assert row[:7] == ["first", "Complete", "Pass", "4/4", "2/2", "1", "0"]
    one = cli("status", "--cluster", "first").stdout
    assert "killpoint report --cluster first" in one


def test_other_expectations_judge_the_same_evidence(cli: Cli, ran: subprocess.CompletedProcess[str]) -> None:
    assert ran.returncode == 0
    judged = cli("judge", "--cluster", "first", "--expect", cli.file("first", expect=False))
    assert judged.returncode == 1
    assert "exactly-once" in judged.stdout


def test_one_of_its_trials_is_run_again_on_this_machine(cli: Cli, ran: subprocess.CompletedProcess[str]) -> None:
    doubled = next(cell for cell in Status.model_validate_json(ran.stdout).cells if "duplicate" in cell.verdicts)
    again = cli("replay", "--cluster", "first", f"{doubled.id}.1", "-o", "json")
    assert again.returncode == 0, again.stderr
    status = Status.model_validate_json(again.stdout)
    assert (status.provenance.substrate, status.progress) == ("local", "2/2")
    (killed,) = (cell for cell in status.cells if not cell.control)
    assert (killed.id, killed.verdicts) == (doubled.id, doubled.verdicts)


def test_the_status_names_evidence_that_a_kubeconfig_is_enough_to_read(
    cli: Cli, ran: subprocess.CompletedProcess[str]
) -> None:
    assert ran.returncode == 0
    kubectl = cli.kubectl
    report = kubectl.get("cexp", "first")["status"]["report"]
    raw = kubectl("get", "--raw", report["location"])
    assert hashlib.sha256(raw.encode()).hexdigest() == report["sha256"]
    assert len(json.loads(raw)["trials"]) == 4
    asked = ("auth", "can-i", "get", f"services/http:{NAME}-operator:evidence", "--subresource=proxy")
    role = f"--role={NAME}-evidence-reader"
    kubectl("create", "rolebinding", "reads", role, f"--serviceaccount={kubectl.namespace}:default")
    user = f"--as=system:serviceaccount:{kubectl.namespace}:default"
    assert kubectl(*asked, user).strip() == "yes"
    kept = kubectl.get("secret", NAME)["data"].values()
    assert not any(base64.b64decode(value).decode() in raw for value in kept)


def test_workers_cannot_reach_evidence(cli: Cli) -> None:
    kubectl = cli.kubectl
    labels = {"killpoint.dev/attempt": "none"}
    evidence = f"{NAME}-operator:8081"
    for_workers, for_anybody = f"{NAME}-payments:8080", "kubernetes.default.svc:443"
    kubectl.apply(
        pod("as-worker", "payments", command=["python", "-c", CONNECT, for_workers, evidence], labels=labels),
        pod("as-stranger", "payments", command=["python", "-c", CONNECT, for_anybody, evidence]),
    )
    for name in ("as-worker", "as-stranger"):
        assert kubectl.ended(name)["exitCode"] == 0
        assert kubectl("logs", name).split("\n")[:2] == ["let in", "kept out"], "what they may reach, then what not"


def test_what_is_over_or_is_another_one_is_not_run_again(cli: Cli, ran: subprocess.CompletedProcess[str]) -> None:
    assert ran.returncode == 0
    again = cli("run", "--cluster", cli.file("first"))
    assert (again.returncode, again.stdout) == (2, "")
    assert "has been run already" in again.stderr
    other = cli("run", "--cluster", cli.file("first", trials=2))
    assert (other.returncode, other.stdout) == (2, "")
    assert "spec.trials: Forbidden: field is immutable" in other.stderr


def test_an_interrupt_aborts_unless_the_command_is_detached(cli: Cli) -> None:
    file = cli.file("long", trials=100)
    detached = cli.start("run", "--cluster", file, "--detach")
    under_way(cli, "long")
    said = interrupted(detached)
    assert "goes on" in said
    assert "abort" not in cli.kubectl.get("cexp", "long")["spec"] or not spec(cli)["abort"]
    assert "not over" in cli("report", "--cluster", "long").stderr
    attached = cli.start("run", "--cluster", file)
    time.sleep(5)
    assert attached.poll() is None
    said = interrupted(attached)
    assert "is aborted, and nothing of it is left running" in said
    assert spec(cli)["abort"] is True
    uid = cli.kubectl.get("cexp", "long")["metadata"]["uid"]
    pods = cli.kubectl.get("pods", f"--selector=killpoint.dev/experiment-uid={uid}")["items"]
    assert [one["status"]["phase"] for one in pods if one["status"]["phase"] == "Running"] == []
    ended = cli("report", "--cluster", "long", "-o", "json")
    assert (ended.returncode, Status.model_validate_json(ended.stdout).result) == (0, "Inconclusive")


def test_a_namespace_that_no_operator_looks_after_is_no_reason_to_wait_for_ever(cli: Cli) -> None:
    elsewhere = f"{cli.kubectl.namespace}-other"
    cli.kubectl("create", "namespace", elsewhere)
    try:
        other = Kubectl(program=cli.kubectl.program, kubeconfig=cli.kubectl.kubeconfig, namespace=elsewhere)
        ended = Cli(kubectl=other, folder=cli.folder)("run", "--cluster", cli.file("unseen"))
        assert (ended.returncode, ended.stdout) == (3, "")
        assert f"no operator has accepted experiment {elsewhere}/unseen within 30 s" in ended.stderr
    finally:
        cli.kubectl("delete", "namespace", elsewhere, "--wait=false")


def interrupted(running: subprocess.Popen[str]) -> str:
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=END_SECONDS_MAX)
    assert running.returncode == 130, err
    assert "Traceback" not in err
    return err


def spec(cli: Cli) -> dict[str, Any]:
    found: dict[str, Any] = cli.kubectl.get("cexp", "long")["spec"]
    return found


def under_way(cli: Cli, name: str) -> None:
    """Wait until a trial is judged."""
    deadline = time.monotonic() + END_SECONDS_MAX
    while True:
        found = cli.kubectl.get("cexp", f"--field-selector=metadata.name={name}")["items"]
        if found and found[0].get("status", {}).get("trials", {}).get("judged"):
            return
        assert time.monotonic() < deadline, json.dumps(found, indent=1)
        time.sleep(1)
