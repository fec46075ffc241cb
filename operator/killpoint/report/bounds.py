"""How sure a rate is: Clopper-Pearson intervals, for rates that are pooled over cells."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

DOUBT = 0.05
"""Bounds hold at 95 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Between which shares the true one lies, at 95 %. At 0 and at ``of`` the other side is one-sided."""

    low: float
    high: float


def bounds(successes: int, of: int) -> Bounds:
    """The exact interval of a binomial share. None in n: below 3/n, as the rule of three says."""
    if of <= 0:
        return Bounds(low=0.0, high=1.0)
    if successes == 0:
        return Bounds(low=0.0, high=1 - DOUBT ** (1 / of))
    if successes == of:
        return Bounds(low=DOUBT ** (1 / of), high=1.0)
    low = _root(lambda share: 1 - _at_most(successes - 1, of, share) < DOUBT / 2)
    high = _root(lambda share: _at_most(successes, of, share) > DOUBT / 2)
    return Bounds(low=low, high=high)


def _root(below: Callable[[float], bool]) -> float:
    """Where a monotone condition turns false, by bisection. Fifty halvings are past what a float can tell."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return low


def _at_most(successes: int, of: int, share: float) -> float:
    """P(X ≤ successes) for a binomial X. Summed by logarithms, so that thousands of trials do not underflow."""
    if share <= 0.0:
        return 1.0
    if share >= 1.0:
        return 0.0 if successes < of else 1.0
    terms = (
        math.lgamma(of + 1)
        - math.lgamma(number + 1)
        - math.lgamma(of - number + 1)
        + number * math.log(share)
        + (of - number) * math.log1p(-share)
        for number in range(successes + 1)
    )
    return min(math.fsum(math.exp(term) for term in terms), 1.0)
