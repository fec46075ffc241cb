"""``killpoint validate``: for this machine, for a cluster, and against what is stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from killpoint.cli.app import app, run_command

TEXT = """\
apiVersion: killpoint.dev/v1alpha1
kind: CrashExperiment
metadata: {name: sample}
spec:
  matrix: {setup: [langgraph], store: [STORE], kill: [{at: [charge.after], method: METHOD}]}
  trials: TRIALS
"""


def file(folder: Path, *, store: str = "postgres", method: str = "sigkill", trials: int = 5) -> str:
    path = folder / f"{store}-{method}-{trials}.yaml"
    path.write_text(TEXT.replace("STORE", store).replace("METHOD", method).replace("TRIALS", str(trials)))
    return str(path)


def validate(*arguments: str) -> int:
    return run_command(lambda: app(["validate", *arguments], standalone_mode=False))


@pytest.mark.parametrize(
    ("store", "method", "codes"),
    [
        ("postgres", "sigkill", (0, 0)),
        ("postgres", "exit", (0, 0)),
        ("volume", "sigkill", (0, 2)),
        ("pod", "sigkill", (2, 0)),
        ("postgres", "delete-pod", (2, 0)),
        ("postgres", "out-of-memory", (2, 0)),
        ("postgres", "freeze", (2, 0)),
    ],
)
def test_what_can_be_had_differs_between_this_machine_and_a_cluster(
    tmp_path: Path, store: str, method: str, codes: tuple[int, int]
) -> None:
    path = file(tmp_path, store=store, method=method)
    assert (validate(path), validate(path, "--cluster")) == codes


def test_as_kubectls_plugin_a_cluster_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = file(tmp_path, store="pod")
    plan = ["plan", path]
    assert run_command(lambda: app(plan, standalone_mode=False)) == 2
    assert run_command(lambda: app([*plan, "--cluster"], standalone_mode=False)) == 0
    monkeypatch.setattr("sys.argv", ["/usr/local/bin/kubectl-killpoint", *plan])
    assert run_command(lambda: app(plan, standalone_mode=False)) == 0
    assert validate(path) == 0


def test_the_place_that_lacks_something_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate(file(tmp_path, store="pod")) == 2
    assert '"pod" is not available on this machine; use one of "postgres", "volume"' in capsys.readouterr().err
    assert validate(file(tmp_path, store="volume"), "--cluster") == 2
    assert '"volume" is not available in a cluster; use one of "postgres", "pod"' in capsys.readouterr().err


def test_what_may_not_change_is_said_when_the_stored_experiment_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored, changed = file(tmp_path), file(tmp_path, trials=6)
    assert validate(changed, "--cluster", "--replaces", stored) == 2
    assert "spec.trials: Forbidden: field is immutable" in capsys.readouterr().err
    assert validate(stored, "--cluster", "--replaces", stored) == 0
