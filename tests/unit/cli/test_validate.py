"""``killpoint validate``: for this machine, for a cluster, and against what is stored."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import yaml

from killpoint.cli.app import app, run_command
from killpoint.local.stack import installed_workloads

ROOT = Path(__file__).parents[3]

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


def test_a_setup_that_no_image_is_built_of_is_refused_for_a_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "shell.yaml"
    path.write_text(Path(file(tmp_path, store="volume")).read_text().replace("langgraph", "shell"))
    assert validate(str(path)) == 0
    path.write_text(path.read_text().replace("volume", "pod"))
    for command in ("validate", "plan"):
        assert run_command(partial(app, [command, str(path), "--cluster"], standalone_mode=False)) == 2
        said = capsys.readouterr().err
        assert 'spec.matrix.setup[0]: Unsupported value: "shell": supported values: "crewai-checkpoint"' in said
        assert said.count('"shell"') == 1


def test_the_setups_offered_for_a_cluster_are_those_whose_images_the_chart_names() -> None:
    values = yaml.safe_load((ROOT / "charts" / "killpoint" / "values.yaml").read_text())
    known = installed_workloads().catalog()
    assert {setup.project for setup in known if setup.has_image} == set(values["images"]["workers"])
