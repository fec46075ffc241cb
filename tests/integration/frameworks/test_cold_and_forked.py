"""A forked attempt shows what a cold one shows: forking saves time and changes no result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.contract.fixtures import NewTrial
from tests.contract.rig import Launcher, Setup, Trial, setups

pytestmark = [pytest.mark.integration, pytest.mark.slow]

FORKABLE = [
    pytest.param(setup, id=setup.name)
    for workload in ("crewai", "langgraph", "llamaindex")
    for setup in setups(workload)
    if setup.entry["forkable"]
]
CELLS = [("none", "charge.after"), ("none", "charge.recorded")]


@contextmanager
def cold(setup: Setup, folder: Path) -> Iterator[Launcher]:
    """A launcher that starts each attempt as a new interpreter."""
    entry = {**setup.entry, "forkable": False}
    with Launcher(Setup(workload=setup.workload, entry=entry), folder) as launcher:
        yield launcher


def charges(trial: Trial, point: str) -> int:
    """How often a trial charges that is killed at ``point`` and resumed."""
    trial.killed_at(point)
    trial.resumed()
    return trial.charges


@pytest.mark.parametrize("setup", FORKABLE)
def test_cold_and_forked_attempts_charge_equally_often(new_trial: NewTrial, tmp_path: Path, setup: Setup) -> None:
    with cold(setup, tmp_path) as launcher:
        for key, point in CELLS:
            forked = new_trial(setup, "postgres", key=key)
            executed = replace(new_trial(setup, "postgres", key=key), launcher=launcher)
            assert charges(executed, point) == charges(forked, point), (key, point)
