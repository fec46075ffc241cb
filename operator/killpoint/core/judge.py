"""Judge: from a trial's evidence to its findings. The ledger is the only judge of effects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

from killpoint.core.points import SIGKILL_EXIT, SIGTERM_EXIT, failure_of, landed
from killpoint.model.cells import Method
from killpoint.model.evidence import (
    INTERRUPTION,
    AttemptEnd,
    AttemptEvidence,
    Effect,
    EndReason,
    LedgerView,
    Ordered,
    Outcome,
    OutcomeWord,
    PointCheck,
    TrialEvidence,
)
from killpoint.model.findings import Cause, Finding, Judgement, Verdict
from killpoint.model.lines import one_line

DECLARED_STOPS = frozenset({OutcomeWord.HELD, OutcomeWord.DEAD_LETTERED, OutcomeWord.REJECTED, OutcomeWord.REFUSED})
NO_OUTCOME = "none"
NOT_THAWED = "NotThawed"
"""The error of a worker that was frozen, and was let go of without having been told to go on."""


def judge(evidence: TrialEvidence) -> Judgement:
    """Judge a trial. Everything that is found is kept; nothing found is inconclusive, never exactly-once."""
    findings = [
        *_kills(evidence),
        *_attempts(evidence),
        *_ledger(evidence),
        *_ending(evidence),
    ]
    if not findings and _exactly_once(evidence):
        findings = [
            Finding(verdict=Verdict.EXACTLY_ONCE, reason="each ordered operation stands once, and the run finished")
        ]
    return _judgement(
        evidence, findings or [_inconclusive(Cause.JUDGE, "nothing could be concluded from the evidence")]
    )


def judge_safely(evidence: TrialEvidence, judge: Callable[[TrialEvidence], Judgement] = judge) -> Judgement:
    """Judge, and make a judge that raises an inconclusive trial: a broken checker must never look like a pass."""
    try:
        return judge(evidence)
    except Exception as error:  # noqa: BLE001 - the supervision point for judges, ours and users'
        return _judgement(evidence, [_inconclusive(Cause.JUDGE, f"the judge raised {type(error).__name__}: {error}")])


def _judgement(evidence: TrialEvidence, findings: list[Finding]) -> Judgement:
    said = [replace(finding, reason=one_line(finding.reason)) for finding in findings]
    return Judgement(
        findings=tuple(sorted(said, key=lambda finding: -finding.verdict.severity)),
        effects=_witnessed(evidence),
        kills_planned=len(evidence.coordinates.kill.at),
        kills_confirmed=sum(_confirmed(attempt) for attempt in evidence.attempts),
        outcome=outcome_of(evidence),
    )


def _inconclusive(cause: Cause, reason: str) -> Finding:
    return Finding(verdict=Verdict.INCONCLUSIVE, reason=reason, cause=cause)


def outcome_of(evidence: TrialEvidence) -> str:
    """How the run ended: finished when any executor finished it, else what the last attempt said."""
    outcomes = [_outcome(attempt) for attempt in evidence.attempts]
    if any(outcome is not None and outcome.word is OutcomeWord.FINISHED for outcome in outcomes):
        return OutcomeWord.FINISHED.value
    last = outcomes[-1] if outcomes else None
    return NO_OUTCOME if last is None else last.word.value


def _outcome(attempt: AttemptEvidence) -> Outcome | None:
    return None if attempt.end is None else attempt.end.outcome


def _witnessed(evidence: TrialEvidence) -> tuple[tuple[str, int], ...]:
    if evidence.ledger is None:
        return ()
    counts = Counter(effect.action for effect in evidence.ledger.effects)
    return tuple((ordered.action, counts[ordered.action]) for ordered in evidence.ordered)


# --- kills -----------------------------------------------------------------------------------------------------


def _confirmed(attempt: AttemptEvidence) -> bool:
    return landed(attempt) and attempt.check is not None and attempt.check.held is True


def _kills(evidence: TrialEvidence) -> Iterator[Finding]:
    attempts = {attempt.id.number: attempt for attempt in evidence.attempts}
    for number, point in enumerate(evidence.coordinates.kill.at, start=1):
        attempt = attempts.get(number)
        if attempt is None:
            yield _inconclusive(Cause.NOT_REACHED, f"attempt {number} never started, so nothing was killed at {point}")
        elif attempt.scheduled != point:
            yield _inconclusive(
                Cause.NOT_KILLED, f"attempt {number} was scheduled for {attempt.scheduled}, not for {point}"
            )
        elif not _confirmed(attempt):
            yield _unconfirmed(number, point, attempt)
    if evidence.attempts and _confirmed(evidence.attempts[-1]):
        number = evidence.attempts[-1].id.number
        yield _inconclusive(Cause.INFRASTRUCTURE, f"attempt {number} was killed as planned, and never resumed")


def _unconfirmed(number: int, point: str, attempt: AttemptEvidence) -> Finding:
    """Why the kill of an attempt at a point is not confirmed."""
    end = attempt.end
    if end is None:
        return _inconclusive(Cause.INFRASTRUCTURE, f"attempt {number}: its end was not seen")
    if landed(attempt):
        return _untrue(number, point, attempt.check)
    if (cause := _lost_attempt(end)) is not None:
        return _inconclusive(cause, f"attempt {number}: {failure_of(end)}")
    if end.reason is EndReason.SIGNALED:
        words = f"attempt {number} was killed by somebody else (exit code {end.exit_code}), not at {point} as planned"
        return _inconclusive(_signaled(end), words)
    if any(seen.spec == point for seen in end.points):
        words = f"attempt {number} passed {point}, but was not killed there: {failure_of(end)}"
        return _inconclusive(Cause.NOT_KILLED, words)
    return _inconclusive(Cause.NOT_REACHED, f"attempt {number} never passed {point}: {failure_of(end)}")


def _untrue(number: int, point: str, check: PointCheck | None) -> Finding:
    if check is None or check.held is None:
        detail = "nobody looked" if check is None else check.detail
        words = f"attempt {number} died at {point}, but whether that was true is not known: {detail}"
        return _inconclusive(Cause.POINT_UNKNOWN, words)
    return _inconclusive(Cause.POINT_FALSE, f"attempt {number} died at {point}, but that was not true: {check.detail}")


def _lost_attempt(end: AttemptEnd) -> Cause | None:
    """Whose doing it is that an attempt says nothing that can be believed; None where it can."""
    if end.reason in {EndReason.VANISHED, EndReason.NOT_STARTED, EndReason.CUT_SHORT}:
        return Cause.INFRASTRUCTURE
    return Cause.WORKER if end.fault is not None else None


# --- attempts --------------------------------------------------------------------------------------------------


def _attempts(evidence: TrialEvidence) -> Iterator[Finding]:
    """What is wrong with an attempt itself, whatever the ledger shows."""
    for disturbance in evidence.disturbances:
        interrupted = disturbance == INTERRUPTION
        yield _inconclusive(Cause.INTERRUPTED if interrupted else Cause.INFRASTRUCTURE, disturbance)
    if not evidence.attempts:
        yield _inconclusive(Cause.INFRASTRUCTURE, "no attempt was ever started")
    for attempt in evidence.attempts:
        end = attempt.end
        if end is None:
            yield _inconclusive(
                Cause.INFRASTRUCTURE, f"attempt {attempt.id.number} still runs, or its end was not seen"
            )
        elif attempt.scheduled is None and (cause := _spoiled(end)) is not None:
            yield _inconclusive(cause, f"attempt {attempt.id.number}: {failure_of(end)}")
        elif (
            attempt.method is Method.FREEZE and landed(attempt) and (cause := _stayed_frozen(attempt, end)) is not None
        ):
            words = (
                f"attempt {attempt.id.number} was frozen at {attempt.scheduled}, and did not go on: {failure_of(end)}"
            )
            yield _inconclusive(cause, words)


def _spoiled(end: AttemptEnd) -> Cause | None:
    """Why an attempt that nobody meant to kill proves nothing; None where it ended in a way that counts."""
    if (cause := _lost_attempt(end)) is not None:
        return cause
    if end.reason is EndReason.SIGNALED:
        return _signaled(end)
    if end.reason is EndReason.TIMED_OUT:
        # A resume that hangs after it began is the framework's doing (stranded); one that never began is not, and
        # neither is one that had its outcome and did not end.
        return None if end.points and end.outcome is None else Cause.WORKER
    if end.outcome is not None and end.outcome.word is not OutcomeWord.FAILED and end.exit_code != 0:
        return Cause.WORKER
    if end.outcome is None:
        return Cause.WORKER
    return None


def _stayed_frozen(attempt: AttemptEvidence, end: AttemptEnd) -> Cause | None:
    """Why an attempt that was frozen shows nothing of one that comes back; None where it did, and for any other one.

    It may well fail as it goes on: to be kept out is what it should come to. But not for want of a thaw.
    """
    if attempt.method is not Method.FREEZE or not landed(attempt):
        return None
    if end.outcome is not None and end.outcome.error_class == NOT_THAWED:
        return Cause.WORKER
    if end.reason is EndReason.TIMED_OUT and [passed.spec for passed in end.points][-1:] == [attempt.scheduled]:
        return Cause.WORKER
    return _spoiled(end)


def _signaled(end: AttemptEnd) -> Cause:
    """Somebody else sends SIGKILL or SIGTERM; a SIGSEGV is the program's own, and no reason to try again."""
    return Cause.INFRASTRUCTURE if end.exit_code in {SIGKILL_EXIT, SIGTERM_EXIT} else Cause.WORKER


# --- ledger ----------------------------------------------------------------------------------------------------


def _ledger(evidence: TrialEvidence) -> Iterator[Finding]:
    view = evidence.ledger
    if view is None:
        yield _inconclusive(Cause.LEDGER, evidence.ledger_fault or "the ledger was not read")
        return
    if evidence.ledger_fault is not None:
        yield _inconclusive(Cause.LEDGER, evidence.ledger_fault)
    elif view.in_flight:
        yield _inconclusive(Cause.LEDGER, f"{view.in_flight} requests were still in flight when the ledger was read")
    yield from _silent(evidence, view)
    yield from _duplicates(view)
    ordered = {(operation.order, operation.action, operation.item): operation for operation in evidence.ordered}
    own = {str(attempt.id) for attempt in evidence.attempts}
    for effect in view.effects:
        yield from _strays(effect, ordered_actions={operation.action for operation in evidence.ordered}, own=own)
        operation = ordered.get(effect.operation)
        if operation is not None and (effect.amount, effect.currency) != (operation.amount, operation.currency):
            yield Finding(
                verdict=Verdict.WRONG_PAYLOAD,
                reason=f"{effect.id}: {_money(effect)} instead of {_money(operation)}",
            )
        elif operation is None and effect.action in {known.action for known in evidence.ordered}:
            yield Finding(
                verdict=Verdict.WRONG_PAYLOAD,
                reason=f"{effect.id}: {effect.action} for {effect.order}, which was not ordered",
            )


def _silent(evidence: TrialEvidence, view: LedgerView) -> Iterator[Finding]:
    """An empty ledger under a run that says it acted is no proof of a loss: it may be the wrong ledger."""
    actions = {operation.action for operation in evidence.ordered}
    acted = {
        passed.spec
        for attempt in evidence.attempts
        if attempt.end is not None
        for passed in attempt.end.points
        if passed.point in {f"{action}.{place}" for action in actions for place in ("sent", "after")}
    }
    if acted and not view.effects and not view.requests:
        yield _inconclusive(
            Cause.LEDGER, f"the run passed {', '.join(sorted(acted))}, but payments knows of no request at all"
        )


def _duplicates(view: LedgerView) -> Iterator[Finding]:
    for (order, action, item), count in Counter(effect.operation for effect in view.effects).items():
        if count > 1:
            ids = ", ".join(effect.id for effect in view.effects if effect.operation == (order, action, item))
            subject = f"{action} of {order}" + (f" ({item})" if item else "")
            yield Finding(verdict=Verdict.DUPLICATE, reason=f"{subject} stands {count} times: {ids}")


def _strays(effect: Effect, *, ordered_actions: set[str], own: set[str]) -> Iterator[Finding]:
    if effect.action not in ordered_actions:
        yield Finding(verdict=Verdict.PHANTOM, reason=f"{effect.id}: {effect.action} was never ordered")
    if effect.attempt not in own:
        yield Finding(
            verdict=Verdict.DIVERGENT,
            reason=f"{effect.id} was made by {effect.attempt}, which is no attempt of this trial",
        )


def _money(sum_: Effect | Ordered) -> str:
    return f"{sum_.amount / 100:.2f} {sum_.currency}".strip()


# --- the run's end ---------------------------------------------------------------------------------------------


def _missing(evidence: TrialEvidence, view: LedgerView) -> list[str]:
    witnessed = {effect.operation for effect in view.effects}
    return [
        f"{operation.action} of {operation.order}"
        for operation in evidence.ordered
        if (operation.order, operation.action, operation.item) not in witnessed
    ]


def _ending(evidence: TrialEvidence) -> Iterator[Finding]:
    """How the run ended, held against the ledger."""
    view = evidence.ledger
    word = outcome_of(evidence)
    if word == OutcomeWord.FINISHED:
        # What is not there yet may be on its way, as long as it was not quiet.
        if view is not None and evidence.ledger_fault is None and not view.in_flight:
            for missing in _missing(evidence, view):
                yield Finding(verdict=Verdict.LOST, reason=f"the run says finished, but there is no {missing}")
            yield from _claims(evidence, view)
        return
    if word in DECLARED_STOPS:
        yield Finding(verdict=Verdict.WITHHELD, reason=f"the run stopped as declared: {word}")
        return
    last = evidence.attempts[-1].end if evidence.attempts else None
    why = "it has no end" if last is None else failure_of(last)
    yield Finding(verdict=Verdict.STRANDED, reason=f"the run neither finished nor declared a stop: {why}")


def _claims(evidence: TrialEvidence, view: LedgerView) -> Iterator[Finding]:
    """Hold what each finished attempt claims against the ledger, one to one.

    A worker that claims anything claims everything that moves money; of other effects it may keep silent.
    """
    money = {operation.action for operation in evidence.ordered if operation.amount}
    known = {operation.action for operation in evidence.ordered}
    for attempt in evidence.attempts:
        outcome = _outcome(attempt)
        if outcome is None or outcome.word is not OutcomeWord.FINISHED or outcome.claims is None:
            continue
        for action in sorted(money | (known & {claim.action for claim in outcome.claims})):
            claimed = sorted(claim.effect or "an unnamed effect" for claim in outcome.claims if claim.action == action)
            standing = sorted(effect.id for effect in view.effects if effect.action == action)
            twice = len({effect.operation for effect in view.effects if effect.action == action}) < len(standing)
            if not (claimed == standing or (twice and claimed and set(claimed) <= set(standing))):
                yield Finding(
                    verdict=Verdict.DIVERGENT,
                    reason=(
                        f"attempt {attempt.id.number} claims {action} {', '.join(claimed) or 'none'}; "
                        f"the ledger has {', '.join(standing) or 'none'}"
                    ),
                )


def _exactly_once(evidence: TrialEvidence) -> bool:
    view = evidence.ledger
    if view is None or outcome_of(evidence) != OutcomeWord.FINISHED:
        return False
    counts = Counter(effect.operation for effect in view.effects)
    operations = [(operation.order, operation.action, operation.item) for operation in evidence.ordered]
    return (
        bool(operations) and all(counts[operation] == 1 for operation in operations) and len(counts) == len(operations)
    )
