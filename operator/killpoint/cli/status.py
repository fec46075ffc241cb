"""The runs on this machine as text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from killpoint.cli.archive import RunCard
from killpoint.cli.columns import aligned


def status_text(runs: Sequence[RunCard], running: Collection[str]) -> str:
    """One line a run, newest first. ``running``: the ids of those that a killpoint executes now."""
    if not runs:
        return "No runs yet. Start with: killpoint run experiments/crash-table.yaml"
    rows = [("RUN", "EXPERIMENT", "STARTED", "STATE", "RESULT", "TRIALS")]
    rows += [
        (
            card.run,
            card.experiment + (" (a part)" if card.narrowed else ""),
            datetime.fromtimestamp(card.started_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
            "ended" if card.state == "ended" else "running" if card.run in running else "interrupted",
            card.result or "-",
            f"{card.judged}/{card.trials}",
        )
        for card in runs
    ]
    interrupted = [card for card in runs if card.state != "ended" and card.run not in running]
    hint = [f"An interrupted run goes on with: killpoint run {interrupted[0].file}"] if interrupted else []
    return aligned(rows) + "".join(f"\n\n{line}" for line in hint)
