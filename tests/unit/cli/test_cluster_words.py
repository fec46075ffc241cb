"""Which cluster a command is about, and the sentences that it says of one."""

from __future__ import annotations

import asyncio
import builtins
from pathlib import Path
from typing import Any

import pytest

from killpoint.cli.app import app, run_command
from killpoint.cli.cluster.refusals import stop_for
from killpoint.cli.cluster.target import Target, connected, target_of
from killpoint.cli.cluster.text import list_text, one_text
from killpoint.cli.exits import Exit, Stop
from killpoint.kubernetes.refusals import Answer
from tests.unit.cli.memory import TEXT, Finished, standing

HERE = Target(namespace="team").command
PROXY = "GET /api/v1/namespaces/k/services/http:k:evidence/proxy/v1/experiments/team/x/evidence"


def command(*arguments: str | Path) -> int:
    return run_command(lambda: app([str(argument) for argument in arguments], standalone_mode=False))


def target(program: str = "/usr/bin/killpoint", **given: Any) -> Target | None:  # noqa: ANN401 - passed on
    asked: dict[str, Any] = {"cluster": False, "namespace": None, "context": None, "kubeconfig": None}
    return target_of(**(asked | given), program=program)


def test_a_cluster_is_meant_when_it_is_said_or_named_or_kubectl_asks() -> None:
    assert target() is None
    assert target(cluster=True) == Target()
    assert target(namespace="team") == Target(namespace="team")
    assert target(kubeconfig=Path("x")) == Target(kubeconfig=Path("x"))
    assert target("/home/me/.local/bin/kubectl-killpoint") == Target()


def test_the_namespace_of_the_file_holds_unless_another_is_asked_for() -> None:
    assert Target(context="c").within("team") == Target(context="c", namespace="team")
    assert Target(namespace="team").within("team") == Target(namespace="team").within(None)
    with pytest.raises(Stop, match="the file is for namespace team, and --namespace says other"):
        Target(namespace="other").within("team")


def test_options_lead_to_the_same_cluster_again() -> None:
    assert Target(namespace="team", kubeconfig=Path("my file")).options == " --namespace=team --kubeconfig='my file'"


def test_a_command_that_is_suggested_is_spelled_as_ours_was_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["/usr/local/bin/killpoint"])
    assert HERE("report", "x") == "killpoint report --cluster x --namespace=team"
    monkeypatch.setattr("sys.argv", ["/usr/local/bin/kubectl-killpoint"])
    assert HERE("report", "x") == "kubectl killpoint report x --namespace=team"
    assert Target(context="c").command("status") == "kubectl killpoint status --context=c"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "there is no kubeconfig"),
        ("hello: [", "cannot be used"),
        ("", "cannot be used"),
        ("apiVersion: v1\nkind: Config\n", "cannot be used"),
    ],
)
def test_a_kubeconfig_that_leads_nowhere_is_named(
    tmp_path: Path, text: str | None, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text)
    assert command("status", "--kubeconfig", path) == Exit.INVALID
    said = capsys.readouterr().err
    assert words in said
    assert str(path) in said
    assert "Traceback" not in said


def test_an_api_server_that_is_away_is_said_to_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config"
    path.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a}}]\n"
        "clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\n"
    )
    assert command("report", "some", "--kubeconfig", path) == Exit.NOT_EXECUTED
    said = capsys.readouterr().err
    assert "the API server does not answer" in said
    assert "kubectl get namespaces" in said


def test_without_the_client_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without(name: str, *more: Any) -> Any:  # noqa: ANN401 - as __import__
        if name == "killpoint.cli.cluster.api":
            raise ModuleNotFoundError("No module named 'kubernetes'", name="kubernetes.aio")
        return imported(name, *more)

    async def connect() -> None:
        async with connected(Target()):
            raise AssertionError("it has connected")

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(Stop, match=r"pip install 'killpoint\[cluster\]'") as caught:
        asyncio.run(connect())
    assert caught.value.code == Exit.NOT_EXECUTED


def test_options_that_mean_nothing_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "experiment.yaml"
    file.write_text(TEXT)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("KILLPOINT_DSN", "postgresql://somewhere/else")
    for arguments, words in (
        (("run", file, "--cluster", "--filter", "key=none"), "--filter is for runs on this machine"),
        (("run", file, "--cluster", "--dsn", "x"), "--dsn is for runs on this machine"),
        (("run", file, "--detach"), "--detach is for runs in a cluster"),
        (("run", file, "--cluster"), "there is no kubeconfig"),
        (("report", "--cluster"), "which experiment?"),
        (("report", "x", "--cluster", "--evidence", file), "leave one of the two out"),
    ):
        assert command(*arguments) == Exit.INVALID
        assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answer", "request_", "exit_", "words"),
    [
        ((403, "crashexperiments is forbidden"), "PATCH /apis/x", Exit.NOT_EXECUTED, "Ask for get, list, create"),
        ((403, "services/proxy is forbidden"), PROXY, Exit.NOT_EXECUTED, "evidence-reader"),
        ((404, 'namespaces "team" not found'), "PATCH /apis/x", Exit.INVALID, "kubectl create namespace team"),
        ((404, 'services "k" not found'), PROXY, Exit.NOT_EXECUTED, "`helm install` under the same release name"),
        ((404, "no evidence is kept of it"), PROXY, Exit.NOT_EXECUTED, "404 no evidence is kept of it"),
        ((404, "could not find the resource"), "GET /apis/x", Exit.NOT_EXECUTED, "Is killpoint installed"),
        ((422, "spec is invalid"), "PATCH /apis/x", Exit.INVALID, "refuses the experiment: spec is invalid"),
        ((500, "webhook failed"), "PATCH /apis/x", Exit.NOT_EXECUTED, "500 webhook failed"),
    ],
)
def test_a_refusal_comes_with_its_remedy(answer: tuple[int, str], request_: str, exit_: Exit, words: str) -> None:
    code, message = answer
    stop = stop_for(Answer(code=code, reason="r", message=message), request_, "team")
    assert stop.code == exit_
    assert words in str(stop)


def body(name: str, status: Any, created: str = "2026-01-01T00:00:00Z") -> dict[str, Any]:  # noqa: ANN401 - a document
    return {"metadata": {"name": name, "uid": name, "creationTimestamp": created}, "status": status}


def test_experiments_are_listed_newest_first() -> None:
    over = asyncio.run(Finished.of())
    text = list_text(
        [
            body("old", over.status),
            body("new", standing("Running", judged=1), "2026-01-02T00:00:00Z"),
            body("unseen", None, "2026-01-03T00:00:00Z"),
        ],
        namespace="team",
        command=HERE,
    )
    lines = [line.split() for line in text.splitlines()]
    assert lines[1] == ["unseen", *["-"] * 8]
    assert lines[2][:5] == ["new", "Running", "-", "1/4", "1/4"]
    assert lines[2][7] == "Running"
    assert lines[3][:8] == ["old", "Complete", "Fail", "2/2", "1/1", "1", "0", "NotAsExpected"]
    assert "namespace team" in list_text([], namespace="team", command=HERE)


def test_one_experiment_is_told_of_with_what_is_wrong_and_what_to_do_next() -> None:
    over = asyncio.run(Finished.of())
    text = one_text(body("crash-table", over.status), namespace="team", command=HERE)
    for words in (
        "duplicate instead of exactly-once",
        "killpoint report --cluster crash-table --namespace=team\n",
        "kubectl get --raw /api",
    ):
        assert words in text
    waiting = one_text(body("x", standing("Queued", message="it waits for others")), namespace="team", command=HERE)
    assert waiting.splitlines()[-1] == "Queued: it waits for others"
    assert "No operator has said anything" in one_text(body("x", None), namespace="team", command=HERE)
