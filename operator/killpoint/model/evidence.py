"""Evidence: what was seen of a trial, before anybody judges it. Times are milliseconds since the Unix epoch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from killpoint.model.cells import AttemptId, Coordinates, Method, TrialId


@dataclass(frozen=True, slots=True, kw_only=True)
class PointPassed:
    """A line of the termination log: the execution came by a named place."""

    point: str
    occurrence: int = 1
    at_ms: int | None = None

    @property
    def spec(self) -> str:
        """The point as a schedule names it: ``charge.after``, ``charge.after#2``."""
        return self.point if self.occurrence == 1 else f"{self.point}#{self.occurrence}"


class OutcomeWord(StrEnum):
    """How a worker says that its attempt ended (worker contract v1)."""

    FINISHED = "finished"
    WAITING = "waiting"
    HELD = "held"
    DEAD_LETTERED = "dead-lettered"
    REJECTED = "rejected"
    REFUSED = "refused"
    YIELDED = "yielded"
    FAILED = "failed"
    INSPECTED = "inspected"
    DESCRIBED = "described"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What the framework's state says was done: one effect, by the id that payments gave it."""

    action: str
    order: str
    effect: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The last line of an attempt that ended by itself."""

    word: OutcomeWord
    error_class: str | None = None
    error_message: str | None = None
    resumed_from: str | None = None
    claims: tuple[Claim, ...] | None = None
    """None: the worker says nothing of it, which is not the same as claiming nothing."""
    recorded: tuple[tuple[str, bool], ...] = ()
    """For ``inspected``: step → whether the store holds its result."""
    timings_ms: tuple[tuple[str, float], ...] = ()


class EndReason(StrEnum):
    """Why an attempt is over, as its substrate saw it."""

    EXITED = "exited"
    SIGNALED = "signaled"
    TIMED_OUT = "timed-out"
    """The harness killed it: it was past its deadline."""
    CUT_SHORT = "cut-short"
    """The harness killed it because the whole run was over: that says nothing of the attempt."""
    OUT_OF_MEMORY = "out-of-memory"
    """The kernel killed it at its memory limit, and the kubelet says so."""
    VANISHED = "vanished"
    """It is gone and nobody saw how: the harness, or the machine, died with it."""
    NOT_STARTED = "not-started"
    """It could not be started at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnd:
    """How an attempt ended: exit as seen from outside, and what its termination log holds."""

    reason: EndReason
    exit_code: int | None = None
    """As a shell shows it: 137 for SIGKILL."""
    at_ms: int
    started_ms: int | None = None
    points: tuple[PointPassed, ...] = ()
    points_left_out: int = 0
    """Passings that the worker folded into counts to keep its log small."""
    outcome: Outcome | None = None
    fault: str | None = None
    """What is wrong with the log (rubbish, another attempt's nonce) or with the start, in words."""


class RequestOutcome(StrEnum):
    """What payments did with a request."""

    COMMITTED = "committed"
    REPLAYED = "replayed"
    CONFLICT = "conflict"
    MISMATCH = "mismatch"
    INVALID = "invalid"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A row of the ledger: something that happened outside."""

    id: str
    action: str
    order: str
    item: str = ""
    amount: int = 0
    """In minor units of the currency."""
    currency: str = ""
    key: str | None = None
    run: str
    attempt: str
    at_ms: int

    @property
    def operation(self) -> tuple[str, str, str]:
        """What makes two effects the same: order, action and item, never the key."""
        return (self.order, self.action, self.item)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A row of the payments service's request log."""

    attempt: str
    action: str
    order: str
    key: str | None = None
    outcome: RequestOutcome
    status: int
    effect: str | None = None
    received_ms: int
    answered_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerView:
    """What payments shows of one run, read when everything was quiet."""

    effects: tuple[Effect, ...] = ()
    requests: tuple[Request, ...] = ()
    in_flight: int = 0
    boot: str = ""
    """Changes when the payments service was started anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointCheck:
    """Whether an attempt's last point was true of the world, asked before the resume.

    ``before``: no request of that attempt. ``sent``: a request of it arrived. ``after``: its effect is committed.
    ``recorded``: a read-only look into the store finds the step's result.
    """

    point: str
    held: bool | None
    """None: it could not be found out."""
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEvidence:
    """Everything known of one attempt."""

    id: AttemptId
    action: str
    scheduled: str | None
    """The point at which it was to be killed."""
    intended_ms: int
    method: Method = Method.SIGKILL
    """How it was to be killed there."""
    parked_ms: int | None = None
    """When it was known to wait at its scheduled point."""
    kill_requested: bool = False
    """Whether the harness asked for its end there: a pod that is gone without that was not killed by it."""
    end: AttemptEnd | None = None
    check: PointCheck | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered:
    """An operation that the job orders: each once, as ordered."""

    action: str
    order: str
    item: str = ""
    amount: int = 0
    currency: str = ""


INTERRUPTION = "killpoint was interrupted while the trial ran"
"""The disturbance that is nobody's fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialEvidence:
    """Everything known of one trial: what a judgement is made from, and all that it is made from."""

    id: TrialId
    run: str
    coordinates: Coordinates
    ordered: tuple[Ordered, ...]
    attempts: tuple[AttemptEvidence, ...] = ()
    ledger: LedgerView | None = None
    """None: it was not read. Never taken for an empty one."""
    ledger_fault: str | None = None
    disturbances: tuple[str, ...] = ()
    """What happened to the services under it while it ran, which nobody had planned."""
