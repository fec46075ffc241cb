"""A world in memory for the engine's tests: scripted workers, a ledger and a journal that can fail on purpose."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any

from killpoint.engine import Engine, World
from killpoint.journal.codec import decode, encode
from killpoint.model.cells import AttemptId, Cell, Coordinates, Kill, Method, Role
from killpoint.model.events import Event, Recorded
from killpoint.model.evidence import (
    AttemptEnd,
    Claim,
    Effect,
    EndReason,
    LedgerView,
    Outcome,
    OutcomeWord,
    PointPassed,
    Request,
    RequestOutcome,
)
from killpoint.model.experiment import Experiment
from killpoint.model.limits import Limits
from killpoint.model.observations import Observation
from killpoint.ports import Launch

SCRIPT = (
    "prepare.before",
    "prepare.after",
    "charge.before",
    "charge.sent",
    "charge.after",
    "charge.recorded",
    "finalize.before",
    "finalize.after",
)


class Crash(BaseException):
    """The engine's own process dies here."""


class Flaw(Enum):
    """What is wrong with a worker, or with the harness around it."""

    NONE = auto()
    NEVER_DIES = auto()
    """Passes its scheduled point and goes on."""
    HANGS = auto()
    WAITS = auto()
    """Does not start at all."""
    REFUSED = auto()
    """The same, and a first try has failed."""
    RUBBISH = auto()
    VANISHES = auto()
    RECORDS_NOTHING = auto()
    """Says charge.recorded although the store holds nothing."""
    CHARGES_EARLY = auto()
    """Says charge.before only after the charge."""
    FORGETS_TO_CHARGE = auto()
    CLAIMS_ANOTHER = auto()
    RAISES = auto()
    CHARGES_MORE = auto()


@dataclass
class Clock:
    """Milliseconds that go on by themselves a little at each look."""

    ms: int = 1_764_520_000_000

    def now(self) -> int:
        self.ms += 1
        return self.ms


@dataclass
class FakeJournal:
    """Events in a list, encoded as they would be in Postgres. Dies before or after an append when told to."""

    clock: Clock
    stored: list[tuple[int, int, str, str]] = field(default_factory=list)
    crash_before: Callable[[Sequence[Event]], bool] = lambda _: False
    crash_after: Callable[[Sequence[Event]], bool] = lambda _: False
    server: str = "server-1"

    async def incarnation(self) -> str:
        return self.server

    async def read(self, after: int) -> Sequence[Recorded]:
        return [
            Recorded(sequence=sequence, at_ms=at_ms, event=decode(kind, document))
            for sequence, at_ms, kind, document in self.stored
            if sequence > after
        ]

    async def append(self, events: Sequence[Event]) -> Sequence[Recorded]:
        if self.crash_before(events):
            raise Crash
        first = len(self.stored)
        for event in events:
            self.stored.append((len(self.stored) + 1, self.clock.now(), *encode(event)))
        if self.crash_after(events):
            raise Crash
        return await self.read(first)


@dataclass
class FakeTarget:
    """Payments: a ledger by run, with keys."""

    clock: Clock
    effects: list[Effect] = field(default_factory=list)
    requests: list[tuple[str, Request]] = field(default_factory=list)
    answers: dict[tuple[str, str], str] = field(default_factory=dict)
    boot: str = "boot-1"
    away: bool = False
    in_flight: int = 0
    ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def charge(self, launch: Launch, action: str, *, key: str | None, amount: int, currency: str) -> str:
        order = _order(launch)
        answered = None if key is None else self.answers.get((launch.run, key))
        effect = answered or f"{action[:2]}_{next(self.ids):04}"
        now = self.clock.now()
        if answered is None:
            self.effects.append(
                Effect(
                    id=effect,
                    action=action,
                    order=order,
                    amount=amount,
                    currency=currency,
                    key=key,
                    run=launch.run,
                    attempt=str(launch.attempt),
                    at_ms=now,
                )
            )
        if key is not None:
            self.answers[launch.run, key] = effect
        outcome = RequestOutcome.COMMITTED if answered is None else RequestOutcome.REPLAYED
        request = Request(
            attempt=str(launch.attempt),
            action=action,
            order=order,
            key=key,
            outcome=outcome,
            status=201,
            effect=effect,
            received_ms=now,
            answered_ms=now,
        )
        self.requests.append((launch.run, request))
        return effect

    async def incarnation(self) -> str:
        return self.boot

    async def view(self, runs: Sequence[str]) -> Mapping[str, LedgerView]:
        return {
            run: LedgerView(
                effects=tuple(effect for effect in self.effects if effect.run == run),
                requests=tuple(request for of, request in self.requests if of == run),
                in_flight=self.in_flight,
                boot=self.boot,
            )
            for run in runs
        }


def _order(launch: Launch) -> str:
    return str(_job(launch)["id"])


def _job(launch: Launch) -> dict[str, Any]:
    job: Any = launch.assignment["job"]
    order: dict[str, Any] = job["orders"][0]
    return order


@dataclass
class Execution:
    """A worker in the midst of its script."""

    launch: Launch
    flaw: Flaw
    effect: str | None
    points: list[PointPassed] = field(default_factory=list)

    def __post_init__(self) -> None:
        forgetful = ("prepare.before", "prepare.after", "finalize.before", "finalize.after")
        recorded = SCRIPT[-2:] if self.effect else SCRIPT
        self.script = iter(forgetful if self.flaw is Flaw.FORGETS_TO_CHARGE else recorded)


@dataclass
class FakeSubstrate:
    """Workers that run to their end at the moment of their launch."""

    clock: Clock
    target: FakeTarget
    flaw: Callable[[AttemptId], Flaw] = lambda _: Flaw.NONE
    store: dict[str, str] = field(default_factory=dict)
    """Run → the effect that its store holds."""
    seen: dict[AttemptId, Observation] = field(default_factory=dict)
    launches: list[AttemptId] = field(default_factory=list)
    open_sessions: int = 0
    stopped: dict[AttemptId, Execution] = field(default_factory=dict)
    """Executions that wait at their point."""
    slow: set[AttemptId] = field(default_factory=set)
    """Frozen ones whose release takes until the next look."""
    crash_after_launch: Callable[[AttemptId], bool] = lambda _: False

    async def launch(self, launch: Launch) -> bool:
        if launch.attempt in self.seen:
            return True
        self.launches.append(launch.attempt)
        self.seen[launch.attempt] = self._observation(launch)
        if self.crash_after_launch(launch.attempt):
            raise Crash
        return True

    def _observation(self, launch: Launch) -> Observation:
        flaw = self.flaw(launch.attempt)
        if flaw is Flaw.VANISHES:
            end = AttemptEnd(reason=EndReason.VANISHED, at_ms=self.clock.now())
            return Observation(attempt=launch.attempt, end=end)
        if flaw in {Flaw.WAITS, Flaw.REFUSED}:
            waits = f"pod of {launch.attempt} has no node"
            return Observation(attempt=launch.attempt, waits=waits, refused=flaw is Flaw.REFUSED)
        if flaw is Flaw.HANGS:
            return Observation(attempt=launch.attempt, lines=1, started_ms=self.clock.now())
        if launch.attempt.role is Role.INSPECTOR:
            return Observation(attempt=launch.attempt, lines=2, end=self._inspected(launch))
        execution = Execution(launch=launch, flaw=flaw, effect=self.store.get(launch.run))
        ended = self._run(execution)
        if ended is None:
            self.stopped[launch.attempt] = execution
            return Observation(attempt=launch.attempt, lines=2, parked_at=execution.points[-1].spec)
        end = ended
        if flaw is Flaw.RUBBISH:
            end = replace(end, fault="line 1 of the termination log: not JSON: 'hello'", points=(), outcome=None)
        return Observation(attempt=launch.attempt, lines=len(end.points) + 1, end=end)

    def _inspected(self, launch: Launch) -> AttemptEnd:
        outcome = Outcome(word=OutcomeWord.INSPECTED, recorded=(("charge", launch.run in self.store),))
        return AttemptEnd(reason=EndReason.EXITED, exit_code=0, at_ms=self.clock.now(), outcome=outcome)

    def _run(self, execution: Execution) -> AttemptEnd | None:
        """Run to the end, or to a point where the attempt parks or freezes: None."""
        launch, flaw, points = execution.launch, execution.flaw, execution.points
        schedule: Any = launch.assignment["schedule"]
        fatal = {entry["point"]: entry["do"] for entry in schedule} if flaw is not Flaw.NEVER_DIES else {}
        for point in execution.script:
            execution.effect = self._do(launch, point, execution.effect, flaw)
            points.append(PointPassed(point=point, at_ms=self.clock.now()))
            match fatal.get(point):
                case "die":
                    return self._end(points, exit_code=137)
                case "exit":
                    return self._end(points, exit_code=91)
                case "park" | "freeze":
                    return None
                case _:
                    continue
        effect = execution.effect
        if flaw is Flaw.RAISES:
            outcome = Outcome(
                word=OutcomeWord.FAILED, error_class="RuntimeError", error_message="dictionary changed size"
            )
            return self._end(points, exit_code=1, outcome=outcome)
        claimed = "ch_other" if flaw is Flaw.CLAIMS_ANOTHER else effect
        claim = Claim(action="charge", order=_order(launch), effect=claimed)
        return self._end(points, exit_code=0, outcome=Outcome(word=OutcomeWord.FINISHED, claims=(claim,)))

    def _do(self, launch: Launch, point: str, effect: str | None, flaw: Flaw) -> str | None:
        job = _job(launch)
        amount = job["amount"] + (100 if flaw is Flaw.CHARGES_MORE else 0)
        coordinates: Any = launch.assignment["coordinates"]
        key = None if coordinates["key"] in {"none", "fresh"} else f"{launch.run}:charge"
        charging = "charge.before" if flaw is Flaw.CHARGES_EARLY else "charge.sent"
        if point == charging:
            return self.target.charge(launch, "charge", key=key, amount=amount, currency=job["currency"])
        if point == "charge.recorded" and flaw is not Flaw.RECORDS_NOTHING and effect is not None:
            self.store[launch.run] = effect
        if point == "finalize.after":
            self.target.charge(launch, "finalize", key="finalize", amount=0, currency="")
        return effect

    def _end(self, points: list[PointPassed], *, exit_code: int, outcome: Outcome | None = None) -> AttemptEnd:
        return AttemptEnd(
            reason=EndReason.SIGNALED if exit_code == 137 else EndReason.EXITED,
            exit_code=exit_code,
            at_ms=self.clock.now(),
            points=tuple(points),
            outcome=outcome,
        )

    async def kill(self, attempt: AttemptId, method: Method) -> None:
        seen = self.seen[attempt]
        if seen.end is None:
            stopped = self.stopped.get(attempt)
            end = self._end(stopped.points if stopped else [], exit_code=137 if method is Method.SIGKILL else 143)
            self.seen[attempt] = replace(seen, end=replace(end, reason=EndReason.SIGNALED))

    async def release(self, attempt: AttemptId) -> None:
        seen = self.seen[attempt]
        if seen.end is None:
            self.seen[attempt] = replace(seen, parked_at=None, end=self._run(self.stopped[attempt]))

    async def observe(self, attempts: Sequence[AttemptId]) -> Mapping[AttemptId, Observation]:
        return {attempt: self.seen[attempt] for attempt in attempts if attempt in self.seen}

    async def sessions(self, attempts: Sequence[AttemptId]) -> Mapping[AttemptId, int]:
        return dict.fromkeys(attempts, self.open_sessions)

    async def clean_up(self, attempts: Sequence[AttemptId]) -> None:
        for attempt in attempts:
            seen = self.seen.get(attempt)
            assert seen is None or seen.end is not None, f"{attempt} was cleaned up while it lived"


LIMITS = Limits(
    attempts=8,
    attempt_seconds=60,
    startup_seconds=30,
    settle_seconds=5,
    inconclusive_retries=1,
    deadline_seconds=3600,
    cells=500,
    trials=10_000,
)


def cell(*, key: str = "none", at: tuple[str, ...] = (), trials: int = 1, method: Method = Method.SIGKILL) -> Cell:
    kill = Kill(at=at, name="+".join(at), method=method) if at else Kill()
    return Cell(coordinates=Coordinates(setup="sim", key=key, kill=kill), trials=trials)


def experiment(*cells: Cell, **changes: Any) -> Experiment:  # noqa: ANN401 - any field of an Experiment
    controls = {replace(cell, coordinates=replace(cell.coordinates, kill=Kill()), trials=1) for cell in cells}
    default = Experiment(
        name="sim",
        digest="0" * 64,
        seed=1,
        trials=1,
        controls=1,
        parallelism=4,
        workflow="charge",
        cells=(*sorted(controls, key=lambda cell: cell.id), *(cell for cell in cells if not cell.is_control)),
        rules=(),
        limits=LIMITS,
        fail_fast=False,
    )
    return replace(default, **changes)


@dataclass
class Sim:
    """A world, and engines that come and go in it."""

    experiment: Experiment
    clock: Clock = field(default_factory=Clock)
    steps: int = 0
    incarnation: Callable[[], str] = lambda: ""
    """Of each engine's process; empty where attempts outlive it."""

    def __post_init__(self) -> None:
        self.journal = FakeJournal(clock=self.clock)
        self.target = FakeTarget(clock=self.clock)
        self.substrate: FakeSubstrate = FakeSubstrate(clock=self.clock, target=self.target)
        self._nonces = itertools.count(1)

    def engine(self) -> Engine:
        world = World(
            journal=self.journal,
            substrate=self.substrate,
            ledger=self.target,
            now_ms=self.clock.now,
            new_nonce=lambda: f"nonce-{next(self._nonces)}",
            incarnation=self.incarnation(),
            mint_token=lambda run, attempt: f"token-of-{run}-{attempt}",
        )
        return Engine(self.experiment, "j1", world)

    def run(self, *, steps_max: int = 400) -> Engine:
        """Drive the run to its end; an engine that crashes is followed by a new one. Time passes when idle."""
        return asyncio.run(self.drive(steps_max))

    async def drive(self, steps_max: int = 400) -> Engine:
        """The same, within a loop that runs."""
        engine = self.engine()
        for _ in range(steps_max):
            self.steps += 1
            try:
                step = await engine.step()
            except Crash:
                engine = self.engine()
                continue
            if step.wake_after_seconds is None:
                return engine
            self.clock.ms += int(step.wake_after_seconds * 1000) * 20
        raise AssertionError(f"the run did not end within {steps_max} steps")
