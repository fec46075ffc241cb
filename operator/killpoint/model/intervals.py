"""Intervals for rates: how much a count of trials says."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

DOUBT = 0.05
"""Bounds hold at 95 %."""
HALVINGS = 60
"""Past what a float can tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Between which shares the true one lies."""

    low: float
    high: float


def interval(count: int, of: int) -> Interval:
    """The Clopper-Pearson interval at 95 % for ``count`` of ``of`` trials; 0 to 1 where there was no trial.

    Where none, or all, of the trials showed it, the whole doubt stands on the one open side: none in n trials gives
    an upper bound just below 3/n, the rule of three (Hanley and Lippman-Hand, 1983).
    """
    if not 0 <= count <= of:
        raise ValueError(f"{count} of {of} trials is no rate")
    if of == 0:
        return Interval(low=0.0, high=1.0)
    if count == 0:
        return Interval(low=0.0, high=1 - DOUBT ** (1 / of))
    if count == of:
        return Interval(low=DOUBT ** (1 / of), high=1.0)
    low = _turn(lambda share: 1 - _at_most(count - 1, of, share) < DOUBT / 2)
    high = _turn(lambda share: _at_most(count, of, share) > DOUBT / 2)
    return Interval(low=low, high=high)


def _turn(holds: Callable[[float], bool]) -> float:
    """Where a condition that holds for small shares stops holding, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _at_most(count: int, of: int, share: float) -> float:
    """P(X ≤ count) for a binomial X and 0 < share < 1. By logarithms, so that thousands of trials do not underflow."""
    terms = (
        math.lgamma(of + 1)
        - math.lgamma(number + 1)
        - math.lgamma(of - number + 1)
        + number * math.log(share)
        + (of - number) * math.log1p(-share)
        for number in range(count + 1)
    )
    return min(math.fsum(math.exp(term) for term in terms), 1.0)
