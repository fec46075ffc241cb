from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from killpoint_payments.inflight import InFlight


@given(st.lists(st.sampled_from("abc"), max_size=30))
def test_each_run_is_counted_by_itself_and_forgotten_at_zero(runs: list[str]) -> None:
    counts = InFlight()
    for number, run in enumerate(runs, 1):
        counts.enter(run)
        assert counts.total() == number
    assert {run: counts.of(run) for run in "abc"} == {run: runs.count(run) for run in "abc"}
    for run in runs:
        counts.leave(run)
    assert counts.total() == 0
    assert [counts.of(run) for run in "abc"] == [0, 0, 0]


def test_leaving_without_having_entered_is_an_error() -> None:
    with pytest.raises(KeyError):
        InFlight().leave("a")
