"""The experiments that killpoint brings are valid, and expect what has been measured."""

from __future__ import annotations

from pathlib import Path

import pytest

import killpoint
from killpoint.api.available import Where
from killpoint.api.convert import experiment_of
from killpoint.api.load import load_file
from killpoint.api.problems import ProblemsError
from killpoint.local.workloads import Workloads
from killpoint.model.experiment import Experiment
from killpoint.model.rules import rule_for

FOLDER = Path(__file__).resolve().parents[3] / "experiments"
FILES = sorted(FOLDER.glob("*.yaml"))
PODS = {"kill-methods", "pod-store"}
"""Those that need what only a cluster has."""
UNSTABLE = ("none", "fresh")

MEASURED = {
    **{("langgraph", key): (1, 2, 1) for key in UNSTABLE},
    **{("llamaindex", key): (1, 2, 1) for key in UNSTABLE},
    **{("crewai-persist", key): (1, 2, 2) for key in UNSTABLE},
    **{("crewai-checkpoint", key): (1, 2, 1) for key in UNSTABLE},
    **{(setup, "stable"): (1, 1, 1) for setup in ("langgraph", "llamaindex", "crewai-persist", "crewai-checkpoint")},
}
"""Setup and key → charges when killed before the charge, after it, and after its record."""


def made(file: Path) -> Experiment:
    catalog = Workloads.find(Path(killpoint.__file__).parent).catalog()
    where = Where.CLUSTER if file.stem in PODS else Where.LOCAL
    return experiment_of(load_file(file, catalog, where), catalog, where)


def charges(experiment: Experiment, *, setup: str, key: str, kill: str) -> set[int]:
    """How many charges the rules expect of such cells."""
    expected = [
        rule_for(cell, experiment.rules)
        for cell in experiment.cells
        if (cell.coordinates.setup, cell.coordinates.key, cell.coordinates.kill.name) == (setup, key, kill)
    ]
    return {dict(rule.effects).get("charge", 1) for rule in expected}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_experiment_that_killpoint_brings_is_valid_and_says_what_it_is_for(file: Path) -> None:
    experiment = made(file)
    assert experiment.name == file.stem
    assert file.read_text(encoding="utf-8").startswith("# ")


@pytest.mark.parametrize("name", sorted(PODS))
def test_one_that_needs_pods_is_refused_on_this_machine_in_words_that_say_so(name: str) -> None:
    catalog = Workloads.find(Path(killpoint.__file__).parent).catalog()
    with pytest.raises(ProblemsError, match="not available on this machine"):
        load_file(FOLDER / f"{name}.yaml", catalog, Where.LOCAL)


def test_the_crash_table_is_the_published_one() -> None:
    experiment = made(FOLDER / "crash-table.yaml")
    killed = [cell for cell in experiment.cells if not cell.is_control]
    assert sum(cell.trials for cell in killed) == 180
    assert len(killed) == 36
    for (setup, key), numbers in MEASURED.items():
        for kill, number in zip(("charge.before", "charge.after", "charge.recorded"), numbers, strict=True):
            assert charges(experiment, setup=setup, key=key, kill=kill) == {number}, (setup, key, kill)


@pytest.mark.parametrize("kill", ["charge.before", "charge.after", "charge.recorded"])
def test_crewai_s_own_errors_are_set_apart_wherever_its_checkpoints_are_used(kill: str) -> None:
    experiment = made(FOLDER / "crash-table.yaml")
    for cell in experiment.cells:
        errors = rule_for(cell, experiment.rules).framework_errors
        if cell.coordinates.kill.name == kill:
            assert (errors is not None) is (cell.coordinates.setup == "crewai-checkpoint")


def test_the_table_in_files_expects_what_the_table_in_postgres_does() -> None:
    table, files = made(FOLDER / "crash-table.yaml"), made(FOLDER / "crash-table-volume.yaml")
    assert {cell.coordinates.store for cell in files.cells} == {"volume"}
    assert files.rules == table.rules
