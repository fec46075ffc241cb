"""Points: what their names mean, whether a kill landed on one, and whether it was true of the world."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import assert_never

from killpoint.model.cells import Method
from killpoint.model.evidence import (
    AttemptEnd,
    AttemptEvidence,
    EndReason,
    LedgerView,
    Outcome,
    OutcomeWord,
    PointCheck,
    RequestOutcome,
)

SIGKILL_EXIT = 137
SIGTERM_EXIT = 143
OWN_EXIT = 91
"""What a worker exits with when it is scheduled to leave by itself (worker contract v1)."""
NAME = re.compile(r"^(?P<step>[a-z0-9-]+)\.(?P<place>[a-z0-9-]+)(#(?P<occurrence>[1-9][0-9]*))?$")

_REACHED_THE_TARGET = (RequestOutcome.COMMITTED, RequestOutcome.REPLAYED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A point's name taken apart: ``charge.after#2``."""

    step: str
    place: str
    occurrence: int = 1


def place_of(point: str) -> Place:
    """Take a point's name apart. Raises ValueError with what is allowed."""
    found = NAME.match(point)
    if found is None:
        raise ValueError(f"{point!r} is no point: expected step.place or step.place#occurrence, as in charge.after#2")
    return Place(step=found["step"], place=found["place"], occurrence=int(found["occurrence"] or 1))


def landed(attempt: AttemptEvidence) -> bool:
    """Whether the scheduled kill landed, with the proof that its method asks for.

    Each but a freeze: the attempt said that it came by the point, and then it died as the method kills. What the
    harness kills from outside was parked there and was asked for. A frozen attempt goes on later, so its proof is
    that it was parked there.
    """
    if attempt.scheduled is None:
        return False
    if attempt.method is Method.FREEZE:
        return attempt.parked_ms is not None
    end = attempt.end
    if end is None or end.outcome is not None or end.fault is not None:
        return False
    return _came_by(attempt, end) and _died_as_killed(attempt, end)


def _came_by(attempt: AttemptEvidence, end: AttemptEnd) -> bool:
    """Whether it said that it came by its point: as its last word, where it ended itself in the next line.

    Parking holds up one step while other threads go on, and may pass points of their own until the pod is gone.
    """
    said = [passed.spec for passed in end.points]
    if attempt.method in {Method.DELETE_POD, Method.EVICT}:
        return attempt.scheduled in said
    return said[-1:] == [attempt.scheduled]


def _died_as_killed(attempt: AttemptEvidence, end: AttemptEnd) -> bool:
    match attempt.method:
        case Method.SIGKILL:
            return end.reason is EndReason.SIGNALED and end.exit_code == SIGKILL_EXIT
        case Method.EXIT:
            return end.reason is EndReason.EXITED and end.exit_code == OWN_EXIT
        case Method.OUT_OF_MEMORY:
            return end.reason is EndReason.OUT_OF_MEMORY
        case Method.DELETE_POD | Method.EVICT:
            asked = attempt.kill_requested and attempt.parked_ms is not None
            # At its deadline or its memory limit it dies with the same exit code, whatever became of the request.
            died = end.reason in {EndReason.SIGNALED, EndReason.EXITED}
            return asked and died and end.exit_code in {SIGKILL_EXIT, SIGTERM_EXIT}
        case Method.FREEZE:
            return attempt.parked_ms is not None
        case _:
            assert_never(attempt.method)


def needs_inspection(point: str) -> bool:
    """Whether only the store can say if the point was true."""
    return place_of(point).place == "recorded"


def check_by_ledger(
    point: str, attempt: AttemptEvidence, view: LedgerView, effect_actions: Collection[str]
) -> PointCheck:
    """Ask the ledger whether a point was true when the attempt died there.

    ``after`` is before the record: an attempt that says that it had recorded the step did not die there. A step that
    has no effect outside has nothing there to ask for: its points are places in the control flow alone.
    """
    place = place_of(point)
    if place.step not in effect_actions or place.place not in {"before", "sent", "after"}:
        return PointCheck(
            point=point, held=True, detail=f"a place in the control flow: {place.step} has no effect outside"
        )
    passed = () if attempt.end is None else attempt.end.points
    if place.place == "after" and any(one.point == f"{place.step}.recorded" for one in passed):
        return PointCheck(point=point, held=False, detail=f"the attempt had passed {place.step}.recorded before")
    own = [request for request in view.requests if request.attempt == str(attempt.id) and request.action == place.step]
    done = [request for request in own if request.outcome in _REACHED_THE_TARGET and request.effect is not None]
    match place.place:
        case "before":
            held = len(own) < place.occurrence
            detail = f"payments holds {_requests(len(own))} of this attempt"
        case "sent":
            held = len(own) >= place.occurrence
            detail = f"{_requests(len(own))} of this attempt reached payments"
        case _:
            known = {effect.id for effect in view.effects}
            held = sum(request.effect in known for request in done) >= place.occurrence
            detail = f"payments answered {_requests(len(done))} of this attempt from committed rows"
    return PointCheck(point=point, held=held, detail=detail)


def _requests(count: int) -> str:
    return "no request" if count == 0 else f"{count} request" + ("s" if count > 1 else "")


def check_by_inspection(point: str, end: AttemptEnd) -> PointCheck:
    """Read from an inspector's last line whether the store holds the step's result."""
    step = place_of(point).step
    outcome: Outcome | None = end.outcome
    if end.reason is not EndReason.EXITED or outcome is None or outcome.word is not OutcomeWord.INSPECTED:
        return PointCheck(point=point, held=None, detail=f"the look into the store failed: {failure_of(end)}")
    found = dict(outcome.recorded).get(step)
    if found is None:
        return PointCheck(point=point, held=None, detail=f"the look into the store says nothing of {step}")
    return PointCheck(
        point=point,
        held=found,
        detail=f"the store {'holds' if found else 'does not hold'} the result of {step}",
    )


def _words_of(outcome: Outcome) -> str:
    if outcome.error_class is not None:
        return f"{outcome.error_class}: {outcome.error_message or 'no message'}"
    return f"it said {outcome.word}"


def failure_of(end: AttemptEnd) -> str:
    """In words, how an attempt failed."""
    if end.fault is not None:
        return end.fault
    if end.outcome is not None:
        exited = f", and then ended with exit code {end.exit_code}" if end.exit_code not in {0, None} else ""
        late = ", and then did not end by itself" if end.reason is EndReason.TIMED_OUT else exited
        return _words_of(end.outcome) + ("" if end.outcome.word is OutcomeWord.FAILED else late)
    return {
        EndReason.TIMED_OUT: "it was past its deadline and was killed by the harness",
        EndReason.CUT_SHORT: "the run was over before it was, and the harness ended it",
        EndReason.OUT_OF_MEMORY: "it was killed at its memory limit",
        EndReason.VANISHED: "it is gone and nobody saw how",
        EndReason.NOT_STARTED: "it could not be started",
    }.get(end.reason, f"it ended with exit code {end.exit_code} and no outcome")
