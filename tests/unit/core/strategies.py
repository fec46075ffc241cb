"""Evidence, plans and events as hypothesis draws them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from killpoint.model.cells import AttemptId, Cell, Coordinates, Kill, Method, Role, TrialId
from killpoint.model.evidence import (
    AttemptEnd,
    AttemptEvidence,
    Claim,
    Effect,
    EndReason,
    LedgerView,
    Ordered,
    Outcome,
    OutcomeWord,
    PointCheck,
    PointPassed,
    Request,
    RequestOutcome,
    TrialEvidence,
)

POINTS = ("prepare.after", "charge.before", "charge.sent", "charge.after", "charge.recorded", "finalize.before")
TRIAL = TrialId(cell="7f31e2c0", number=3)
ORDER = "order-7f31e2c0-3"
ORDERED = (
    Ordered(action="charge", order=ORDER, amount=4900, currency="EUR"),
    Ordered(action="finalize", order=ORDER),
)
WORDS = st.text(
    st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20
)
MILLISECONDS = st.integers(0, 2**42)

points_passed = st.builds(
    PointPassed, point=st.sampled_from(POINTS), occurrence=st.integers(1, 3), at_ms=st.none() | MILLISECONDS
)
claims = st.builds(
    Claim,
    action=st.sampled_from(["charge", "finalize"]),
    order=st.just(ORDER),
    effect=st.none() | st.sampled_from(["ch_1", "ch_2"]),
)
outcomes = st.builds(
    Outcome,
    word=st.sampled_from(OutcomeWord),
    error_class=st.none() | WORDS,
    error_message=st.none() | WORDS,
    resumed_from=st.none() | WORDS,
    claims=st.none() | st.lists(claims, max_size=3).map(tuple),
    recorded=st.just(()) | st.just((("charge", True),)),
    timings_ms=st.just(()) | st.just((("run", 12.5),)),
)
ends = st.builds(
    AttemptEnd,
    reason=st.sampled_from(EndReason),
    exit_code=st.none() | st.sampled_from([0, 1, 91, 137, 143]),
    at_ms=MILLISECONDS,
    points=st.lists(points_passed, max_size=4).map(tuple),
    outcome=st.none() | outcomes,
    fault=st.none() | WORDS,
)
checks = st.builds(PointCheck, point=st.sampled_from(POINTS), held=st.none() | st.booleans(), detail=WORDS)


def attempt_id(number: int) -> AttemptId:
    return AttemptId(trial=TRIAL, number=number, role=Role.EXECUTOR)


def attempts(number: int) -> st.SearchStrategy[AttemptEvidence]:
    return st.builds(
        AttemptEvidence,
        id=st.just(attempt_id(number)),
        action=st.just("start" if number == 1 else "resume"),
        scheduled=st.none() | st.sampled_from(POINTS),
        intended_ms=MILLISECONDS,
        method=st.sampled_from(Method),
        parked_ms=st.none() | MILLISECONDS,
        kill_requested=st.booleans(),
        end=st.none() | ends,
        check=st.none() | checks,
    )


effects = st.builds(
    Effect,
    id=st.sampled_from([f"ch_{number}" for number in range(1, 7)]),
    action=st.sampled_from(["charge", "charge", "finalize", "refund"]),
    order=st.sampled_from([ORDER, ORDER, "order-other"]),
    amount=st.sampled_from([4900, 4900, 0, 5000]),
    currency=st.sampled_from(["EUR", "EUR", ""]),
    key=st.none() | WORDS,
    run=st.just("j-7f31e2c0.3"),
    attempt=st.sampled_from([str(attempt_id(1)), str(attempt_id(2)), "0000aaaa.1.1"]),
    at_ms=MILLISECONDS,
)
requests = st.builds(
    Request,
    attempt=st.sampled_from([str(attempt_id(1)), str(attempt_id(2))]),
    action=st.just("charge"),
    order=st.just(ORDER),
    outcome=st.sampled_from(RequestOutcome),
    status=st.sampled_from([200, 201, 409, 422]),
    effect=st.none() | st.sampled_from(["ch_1", "ch_2"]),
    received_ms=MILLISECONDS,
    answered_ms=st.none() | MILLISECONDS,
)
ledgers = st.builds(
    LedgerView,
    effects=st.lists(effects, max_size=5, unique_by=lambda effect: effect.id).map(tuple),
    requests=st.lists(requests, max_size=4).map(tuple),
    in_flight=st.sampled_from([0, 0, 0, 1]),
    boot=st.just("b"),
)
kills = st.lists(st.sampled_from(POINTS), max_size=2).map(
    lambda at: Kill(at=tuple(at), name="+".join(at)) if at else Kill()
)


@st.composite
def evidences(draw: st.DrawFn) -> TrialEvidence:
    """Any evidence at all: most of it contradicts itself, and the judge has to live with that."""
    count = draw(st.integers(0, 3))
    return TrialEvidence(
        id=TRIAL,
        run="j-7f31e2c0.3",
        coordinates=Coordinates(setup="sim", kill=draw(kills)),
        ordered=ORDERED,
        attempts=tuple(draw(attempts(number)) for number in range(1, count + 1)),
        ledger=draw(st.none() | ledgers),
        ledger_fault=draw(st.none() | WORDS),
        disturbances=draw(st.just(()) | st.just(("payments was started anew",))),
    )


coordinates = st.builds(
    Coordinates,
    setup=st.sampled_from(["langgraph", "llamaindex", "crewai-persist"]),
    store=st.sampled_from(["postgres", "volume"]),
    key=st.sampled_from(["none", "fresh", "stable", "derived"]),
    resume=st.sampled_from(["continue", "resend"]),
    kill=kills | st.just(Kill(at=("*",), name="*")),
    parameters=st.just(()) | st.just((("durability", "sync"),)) | st.just((("durability", "exit"),)),
)
cells = st.builds(Cell, coordinates=coordinates, trials=st.integers(1, 3))


def proven(point: str, number: int = 1) -> AttemptEvidence:
    """An attempt that was killed at a point beyond doubt."""
    end = AttemptEnd(reason=EndReason.SIGNALED, exit_code=137, at_ms=2, points=(PointPassed(point=point),))
    check = PointCheck(point=point, held=True, detail="seen")
    return AttemptEvidence(id=attempt_id(number), action="start", scheduled=point, intended_ms=1, end=end, check=check)


def finished(number: int, *effects_claimed: str) -> AttemptEvidence:
    """An attempt that ended the run and claims these charges."""
    claimed = tuple(Claim(action="charge", order=ORDER, effect=effect) for effect in effects_claimed)
    outcome = Outcome(word=OutcomeWord.FINISHED, claims=claimed)
    points = (PointPassed(point="finalize.after"),)
    end = AttemptEnd(reason=EndReason.EXITED, exit_code=0, at_ms=4, points=points, outcome=outcome)
    return AttemptEvidence(id=attempt_id(number), action="resume", scheduled=None, intended_ms=3, end=end)


def effect(name: str, *, action: str = "charge", attempt: int = 1, amount: int | None = None) -> Effect:
    money = (4900 if amount is None else amount, "EUR") if action == "charge" else (0, "")
    return Effect(
        id=name,
        action=action,
        order=ORDER,
        amount=money[0],
        currency=money[1],
        run="j-7f31e2c0.3",
        attempt=str(attempt_id(attempt)),
        at_ms=2,
    )


def evidence(*attempts: AttemptEvidence, effects: tuple[Effect, ...] = (), at: tuple[str, ...] = ()) -> TrialEvidence:
    """A trial with a ledger that was read, and with its run's end made known."""
    known = (*effects, effect("no_1", action="finalize", attempt=len(attempts) or 1))
    request = Request(
        attempt=str(attempt_id(1)),
        action="charge",
        order=ORDER,
        outcome=RequestOutcome.COMMITTED,
        status=201,
        received_ms=1,
    )
    return TrialEvidence(
        id=TRIAL,
        run="j-7f31e2c0.3",
        coordinates=Coordinates(setup="sim", kill=Kill(at=at, name="+".join(at)) if at else Kill()),
        ordered=ORDERED,
        attempts=attempts,
        ledger=LedgerView(effects=known, requests=(request,), boot="b"),
    )


def without_claims(attempt: AttemptEvidence) -> AttemptEvidence:
    assert attempt.end is not None
    assert attempt.end.outcome is not None
    return replace(attempt, end=replace(attempt.end, outcome=replace(attempt.end.outcome, claims=None)))
