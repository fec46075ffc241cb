"""What proves a kill: by each method, nothing less than its own proof."""

from __future__ import annotations

from dataclasses import replace

import pytest

from killpoint.core.points import landed
from killpoint.model.cells import Method
from killpoint.model.evidence import AttemptEnd, AttemptEvidence, EndReason, Outcome, OutcomeWord, PointPassed
from tests.unit.core.strategies import attempt_id

AT = PointPassed(point="charge.after")
LATER = PointPassed(point="poll.before", occurrence=7)

PROOFS = {
    Method.SIGKILL: (EndReason.SIGNALED, 137),
    Method.EXIT: (EndReason.EXITED, 91),
    Method.OUT_OF_MEMORY: (EndReason.OUT_OF_MEMORY, 137),
    Method.DELETE_POD: (EndReason.SIGNALED, 143),
    Method.EVICT: (EndReason.SIGNALED, 137),
}
FROM_OUTSIDE = (Method.DELETE_POD, Method.EVICT)
BY_ITSELF = tuple(method for method in PROOFS if method not in FROM_OUTSIDE)


def killed(method: Method, *points: PointPassed) -> AttemptEvidence:
    """An attempt that was killed at charge.after as its method kills."""
    reason, code = PROOFS[method]
    return AttemptEvidence(
        id=attempt_id(1),
        action="start",
        scheduled=AT.spec,
        intended_ms=1,
        method=method,
        parked_ms=2 if method.parks else None,
        kill_requested=method.parks,
        end=AttemptEnd(reason=reason, exit_code=code, at_ms=3, points=points or (AT,)),
    )


def ended_otherwise(attempt: AttemptEvidence, **changes: object) -> AttemptEvidence:
    assert attempt.end is not None
    return replace(attempt, end=replace(attempt.end, **changes))  # type: ignore[arg-type]  # names of its fields


@pytest.mark.parametrize("method", PROOFS)
def test_each_method_has_a_proof_and_no_methods_proof_is_taken_without_the_points_line(method: Method) -> None:
    assert landed(killed(method))
    assert not landed(killed(method, LATER))
    assert not landed(ended_otherwise(killed(method), points=()))
    assert not landed(killed(method, replace(AT, occurrence=2)))


@pytest.mark.parametrize("method", FROM_OUTSIDE)
def test_who_is_killed_while_parked_may_pass_further_points_on_other_threads(method: Method) -> None:
    assert landed(killed(method, AT, LATER))


@pytest.mark.parametrize("method", BY_ITSELF)
def test_who_ends_itself_at_its_point_has_no_further_word(method: Method) -> None:
    assert not landed(killed(method, AT, LATER))


@pytest.mark.parametrize("method", PROOFS)
@pytest.mark.parametrize(
    "changes", [{"outcome": Outcome(word=OutcomeWord.FINISHED)}, {"fault": "another attempt's header"}]
)
def test_an_outcome_or_a_faulty_log_is_no_kill(method: Method, changes: dict[str, object]) -> None:
    assert not landed(ended_otherwise(killed(method), **changes))


@pytest.mark.parametrize("method", PROOFS)
def test_another_exit_code_is_no_kill(method: Method) -> None:
    for code in {0, 1, 70, 91, 137, 143} - {PROOFS[method][1]}:
        other = ended_otherwise(killed(method), reason=EndReason.EXITED, exit_code=code)
        assert landed(other) is (method in FROM_OUTSIDE and code in {137, 143})


@pytest.mark.parametrize("method", FROM_OUTSIDE)
def test_a_death_that_nobody_asked_for_or_before_it_was_parked_is_no_kill_from_outside(method: Method) -> None:
    assert not landed(replace(killed(method), kill_requested=False))
    assert not landed(replace(killed(method), parked_ms=None))


@pytest.mark.parametrize("method", FROM_OUTSIDE)
@pytest.mark.parametrize("reason", sorted(set(EndReason) - {EndReason.SIGNALED, EndReason.EXITED}))
def test_a_death_of_another_cause_is_no_kill_from_outside(method: Method, reason: EndReason) -> None:
    """A disruption budget may refuse the eviction for as long as the attempt may live, and then it is killed anyway."""
    assert not landed(ended_otherwise(killed(method), reason=reason, exit_code=137))


def test_a_freeze_is_proven_by_the_parking_alone_while_it_lasts_and_after_it() -> None:
    frozen = AttemptEvidence(
        id=attempt_id(1), action="start", scheduled=AT.spec, intended_ms=1, method=Method.FREEZE, parked_ms=2
    )
    finished = AttemptEnd(
        reason=EndReason.EXITED, exit_code=0, at_ms=3, points=(AT, LATER), outcome=Outcome(word=OutcomeWord.FINISHED)
    )
    assert landed(frozen)
    assert landed(replace(frozen, end=finished))
    assert not landed(replace(frozen, parked_ms=None, end=finished))
