"""Intervals for rates: how much a count of trials says."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

DOUBT = 0.05
"""Bounds hold at 95 %."""
HALVINGS = 60
"""Past what a float can tell."""
NEGLIGIBLE = 1e-17
"""Of a sum: what changes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Between which shares the true one lies."""

    low: float
    high: float


@lru_cache(maxsize=4096)
def interval(count: int, of: int) -> Interval:
    """The Clopper-Pearson interval at 95 % for ``count`` of ``of`` trials; 0 to 1 where there was no trial.

    Where none, or all, of the trials showed it, the whole doubt stands on the one open side: none in n trials gives
    an upper bound just below 3/n, the rule of three (Hanley and Lippman-Hand, 1983). Kept: cells have the same rates.
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
    """P(X ≤ count) for a binomial X and 0 < share < 1, from the tail that is the smaller one."""
    if count > of * share:
        return 1 - _tail(of - count - 1, of, 1 - share)
    return _tail(count, of, share)


def _tail(count: int, of: int, share: float) -> float:
    """P(X ≤ count) below the mean, where each term is smaller than the one above it: only those that count are added.

    The first one by logarithms, so that thousands of trials do not underflow.
    """
    if count < 0:
        return 0.0
    term = math.exp(
        math.lgamma(of + 1)
        - math.lgamma(count + 1)
        - math.lgamma(of - count + 1)
        + count * math.log(share)
        + (of - count) * math.log1p(-share)
    )
    total = 0.0
    for number in range(count, -1, -1):
        total += term
        if term <= total * NEGLIGIBLE:
            break
        term *= number / (of - number + 1) * (1 - share) / share
    return total
