"""Intervals for rates: how much a count of trials says."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, lgamma, log

CONFIDENCE = 0.95
_STEPS = 60


def interval(count: int, of: int) -> tuple[float, float]:
    """The Clopper-Pearson interval at 95 % for ``count`` of ``of`` trials; (0, 1) where there was no trial.

    Where none, or all, of the trials showed it, the whole 5 % stands on the one open side: none in n trials gives
    an upper bound just below 3/n, the rule of three (Hanley and Lippman-Hand, 1983).
    """
    if not 0 <= count <= of:
        raise ValueError(f"{count} of {of} trials is no rate")
    if of == 0:
        return (0.0, 1.0)
    tail = (1 - CONFIDENCE) / (1 if count in {0, of} else 2)
    low = 0.0 if count == 0 else _solve(lambda rate: _at_least(count, of, rate) < tail)
    high = 1.0 if count == of else _solve(lambda rate: _at_least(count + 1, of, rate) < 1 - tail)
    return (low, high)


def _solve(below: Callable[[float], bool]) -> float:
    """The rate at which a condition that holds for small rates stops holding."""
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return low


def _at_least(count: int, of: int, rate: float) -> float:
    """The probability of ``count`` or more in ``of`` trials, for a rate strictly between 0 and 1."""
    return 1.0 - sum(exp(_log_probability(k, of, rate)) for k in range(count))


def _log_probability(count: int, of: int, rate: float) -> float:
    ways = lgamma(of + 1) - lgamma(count + 1) - lgamma(of - count + 1)
    return ways + count * log(rate) + (of - count) * log(1 - rate)
