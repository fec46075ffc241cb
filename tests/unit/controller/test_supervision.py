"""What is made of errors: which are waited out, which end an experiment, and when it is given up."""

from __future__ import annotations

import pytest

from killpoint.api.problems import Problem, ProblemsError
from killpoint.controller.supervision import BACKOFF_SECONDS, STALLED_SECONDS, TRIES_MAX, Trouble, end_of, standing_of
from killpoint.core.state import JournalLostError
from killpoint.databases.errors import PostgresUnreachable
from killpoint.journal.codec import CodecError
from killpoint.journal.postgres import OtherSpecificationError
from killpoint.ports import JournalUnavailableError, LedgerUnavailableError, SubstrateUnavailableError


def test_failures_in_a_row_without_getting_on_are_hopeless_in_the_end() -> None:
    trouble = Trouble()
    for number in range(1, TRIES_MAX + 1):
        trouble = trouble.failed(3)
        assert trouble.is_hopeless is (number == TRIES_MAX)


def test_an_experiment_that_gets_on_in_between_is_not_given_up() -> None:
    trouble = Trouble()
    for sequence in range(1, 10 * TRIES_MAX):
        trouble = trouble.failed(sequence)
    assert not trouble.is_hopeless


def test_pauses_grow_and_end_growing() -> None:
    trouble, pauses = Trouble(), []
    for _ in range(2 * len(BACKOFF_SECONDS)):
        trouble = trouble.away(0.0)
        pauses.append(trouble.pause_seconds)
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (BACKOFF_SECONDS[0], BACKOFF_SECONDS[-1])


def test_what_is_away_for_long_stalls_and_what_is_back_does_not() -> None:
    trouble = Trouble().away(100.0)
    assert not trouble.is_stalled(100.0 + STALLED_SECONDS - 1)
    assert not trouble.is_worth_telling
    trouble = trouble.away(130.0)
    assert trouble.is_worth_telling
    assert trouble.is_stalled(100.0 + STALLED_SECONDS)
    assert not trouble.back().is_stalled(100.0 + STALLED_SECONDS)


@pytest.mark.parametrize(
    ("error", "reason", "accepted"),
    [
        (ProblemsError([Problem(path="spec.trials", message="no")]), "InvalidSpec", False),
        (JournalLostError("it is empty"), "JournalLost", True),
        (OtherSpecificationError("of another specification"), "JournalLost", True),
        (CodecError("an event of another version"), "JournalLost", True),
        (KeyError("surprise"), "GaveUp", True),
    ],
)
def test_each_end_has_its_word(error: Exception, reason: str, *, accepted: bool) -> None:
    end = end_of(error)
    assert (end.reason, end.accepted) == (reason, accepted)
    assert str(error) in end.message


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (JournalUnavailableError("x"), "DatabaseAway"),
        (PostgresUnreachable("x", remedy="y"), "DatabaseAway"),
        (LedgerUnavailableError("x"), "PaymentsAway"),
        (SubstrateUnavailableError("x"), "ClusterAway"),
        (ValueError("x"), "Failing"),
    ],
)
def test_each_trouble_has_its_word(error: Exception, reason: str) -> None:
    assert standing_of(error, stalled=True).reason == reason
