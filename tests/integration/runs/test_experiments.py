"""Every experiment that killpoint brings comes out as its file expects, with every kill proven."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.runs import rig
from tests.integration.runs.rig import EXPERIMENTS, Command

pytestmark = [pytest.mark.integration, pytest.mark.slow]

FEW = {
    # CrewAI's checkpoint writer spoils a few resumes in a hundred: with two trials a cell still comes to a conclusion.
    "crash-table": 2,
    "two-kills": 2,
    "saved-random": 2,
}
"""Trials of each cell; one where nothing is said."""
NARROWED = {
    # DBOS takes seconds to start, and is never forked.
    "dbos": ("--filter", "key=none,stable"),
    # CrewAI's checkpoints on a volume are its contract tests' part.
    "crash-table-volume": ("--filter", "setup=langgraph,llamaindex,crewai-persist"),
}
PODS = {"kill-methods", "pod-store"}
"""Those that need what only a cluster has: tests/cluster runs them."""


@pytest.mark.parametrize("name", sorted({file.stem for file in EXPERIMENTS.glob("*.yaml")} - PODS))
def test_it_passes(name: str, command: Command, tmp_path: Path) -> None:
    file = rig.fewer(name, tmp_path, trials=FEW.get(name, 1))
    ended = command("run", file, "-o", "json", *NARROWED.get(name, ()))
    assert ended.code == 0, f"{ended.out[:3000]}\n{ended.err[-3000:]}"
    status = ended.status
    assert status["result"] == "Pass"
    assert status["kills"]["confirmed"] == status["kills"]["planned"] > 0
    assert status["trials"]["judged"] == status["trials"]["planned"]
    assert status["trials"]["controls"] > 0
    assert all(cell["met"] == "True" for cell in status["cells"])
