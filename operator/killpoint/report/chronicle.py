"""A trial as a sequence of sentences with times, from its evidence alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from killpoint.model.cells import TrialId
from killpoint.model.evidence import (
    AttemptEnd,
    AttemptEvidence,
    EndReason,
    Outcome,
    OutcomeWord,
    PointCheck,
    Request,
    RequestOutcome,
    TrialEvidence,
)
from killpoint.report.words import count, listing, shorten

SIGKILL_EXIT = 137
POINTS_MAX = 24
"""Of so many points each is named; of more the first and the last ones."""
KEY_CHARACTERS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """What was seen, and when: milliseconds since the epoch, or None where it carries no time."""

    at_ms: int | None
    text: str


def origin_of(evidence: TrialEvidence) -> int | None:
    """When attempt 1 started: what times in a trial are counted from."""
    if not evidence.attempts:
        return None
    return started_of(evidence.attempts[0])


def started_of(attempt: AttemptEvidence) -> int:
    started = None if attempt.end is None else attempt.end.started_ms
    return attempt.intended_ms if started is None else started


def tell(evidence: TrialEvidence) -> tuple[Sentence, ...]:
    """Everything that was seen of a trial, in the order of time; what has none stands after what it belongs to."""
    told: list[tuple[int, Sentence]] = []
    last = 0
    for attempt in evidence.attempts:
        for sentence in _attempt(attempt):
            last = last if sentence.at_ms is None else sentence.at_ms
            told.append((last, sentence))
    if evidence.ledger is not None:
        told += [(request.received_ms, _request(request, evidence)) for request in evidence.ledger.requests]
    told.sort(key=lambda pair: pair[0])
    return (*(sentence for _, sentence in told), _ledger(evidence))


def attempt_name(attempt: str, trial: TrialId) -> str:
    """``attempt 2`` for one of this trial's, its whole id for a stranger."""
    own = f"{trial}."
    return f"attempt {attempt.removeprefix(own)}" if attempt.startswith(own) else attempt


def was_killed(end: AttemptEnd) -> bool:
    return end.exit_code == SIGKILL_EXIT


def _attempt(attempt: AttemptEvidence) -> Iterator[Sentence]:
    name = f"Attempt {attempt.id.number}"
    asked = "was asked to resume" if attempt.action == "resume" else "was started"
    until = f", to be killed at {attempt.scheduled}" if attempt.scheduled else ""
    yield Sentence(at_ms=started_of(attempt), text=f"{name} {asked}{until}.")
    if attempt.end is None:
        yield Sentence(at_ms=None, text=f"{name}: its end was not seen.")
        return
    if attempt.end.points:
        times = [point.at_ms for point in attempt.end.points if point.at_ms is not None]
        yield Sentence(at_ms=max(times, default=None), text=f"{name} passed {_points(attempt.end)}.")
    yield Sentence(at_ms=attempt.end.at_ms, text=_end(name, attempt, attempt.end))
    if attempt.end.fault:
        yield Sentence(at_ms=None, text=f"{name}: {attempt.end.fault}.")
    if attempt.check is not None:
        yield Sentence(at_ms=None, text=_check(attempt.check))


def _points(end: AttemptEnd) -> str:
    names = [point.spec for point in end.points]
    if len(names) > POINTS_MAX:
        half = POINTS_MAX // 2
        names = [*names[:half], f"{len(names) - 2 * half} more", *names[-half:]]
    folded = f" ({count(end.points_left_out, 'passing')} folded)" if end.points_left_out else ""
    return listing(names) + folded


def _end(name: str, attempt: AttemptEvidence, end: AttemptEnd) -> str:
    exit_ = "" if end.exit_code is None else f" with exit {end.exit_code}"
    match end.reason:
        case EndReason.TIMED_OUT:
            return f"{name} was past its deadline, and killed by the harness."
        case EndReason.VANISHED:
            return f"{name} is gone, and nobody saw how."
        case EndReason.NOT_STARTED:
            return f"{name} could not be started."
        case EndReason.SIGNALED if end.outcome is None:
            at = end.points[-1].spec if end.points else "no point"
            kill = "SIGKILL" if was_killed(end) else "a signal"
            asked = "" if attempt.scheduled else ", which nobody asked for"
            return f"{name} ended{exit_} by {kill}; its last line is {at}{asked}."
        case _:
            return f"{name} {_outcome(end.outcome)}" if end.outcome else f"{name} ended{exit_} and says no outcome."


def _outcome(outcome: Outcome) -> str:
    since = f", resumed from {outcome.resumed_from}" if outcome.resumed_from else ""
    if outcome.word is OutcomeWord.FAILED:
        return f"failed{since}: {outcome.error_class or 'error'}: {outcome.error_message or 'no message'}"
    claims = ""
    if outcome.claims is not None:
        each = [f"{claim.action} {claim.effect or 'without an id'} for {claim.order}" for claim in outcome.claims]
        claims = f"; it claims {listing(each) if each else 'nothing'}"
    return f"says {outcome.word}{since}{claims}."


def _check(check: PointCheck) -> str:
    said = {True: "was true", False: "was NOT true", None: "could not be checked"}[check.held]
    return f"{check.point} {said}: {check.detail}."


def _request(request: Request, evidence: TrialEvidence) -> Sentence:
    who = attempt_name(request.attempt, evidence.id)
    key = "without a key" if request.key is None else f"under key {shorten(request.key, KEY_CHARACTERS)}"
    effect = f" {request.effect}" if request.effect else ""
    match request.outcome:
        case RequestOutcome.COMMITTED:
            said = f"Payments committed {request.action}{effect} for {who}, {key}."
        case RequestOutcome.REPLAYED:
            said = f"Payments answered {who} with {request.action}{effect} again, {key}: nothing new was done."
        case _:
            said = f"Payments answered {request.action} of {who} with {request.status} ({request.outcome}), {key}."
    return Sentence(at_ms=request.received_ms, text=said)


def _ledger(evidence: TrialEvidence) -> Sentence:
    if evidence.ledger is None:
        why = evidence.ledger_fault or "no reason is known"
        return Sentence(at_ms=None, text=f"The ledger was not read: {why}.")
    shown = Counter(effect.action for effect in evidence.ledger.effects)
    asked = Counter(ordered.action for ordered in evidence.ordered)
    actions = dict.fromkeys([*asked, *shown])
    each = [f"{shown[action]} {action} ({asked[action]} ordered)" for action in actions]
    flight = f" {count(evidence.ledger.in_flight, 'request')} still in flight." if evidence.ledger.in_flight else ""
    return Sentence(at_ms=None, text=f"The ledger shows {listing(each) if each else 'nothing'}.{flight}")
