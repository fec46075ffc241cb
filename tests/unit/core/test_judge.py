"""The judge: what it says of a trial, and what it can never be brought to say."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from killpoint.core.judge import judge, judge_safely
from killpoint.core.points import landed
from killpoint.model.cells import Method
from killpoint.model.evidence import (
    AttemptEnd,
    AttemptEvidence,
    EndReason,
    LedgerView,
    Outcome,
    OutcomeWord,
    PointCheck,
    PointPassed,
    TrialEvidence,
)
from killpoint.model.findings import Cause, Judgement, Verdict
from tests.unit.core.strategies import (
    TRIAL,
    attempt_id,
    effect,
    evidence,
    evidences,
    finished,
    proven,
    without_claims,
)


def verdict(of: TrialEvidence) -> Verdict:
    return judge(of).verdict


def test_once_and_finished_is_exactly_once() -> None:
    trial = evidence(proven("charge.after"), finished(2, "ch_1"), effects=(effect("ch_1"),), at=("charge.after",))
    assert judge(trial).findings[0].verdict is Verdict.EXACTLY_ONCE
    assert judge(trial).kills_confirmed == 1


def test_twice_is_a_duplicate_whatever_the_run_claims() -> None:
    twice = (effect("ch_1"), effect("ch_2", attempt=2))
    trial = evidence(proven("charge.after"), finished(2, "ch_2"), effects=twice, at=("charge.after",))
    assert [finding.verdict for finding in judge(trial).findings] == [Verdict.DUPLICATE]


def test_claiming_an_effect_that_is_none_of_the_two_is_divergent_as_well() -> None:
    twice = (effect("ch_1"), effect("ch_2", attempt=2))
    trial = evidence(proven("charge.after"), finished(2, "ch_9"), effects=twice, at=("charge.after",))
    assert {finding.verdict for finding in judge(trial).findings} == {Verdict.DUPLICATE, Verdict.DIVERGENT}


def test_finished_without_its_effect_is_lost() -> None:
    assert verdict(evidence(finished(1))) is Verdict.LOST


def test_finished_without_its_finalization_is_lost() -> None:
    trial = evidence(finished(1, "ch_1"), effects=(effect("ch_1"),))
    assert trial.ledger is not None
    unfinalized = replace(trial, ledger=replace(trial.ledger, effects=(effect("ch_1"),)))
    assert verdict(unfinalized) is Verdict.LOST


def test_another_amount_is_a_wrong_payload() -> None:
    assert verdict(evidence(finished(1, "ch_1"), effects=(effect("ch_1", amount=5000),))) is Verdict.WRONG_PAYLOAD


def test_an_action_that_nothing_ordered_is_a_phantom() -> None:
    trial = evidence(finished(1, "ch_1"), effects=(effect("ch_1"), effect("re_1", action="refund")))
    assert verdict(trial) is Verdict.PHANTOM


def test_an_effect_of_a_foreign_attempt_is_divergent() -> None:
    foreign = replace(effect("ch_1"), attempt="0000aaaa.1.1")
    assert verdict(evidence(finished(1, "ch_1"), effects=(foreign,))) is Verdict.DIVERGENT


def test_claiming_another_effect_is_divergent() -> None:
    assert verdict(evidence(finished(1, "ch_9"), effects=(effect("ch_1"),))) is Verdict.DIVERGENT


def test_claiming_nothing_while_the_ledger_has_a_charge_is_divergent() -> None:
    assert verdict(evidence(finished(1), effects=(effect("ch_1"),))) is Verdict.DIVERGENT


def test_saying_nothing_of_claims_is_not_claiming_nothing() -> None:
    assert verdict(evidence(without_claims(finished(1)), effects=(effect("ch_1"),))) is Verdict.EXACTLY_ONCE


@pytest.mark.parametrize("word", ["held", "dead-lettered", "rejected", "refused"])
def test_a_declared_stop_without_effect_is_withheld(word: str) -> None:
    end = AttemptEnd(reason=EndReason.EXITED, exit_code=0, at_ms=1, outcome=Outcome(word=OutcomeWord(word)))
    trial = evidence(AttemptEvidence(id=attempt_id(1), action="start", scheduled=None, intended_ms=0, end=end))
    assert verdict(trial) is Verdict.WITHHELD


@pytest.mark.parametrize("word", ["waiting", "yielded", "failed"])
def test_an_end_that_is_none_is_stranded(word: str) -> None:
    end = AttemptEnd(reason=EndReason.EXITED, exit_code=0, at_ms=1, outcome=Outcome(word=OutcomeWord(word)))
    trial = evidence(AttemptEvidence(id=attempt_id(1), action="start", scheduled=None, intended_ms=0, end=end))
    assert verdict(trial) is Verdict.STRANDED


def test_an_empty_ledger_under_a_run_that_acted_is_no_loss() -> None:
    """The request log is empty too, so it may be the wrong ledger: that must not read as the framework's fault."""
    end = finished(1).end
    assert end is not None
    acted = replace(finished(1), end=replace(end, points=(PointPassed(point="charge.after"),)))
    trial = replace(evidence(acted), ledger=LedgerView(boot="b"))
    causes = {finding.cause for finding in judge(trial).findings if finding.verdict is Verdict.INCONCLUSIVE}
    assert Cause.LEDGER in causes
    assert not judge(trial).conclusive


def test_an_unread_ledger_is_inconclusive() -> None:
    trial = replace(evidence(finished(1, "ch_1")), ledger=None, ledger_fault="payments is away")
    assert verdict(trial) is Verdict.INCONCLUSIVE
    assert judge(trial).effects == ()


def test_a_reason_is_one_line_whatever_it_quotes() -> None:
    trial = replace(evidence(finished(1, "ch_1")), ledger=None, ledger_fault="it says:\n    no\n    and no again\n")
    assert "it says: no / and no again" in [finding.reason for finding in judge(trial).findings]


def test_a_disturbed_trial_is_inconclusive_for_infrastructure() -> None:
    trial = replace(
        evidence(finished(1, "ch_1"), effects=(effect("ch_1"),)), disturbances=("payments was started anew",)
    )
    assert verdict(trial) is Verdict.INCONCLUSIVE
    assert judge(trial).findings[0].cause is Cause.INFRASTRUCTURE


def test_a_judge_that_raises_is_inconclusive() -> None:
    def broken(_: TrialEvidence) -> Judgement:
        raise ZeroDivisionError("oops")

    judgement = judge_safely(evidence(finished(1, "ch_1"), effects=(effect("ch_1"),)), broken)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert judgement.findings[0].cause is Cause.JUDGE
    assert "oops" in judgement.findings[0].reason


@given(evidences())
def test_whatever_the_evidence_there_is_a_finding_with_a_reason(trial: TrialEvidence) -> None:
    judgement = judge(trial)
    assert judgement.findings
    assert all(finding.reason for finding in judgement.findings)
    assert all(
        (finding.cause is not None) is (finding.verdict is Verdict.INCONCLUSIVE) for finding in judgement.findings
    )


SOUND = evidence(proven("charge.after"), finished(2, "ch_1"), effects=(effect("ch_1"),), at=("charge.after",))


def of_attempt(trial: TrialEvidence, index: int, **changes: Any) -> TrialEvidence:  # noqa: ANN401 - any field
    attempts = list(trial.attempts)
    attempts[index] = replace(attempts[index], **changes)
    return replace(trial, attempts=tuple(attempts))


def of_end(trial: TrialEvidence, index: int, **changes: Any) -> TrialEvidence:  # noqa: ANN401 - any field
    end = trial.attempts[index].end
    assert end is not None
    return of_attempt(trial, index, end=replace(end, **changes))


def of_ledger(trial: TrialEvidence, **changes: Any) -> TrialEvidence:  # noqa: ANN401 - any field
    assert trial.ledger is not None
    return replace(trial, ledger=replace(trial.ledger, **changes))


SPOILED: dict[str, Callable[[TrialEvidence], TrialEvidence]] = {
    "the ledger was not read": lambda trial: replace(trial, ledger=None),
    "a request was in flight": lambda trial: of_ledger(trial, in_flight=1),
    "the ledger is empty": lambda trial: of_ledger(trial, effects=(), requests=()),
    "the finalization is missing": lambda trial: of_ledger(trial, effects=(effect("ch_1"),)),
    "the charge is missing": lambda trial: of_ledger(trial, effects=(effect("no_1", action="finalize", attempt=2),)),
    "a foreign attempt charged": lambda trial: of_ledger(
        trial, effects=(replace(effect("ch_1"), attempt="0000aaaa.1.1"), effect("no_1", action="finalize", attempt=2))
    ),
    "a service was started anew": lambda trial: replace(trial, disturbances=("payments was started anew",)),
    "the first end was not seen": lambda trial: of_attempt(trial, 0, end=None),
    "the last end was not seen": lambda trial: of_attempt(trial, 1, end=None),
    "nobody checked the point": lambda trial: of_attempt(trial, 0, check=None),
    "the point was false": lambda trial: of_attempt(
        trial, 0, check=PointCheck(point="charge.after", held=False, detail="-")
    ),
    "the point is unknown": lambda trial: of_attempt(
        trial, 0, check=PointCheck(point="charge.after", held=None, detail="-")
    ),
    "it was scheduled elsewhere": lambda trial: of_attempt(trial, 0, scheduled="charge.before"),
    "it did not die": lambda trial: of_end(trial, 0, reason=EndReason.EXITED, exit_code=0),
    "it died of something else": lambda trial: of_end(trial, 0, exit_code=139),
    "its last word was another point": lambda trial: of_end(trial, 0, points=(PointPassed(point="charge.sent"),)),
    "it wrote rubbish": lambda trial: of_end(trial, 0, fault="line 1: not JSON"),
    "the resume wrote rubbish": lambda trial: of_end(trial, 1, fault="line 1: not JSON"),
    "the resume vanished": lambda trial: of_end(trial, 1, reason=EndReason.VANISHED, outcome=None),
    "the run was cut short": lambda trial: of_end(trial, 1, reason=EndReason.CUT_SHORT, outcome=None),
    "the resume hung": lambda trial: of_end(trial, 1, reason=EndReason.TIMED_OUT, outcome=None),
    "it finished, and then hung": lambda trial: of_end(trial, 1, reason=EndReason.TIMED_OUT, exit_code=137),
    "it finished, with exit 3": lambda trial: of_end(trial, 1, exit_code=3),
    "it crashed by itself": lambda trial: of_end(trial, 1, reason=EndReason.SIGNALED, exit_code=139, outcome=None),
    "it said nothing at its end": lambda trial: of_end(trial, 1, outcome=None),
    "it was never resumed": lambda trial: replace(trial, attempts=trial.attempts[:1]),
    "it failed": lambda trial: of_end(trial, 1, exit_code=1, outcome=Outcome(word=OutcomeWord.FAILED)),
    "nothing was started": lambda trial: replace(trial, attempts=()),
}


def test_sound_evidence_is_exactly_once() -> None:
    """What the next test spoils is a pass to begin with, with a kill that was planned and proven."""
    judgement = judge(SOUND)
    assert (judgement.verdict, judgement.kills_planned, judgement.kills_confirmed) == (Verdict.EXACTLY_ONCE, 1, 1)


@pytest.mark.parametrize("spoiled", SPOILED)
def test_it_never_passes_in_vain(spoiled: str) -> None:
    """Sound evidence with one thing wrong about it is no pass, whatever the thing."""
    assert judge(SPOILED[spoiled](SOUND)).verdict is not Verdict.EXACTLY_ONCE


@given(st.lists(st.sampled_from(sorted(SPOILED)), max_size=3))
def test_no_combination_of_wrongs_makes_a_right(spoiled: list[str]) -> None:
    trial = SOUND
    for name in spoiled:
        with contextlib.suppress(AssertionError, IndexError):  # an earlier one has taken away what this one changes
            trial = SPOILED[name](trial)
    assert (judge(trial).verdict is Verdict.EXACTLY_ONCE) is (trial == SOUND)


WENT_ON = (PointPassed(point="charge.after"), PointPassed(point="charge.recorded"))
STOPPED = WENT_ON[:1]
FAILED = Outcome(word=OutcomeWord.FAILED, error_class="StaleFence")
THAWED: dict[str, AttemptEnd] = {
    "it finished": AttemptEnd(
        reason=EndReason.EXITED, exit_code=0, at_ms=9, points=WENT_ON, outcome=Outcome(word=OutcomeWord.FINISHED)
    ),
    "it was kept out": AttemptEnd(reason=EndReason.EXITED, exit_code=1, at_ms=9, points=STOPPED, outcome=FAILED),
    "it hung later": AttemptEnd(reason=EndReason.TIMED_OUT, exit_code=137, at_ms=9, points=WENT_ON),
}
NEVER_THAWED: dict[str, AttemptEnd] = {
    "its node evicted it": AttemptEnd(reason=EndReason.VANISHED, at_ms=9, fault="its node evicted it"),
    "somebody else killed it": AttemptEnd(reason=EndReason.SIGNALED, exit_code=137, at_ms=9, points=STOPPED),
    "memory ran out": AttemptEnd(reason=EndReason.OUT_OF_MEMORY, exit_code=137, at_ms=9, points=STOPPED),
    "the run was over": AttemptEnd(reason=EndReason.CUT_SHORT, exit_code=137, at_ms=9, points=STOPPED),
    "it did not wake": AttemptEnd(reason=EndReason.TIMED_OUT, exit_code=137, at_ms=9, points=STOPPED),
    "it said nothing": AttemptEnd(reason=EndReason.EXITED, exit_code=3, at_ms=9, points=STOPPED, fault="no outcome"),
    "nobody told it to go on": AttemptEnd(
        reason=EndReason.EXITED, exit_code=1, at_ms=9, points=STOPPED, outcome=replace(FAILED, error_class="NotThawed")
    ),
}


def frozen(end: AttemptEnd) -> TrialEvidence:
    """Another executor took over and finished; then the frozen one ended like this."""
    of = SOUND.coordinates
    method = replace(SOUND, coordinates=replace(of, kill=replace(of.kill, method=Method.FREEZE)))
    return of_attempt(method, 0, method=Method.FREEZE, parked_ms=1, end=end)


@pytest.mark.parametrize("end", THAWED)
def test_a_frozen_attempt_that_went_on_counts_however_it_fared(end: str) -> None:
    judgement = judge(frozen(THAWED[end]))
    assert (judgement.verdict, judgement.kills_confirmed) == (Verdict.EXACTLY_ONCE, 1)


@pytest.mark.parametrize("end", NEVER_THAWED)
def test_a_frozen_attempt_that_never_went_on_shows_nothing(end: str) -> None:
    """The other executor was alone, so that nothing was charged twice is no wonder."""
    assert judge(frozen(NEVER_THAWED[end])).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("code", [134, 139])
def test_a_programs_own_crash_is_no_reason_to_try_again(code: int) -> None:
    crashed = of_end(SOUND, 1, reason=EndReason.SIGNALED, exit_code=code, outcome=None)
    assert {finding.cause for finding in judge(crashed).findings} & {Cause.INFRASTRUCTURE} == set()


def test_a_resume_that_the_run_cut_short_is_nobodys_failure() -> None:
    cut = of_end(SOUND, 1, reason=EndReason.CUT_SHORT, outcome=None)
    assert judge(cut).verdict is Verdict.INCONCLUSIVE
    assert judge(cut).findings[0].cause is Cause.INFRASTRUCTURE


@given(evidences())
def test_a_kill_counts_only_when_it_landed_and_its_point_was_true(trial: TrialEvidence) -> None:
    proven_kills = sum(
        landed(attempt) and attempt.check is not None and attempt.check.held is True for attempt in trial.attempts
    )
    assert judge(trial).kills_confirmed == proven_kills


@given(evidences(), st.data())
def test_more_evidence_of_duplicates_never_makes_a_better_verdict(trial: TrialEvidence, data: st.DataObject) -> None:
    """Monotone: an effect that stands once more is never a reason for a milder word."""
    if trial.ledger is None or not trial.ledger.effects:
        return
    again = replace(data.draw(st.sampled_from(trial.ledger.effects)), id="ch_again")
    worse = replace(trial, ledger=replace(trial.ledger, effects=(*trial.ledger.effects, again)))
    assert verdict(worse).severity >= verdict(trial).severity
    assert verdict(worse).severity >= Verdict.DUPLICATE.severity


@given(evidences())
def test_taking_the_ledger_away_never_makes_a_pass(trial: TrialEvidence) -> None:
    assert verdict(replace(trial, ledger=None)) is not Verdict.EXACTLY_ONCE
    assert not judge(replace(trial, ledger=None)).conclusive


def test_the_verdicts_stand_in_the_written_order() -> None:
    order = sorted(Verdict, key=lambda verdict: -verdict.severity)
    assert [word.value for word in order] == [
        "phantom",
        "wrong-payload",
        "duplicate",
        "lost",
        "divergent",
        "inconclusive",
        "stranded",
        "withheld",
        "exactly-once",
    ]
    assert evidence().id == TRIAL
