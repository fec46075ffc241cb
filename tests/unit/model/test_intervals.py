"""Intervals: known values, and the bounds that hold for all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from killpoint.model.intervals import interval


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [
        (0, 5, 0.0, 0.4507),
        (5, 5, 0.5493, 1.0),
        (11, 20, 0.3153, 0.7694),
        (1, 100, 0.0003, 0.0545),
        (0, 0, 0.0, 1.0),
    ],
)
def test_known_values(count: int, of: int, low: float, high: float) -> None:
    """Clopper-Pearson as tables give it; one-sided where none or all showed it."""
    bounds = interval(count, of)
    assert (bounds.low, bounds.high) == pytest.approx((low, high), abs=2e-4)


@pytest.mark.parametrize("of", [10, 45, 100, 1000, 10_000])
def test_none_in_n_is_just_below_three_over_n(of: int) -> None:
    bounds = interval(0, of)
    assert bounds.low == 0.0
    assert 2.5 / of < bounds.high < 3 / of


@given(st.integers(1, 200).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_the_rate_lies_between_its_bounds(rate: tuple[int, int]) -> None:
    count, of = rate
    bounds = interval(count, of)
    assert 0.0 <= bounds.low <= count / of <= bounds.high <= 1.0


def test_more_than_all_is_no_rate() -> None:
    with pytest.raises(ValueError, match="no rate"):
        interval(3, 2)
