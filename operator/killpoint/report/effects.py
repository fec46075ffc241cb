"""A cell's trials in a few characters: how often the effect was seen in each."""

from __future__ import annotations

from collections import Counter

from killpoint.model.summary import CellSummary, TrialRecord
from killpoint.report.standing import HARM, Standing, standing

TIMES = "\N{MULTIPLICATION SIGN}"
DIGITS_MAX = 10
"""Up to so many trials a cell has one digit for each; above it a histogram."""


def effects_text(cell: CellSummary, action: str) -> str:
    """``22x22``: effects trial by trial; over ten trials each number with its trials.

    ``1x18 2x22`` (with a multiplication sign): 18 trials with one effect, 22 with two.
    """
    signs = [_sign(record, number) for record, number in zip(cell.trials, cell.effects(action), strict=True)]
    signs += ["."] * max(cell.cell.trials - len(signs), 0)
    if len(signs) <= DIGITS_MAX:
        return "".join(sign if len(sign) == 1 else "+" for sign in signs)
    return " ".join(f"{sign}{TIMES}{number}" for sign, number in sorted(Counter(signs).items()))


def _sign(record: TrialRecord, effects: int | None) -> str:
    match standing(record):
        case Standing.PENDING:
            return "."
        case Standing.SET_APART:
            return "x"
        case Standing.INCONCLUSIVE if record.judgement is None or record.judgement.verdict not in HARM:
            return "?"
        case _:
            return "?" if effects is None else str(effects)
