"""Forked attempts give the verdicts and the charges of cold ones: forking is there to save time, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integration.runs import rig
from tests.integration.runs.rig import Command, Ended

pytestmark = [pytest.mark.integration, pytest.mark.slow]

KILLS = [{"at": ["charge.before"]}, {"at": ["charge.after"]}, {"at": ["charge.recorded"]}]


def test_forked_and_cold_show_the_same(on_dsn: Command, tmp_path: Path) -> None:
    file = rig.experiment(
        "modes",
        tmp_path,
        matrix={
            "setup": ["langgraph", "llamaindex"],
            "key": ["none"],
            "kill": KILLS,
            # CrewAI takes five seconds to import: one of its cells says it for all.
            "include": [{"setup": ["crewai-persist"], "key": ["none"], "kill": [{"at": ["charge.recorded"]}]}],
        },
        trials=1,
        expect=[
            *rig.DUPLICATES,
            {"where": {"setup": ["crewai-persist"], "kill": ["charge.recorded"]}, "verdict": ["duplicate"]},
        ],
    )
    forked, cold = (on_dsn("run", file, "-o", "json", "--mode", mode) for mode in ("fork", "cold"))
    assert forked.code == cold.code == 0, f"{forked.err[-2000:]}\n{cold.err[-2000:]}"
    assert len(forked.cells()) == 7 + 3
    assert _shown(forked) == _shown(cold)


def test_what_cannot_be_forked_is_refused(on_dsn: Command, tmp_path: Path) -> None:
    ended = on_dsn("run", rig.shell(tmp_path, "unforkable"), "--mode", "fork")
    assert ended.code == 3
    assert "setup shell cannot be forked\nUse mode auto, which starts it cold." in ended.err


def _shown(ended: Ended) -> dict[tuple[str, ...], dict[str, Any]]:
    """What of each cell has to be the same: all but times and the names of trials."""
    return {
        coordinates: {name: cell[name] for name in ("verdicts", "effects", "met", "trials", "control", "setApart")}
        for coordinates, cell in ended.cells().items()
    }
