"""Evidence as a run gives it: attempts, points, requests and effects from a short story of a trial."""

from __future__ import annotations

from dataclasses import dataclass

from killpoint.model.cells import AttemptId, Cell, TrialId
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

STARTED_MS = 1_796_047_331_000  # 2026-11-30 14:02:11 UTC
ALL_POINTS = (
    "prepare.before",
    "prepare.after",
    "charge.before",
    "charge.sent",
    "charge.after",
    "charge.recorded",
    "finalize.before",
    "finalize.after",
)
STARTUP_MS = {"langgraph": 1080, "llamaindex": 610, "crewai-persist": 4520, "crewai-checkpoint": 4610}
AMOUNT = 4900


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What happens in a trial, before it is told as evidence."""

    charges: int = 1
    """Charges that payments committed."""
    resent: bool = False
    """Whether the resume sends the charge again."""
    restart: bool = False
    """Whether the resume begins at the first step."""
    killed: bool = True
    error: str | None = None
    """The resume's failure: ``class: message``."""
    ledger_fault: str | None = None


def tell(plan: Cell, *, number: int, story: Story) -> TrialEvidence:
    """The evidence of a trial, with times as a machine of two cores gives them."""
    trial = TrialId(cell=plan.id, number=number)
    coordinates = plan.coordinates
    run, order = f"run-{trial}", f"order-{plan.id}-{number}"
    startup = STARTUP_MS.get(coordinates.setup, 900) + 37 * (number % 7)
    start = STARTED_MS + 2_000 * number + int(plan.id[:4], 16) * 8
    teller = _Teller(trial=trial, run=run, order=order, key=coordinates.key)
    killed_at = coordinates.kill.at[0] if story.killed and coordinates.kill.at else None
    scheduled = coordinates.kill.at[0] if coordinates.kill.at else None
    attempts = [teller.attempt(1, start, startup, until=killed_at, scheduled=scheduled)]
    if killed_at:
        resume_at = (attempts[0].end.at_ms if attempts[0].end else start) + 340
        attempts.append(teller.resume(resume_at, startup, story))
    effects, requests = tuple(teller.effects), tuple(teller.requests)
    ledger = None if story.ledger_fault else LedgerView(effects=effects, requests=requests, boot="b1")
    return TrialEvidence(
        id=trial,
        run=run,
        coordinates=coordinates,
        ordered=(
            Ordered(action="charge", order=order, amount=AMOUNT, currency="EUR"),
            Ordered(action="finalize", order=order),
        ),
        attempts=tuple(attempts),
        ledger=ledger,
        ledger_fault=story.ledger_fault,
    )


class _Teller:
    """Tells attempts in order and keeps what payments saw of them."""

    def __init__(self, *, trial: TrialId, run: str, order: str, key: str) -> None:
        self.trial, self.run, self.order, self.key = trial, run, order, key
        self.keeps_key = False
        self.effects: list[Effect] = []
        self.requests: list[Request] = []

    def attempt(
        self, number: int, start: int, startup: int, *, until: str | None, scheduled: str | None = None
    ) -> AttemptEvidence:
        names = ALL_POINTS[: ALL_POINTS.index(until) + 1] if until else ALL_POINTS
        points = self._walk(number, start + startup, names)
        last = points[-1].at_ms or start
        end = (
            AttemptEnd(reason=EndReason.SIGNALED, exit_code=137, at_ms=last + 9, started_ms=start + 4, points=points)
            if until
            else self._finished(last + 30, start + 4, points, None)
        )
        check = (
            PointCheck(point=until, held=True, detail=CHECKED.get(until, "payments holds no request of attempt 1"))
            if until
            else None
        )
        return AttemptEvidence(
            id=AttemptId(trial=self.trial, number=number),
            action="start",
            scheduled=scheduled,
            intended_ms=start,
            end=end,
            check=check,
        )

    def resume(self, start: int, startup: int, story: Story) -> AttemptEvidence:
        first = "prepare.before" if story.restart else "charge.before" if story.resent else "finalize.before"
        names = ALL_POINTS[ALL_POINTS.index(first) :]
        if not story.resent and story.restart:
            names = tuple(name for name in names if not name.startswith("charge"))
        self.keeps_key = self.key == "saved-random" and not story.restart
        if story.error:
            names = ()
        points = self._walk(2, start + startup, names, replay=story.charges < 2)
        last = (points[-1].at_ms if points else None) or start + startup
        if story.error:
            word, _, message = story.error.partition(": ")
            outcome = Outcome(word=OutcomeWord.FAILED, error_class=word, error_message=message)
            end = AttemptEnd(
                reason=EndReason.EXITED,
                exit_code=1,
                at_ms=last + 12,
                started_ms=start + 4,
                points=points,
                outcome=outcome,
            )
        else:
            end = self._finished(last + 26, start + 4, points, "checkpoint-1ef8")
        return AttemptEvidence(
            id=AttemptId(trial=self.trial, number=2), action="resume", scheduled=None, intended_ms=start, end=end
        )

    def _finished(self, at: int, started: int, points: tuple[PointPassed, ...], resumed_from: str | None) -> AttemptEnd:
        effect = self.effects[0].id if self.effects else None
        outcome = Outcome(
            word=OutcomeWord.FINISHED,
            resumed_from=resumed_from,
            claims=(Claim(action="charge", order=self.order, effect=effect),),
            timings_ms=(
                ("run", 61.5 + self.trial.number),
                ("checkpoint", 14.2 + self.trial.number % 3),
                ("resume", 3.2),
            ),
        )
        return AttemptEnd(
            reason=EndReason.EXITED, exit_code=0, at_ms=at, started_ms=started, points=points, outcome=outcome
        )

    def _walk(
        self, number: int, begin: int, names: tuple[str, ...], *, replay: bool = False
    ) -> tuple[PointPassed, ...]:
        at, points = begin, []
        for name in names:
            at += {"prepare.before": 0, "prepare.after": 24, "charge.before": 17, "charge.sent": 5}.get(name, 12)
            if name == "charge.after" or (name == "charge.sent" and name == names[-1]):
                self._charge(number, received=at - 10, answered=at - 3, replay=replay)
            if name == "finalize.after":
                self._finalize(number, at - 5)
            points.append(PointPassed(point=name, at_ms=at))
        return tuple(points)

    def _charge(self, number: int, *, received: int, answered: int, replay: bool) -> None:
        key = {"none": None, "stable": f"{self.run}:charge", "derived": f"{self.run}:charge"}.get(
            self.key, f"{'9c41d2e0' if number == 1 or self.keeps_key else 'e07a9035'}-{self.trial}"
        )
        attempt = f"{self.trial}.{number}"
        known = self.effects[0].id if replay and self.effects else None
        effect = known or f"ch_{self.trial.cell[:4]}{self.trial.number}{number}"
        if known is None:
            self.effects.append(
                Effect(
                    id=effect,
                    action="charge",
                    order=self.order,
                    amount=AMOUNT,
                    currency="EUR",
                    key=key,
                    run=self.run,
                    attempt=attempt,
                    at_ms=answered - 2,
                )
            )
        self.requests.append(
            Request(
                attempt=attempt,
                action="charge",
                order=self.order,
                key=key,
                outcome=RequestOutcome.REPLAYED if known else RequestOutcome.COMMITTED,
                status=201,
                effect=effect,
                received_ms=received,
                answered_ms=answered,
            )
        )

    def _finalize(self, number: int, at: int) -> None:
        attempt, effect = f"{self.trial}.{number}", f"nt_{self.trial.cell[:4]}{self.trial.number}"
        self.effects.append(
            Effect(id=effect, action="finalize", order=self.order, run=self.run, attempt=attempt, at_ms=at)
        )
        self.requests.append(
            Request(
                attempt=attempt,
                action="finalize",
                order=self.order,
                outcome=RequestOutcome.COMMITTED,
                status=201,
                effect=effect,
                received_ms=at - 2,
                answered_ms=at + 2,
            )
        )


CHECKED = {
    "charge.before": "payments holds no request of attempt 1",
    "charge.sent": "payments received a request of attempt 1",
    "charge.after": "payments holds a committed charge of attempt 1",
    "charge.recorded": "the store holds the result of charge",
}
