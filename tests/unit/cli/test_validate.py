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


EVERY_POINT = """\
apiVersion: killpoint.dev/v1alpha1
kind: CrashExperiment
metadata: {name: every}
spec:
  matrix: {setup: [langgraph], kill: [{at: ["*"]}, {at: [charge.after]}]}
  trials: 5
  controls: 2
  expect:
  - where: {kill: [charge.sent]}
    verdict: [lost]
"""


def test_every_point_counts_as_its_points_in_validate_and_in_plan_and_each_has_its_own_expectation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "every.yaml"
    path.write_text(EVERY_POINT)
    points = next(setup.points for setup in installed_workloads().catalog() if setup.name == "langgraph")
    size = f"{len(points) + 1} cells, {len(points) * 5 + 2} trials"
    assert validate(str(path)) == 0
    assert f"valid: about {size}" in capsys.readouterr().out
    assert run_command(lambda: app(["plan", str(path)], standalone_mode=False)) == 0
    shown = capsys.readouterr().out
    assert f"About {size}" in shown
    expected = {words[2]: words[5] for line in shown.splitlines() if len(words := line.split()) == 6}
    assert {point: expected[point] for point in points} == {
        point: "lost" if point == "charge.sent" else "exactly-once" for point in points
    }


def test_without_every_point_the_numbers_are_exact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate(file(tmp_path)) == 0
    assert "valid: 2 cells" in capsys.readouterr().out
