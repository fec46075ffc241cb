"""The runs on this machine as text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from killpoint.cli.archive import RunCard


def status_text(runs: Sequence[RunCard]) -> str:
    """One line a run, newest first."""
    if not runs:
        return "No runs yet. Start with: killpoint run experiments/crash-table.yaml"
    rows = [("RUN", "EXPERIMENT", "STARTED", "STATE", "RESULT", "TRIALS")]
    rows += [
        (
            card.run,
            card.experiment + (" (a part)" if card.narrowed else ""),
            datetime.fromtimestamp(card.started_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
            "ended" if card.state == "ended" else "running or interrupted",
            card.result or "-",
            f"{card.judged}/{card.trials}",
        )
        for card in runs
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
