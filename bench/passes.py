"""How long a pass takes: with ten, a thousand and ten thousand trials behind it, and of a hundred experiments in turn.

The engine is the real one with a real Postgres for its journal; pods and payments are in memory, so that what is timed
is the reading, deciding and recording of a pass. In a busy pass trials begin and end; in an idle one they only run.

    python -m bench.passes [--passes 50] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from killpoint.core.judge import judge
from killpoint.core.plan import ordered_of, run_of
from killpoint.core.state import RunState, evidence_of, fold
from killpoint.databases.administration import JOURNAL, Databases
from killpoint.engine import Engine, World
from killpoint.journal.postgres import PostgresJournal, migrate, open_run
from killpoint.local.embedded import embedded_postgres
from killpoint.local.home import Home
from killpoint.model.cells import AttemptId, Cell, Coordinates, Kill, Method, TrialId
from killpoint.model.events import (
    AttemptEnded,
    AttemptIntended,
    AttemptLaunched,
    Event,
    LedgerRead,
    PointChecked,
    Recorded,
    RunOpened,
    ServicesSeen,
    TrialJudged,
)
from killpoint.model.evidence import (
    AttemptEnd,
    Claim,
    Effect,
    EndReason,
    LedgerView,
    Outcome,
    OutcomeWord,
    PointCheck,
    PointPassed,
)
from killpoint.model.experiment import Experiment
from killpoint.model.limits import Limits
from killpoint.model.observations import Observation
from killpoint.ports import Launch

BEHIND = (10, 1_000, 10_000)
EXPERIMENTS = 100
TRIALS_EACH = 100
PARALLELISM = 4
CELL_TRIALS = 500
POINT = "charge.after"
BATCH = 2_000
GROWTH_AIM = 3.0
"""A pass with ten thousand trials behind it takes at most so many times as long as one with ten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """Milliseconds of one pass; medians."""

    behind: int
    """Trials that were judged before."""
    busy: float
    idle: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """All of it."""

    alone: tuple[Passes, ...]
    experiments: int
    together_busy: float
    """Milliseconds of one pass over all of the experiments, in which trials of each begin and end."""
    together_idle: float


@dataclass
class Pods:
    """Attempts, and what they charge, in memory. They end at the next look, unless they are held."""

    held: bool = False
    running: dict[AttemptId, Launch] = field(default_factory=dict)
    effects: dict[str, list[Effect]] = field(default_factory=dict)
    ids: itertools.count[int] = field(default_factory=itertools.count)

    async def launch(self, launch: Launch) -> bool:
        self.running[launch.attempt] = launch
        return True

    async def observe(self, attempts: Sequence[AttemptId]) -> Mapping[AttemptId, Observation]:
        return {attempt: self._seen(attempt) for attempt in attempts if attempt in self.running}

    def _seen(self, attempt: AttemptId) -> Observation:
        if self.held:
            return Observation(attempt=attempt, lines=1)
        launch = self.running[attempt]
        schedule: Any = launch.assignment["schedule"]
        self.effects.setdefault(launch.run, []).extend(effects_of(launch.run, attempt, killed=bool(schedule)))
        return Observation(attempt=attempt, lines=9, end=end_of(attempt, killed=bool(schedule)))

    async def sessions(self, attempts: Sequence[AttemptId]) -> Mapping[AttemptId, int]:
        return dict.fromkeys(attempts, 0)

    async def kill(self, attempt: AttemptId, method: Method) -> None:
        """None is asked for."""

    async def release(self, attempt: AttemptId) -> None:
        """Likewise."""

    async def clean_up(self, attempts: Sequence[AttemptId]) -> None:
        for attempt in attempts:
            self.running.pop(attempt, None)

    async def incarnation(self) -> str:
        return "boot-1"

    async def view(self, runs: Sequence[str]) -> Mapping[str, LedgerView]:
        return {run: LedgerView(effects=tuple(self.effects.get(run, ())), boot="boot-1") for run in runs}


def effects_of(run: str, attempt: AttemptId, *, killed: bool) -> Iterator[Effect]:
    """A charge in each attempt, since no key is sent, and the end of the run made known by the last one."""
    charge, finalize = ordered_of(1, attempt.trial)
    for ordered in (charge,) if killed else (charge, finalize):
        yield Effect(
            id=f"{ordered.action[:2]}_{attempt}",
            action=ordered.action,
            order=ordered.order,
            amount=ordered.amount,
            currency=ordered.currency,
            run=run,
            attempt=str(attempt),
            at_ms=now_ms(),
        )


def end_of(attempt: AttemptId, *, killed: bool) -> AttemptEnd:
    passed = ("prepare.before", "prepare.after", "charge.before", "charge.sent", POINT)
    points = tuple(PointPassed(point=point, at_ms=now_ms()) for point in passed)
    if killed:
        return AttemptEnd(reason=EndReason.SIGNALED, exit_code=137, at_ms=now_ms(), points=points)
    order = ordered_of(1, attempt.trial)[0].order
    claim = Claim(action="charge", order=order, effect=f"ch_{attempt}")
    outcome = Outcome(word=OutcomeWord.FINISHED, claims=(claim,))
    return AttemptEnd(reason=EndReason.EXITED, exit_code=0, at_ms=now_ms(), points=points, outcome=outcome)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


# --- what is behind a pass -------------------------------------------------------------------------------------------


def experiment_of(trials: int) -> Experiment:
    """One control, and cells enough that so many trials can be behind it and more are to come."""
    limits = Limits(
        attempts=8, attempt_seconds=600, startup_seconds=600, settle_seconds=15, inconclusive_retries=2,
        deadline_seconds=604_800, cells=500, trials=100_000,
    )  # fmt: skip
    kill = Kill(at=(POINT,), name=POINT)
    cells = [
        Cell(
            coordinates=Coordinates(setup="sim", key="none", kill=kill, parameters=(("layout", f"l{number}"),)),
            trials=CELL_TRIALS,
        )
        for number in range(trials // CELL_TRIALS + 2)
    ]
    control = Cell(coordinates=Coordinates(setup="sim", key="none"), trials=1)
    return Experiment(
        name="passes", digest="0" * 64, seed=1, trials=CELL_TRIALS, controls=1, parallelism=PARALLELISM,
        workflow="charge", cells=(control, *cells), rules=(), limits=limits, fail_fast=False,
    )  # fmt: skip


def history(experiment: Experiment, journal: str, trials: int) -> Iterator[Event]:
    """The events of the control and of so many trials that are over."""
    yield RunOpened(experiment=experiment.name, spec_digest=experiment.digest, seed=1)
    numbered = ((cell, TrialId(cell=cell.id, number=number)) for cell in experiment.cells for number in cell.numbers)
    for cell, trial in itertools.islice(numbered, trials + 1):
        yield from trial_events(cell, trial, journal)


def trial_events(cell: Cell, trial: TrialId, journal: str) -> Iterator[Event]:
    run = run_of(journal, trial)
    events: list[Event] = []
    effects: list[Effect] = []
    for number in range(1, len(cell.coordinates.kill.at) + 2):
        attempt = AttemptId(trial=trial, number=number)
        killed = number <= len(cell.coordinates.kill.at)
        scheduled = POINT if killed else None
        action = "start" if number == 1 else "resume"
        nonce = f"{number:016x}"
        events += [
            AttemptIntended(attempt=attempt, run=run, action=action, scheduled=scheduled, nonce=nonce),
            AttemptLaunched(attempt=attempt),
            AttemptEnded(attempt=attempt, end=end_of(attempt, killed=killed)),
        ]
        effects += effects_of(run, attempt, killed=killed)
        if killed:
            events.append(PointChecked(attempt=attempt, check=PointCheck(point=POINT, held=True, detail="it stands")))
    events.append(LedgerRead(trial=trial, view=LedgerView(effects=tuple(effects), boot="boot-1")))
    recorded = (Recorded(sequence=place, at_ms=now_ms(), event=event) for place, event in enumerate(events, start=1))
    state = fold(RunState(), recorded).trials[trial]
    evidence = evidence_of(state, run=run, coordinates=cell.coordinates, ordered=ordered_of(1, trial))
    yield from events
    yield TrialJudged(trial=trial, judgement=judge(evidence))


# --- measuring -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Driven:
    """An engine and its pods."""

    engine: Engine
    pods: Pods


async def driven(stack: AsyncExitStack, dsn: str, journal: str, trials: int) -> Driven:
    """An engine in the midst of a run, with so many trials behind it."""
    experiment = experiment_of(trials)
    await open_run(dsn, journal, experiment=experiment.name, digest=experiment.digest)
    written = await stack.enter_async_context(PostgresJournal(dsn, journal))
    await written.take_over()
    events = iter(history(experiment, journal, trials))
    while batch := list(itertools.islice(events, BATCH)):
        await written.append(batch)
    await written.append([ServicesSeen(database=await written.incarnation(), payments="boot-1")])
    pods = Pods()
    world = World(
        journal=written, substrate=pods, ledger=pods, now_ms=now_ms,
        new_nonce=lambda: f"{next(pods.ids):016x}", mint_token=lambda run, attempt: f"{run}/{attempt}",
    )  # fmt: skip
    engine = Engine(replace(experiment), journal, world)
    for _ in range(3):
        await engine.step()
    return Driven(engine=engine, pods=pods)


async def timed(driven: Sequence[Driven], passes: int, *, held: bool) -> float:
    """Milliseconds of a pass over all of them; the median."""
    for one in driven:
        one.pods.held = held
        for _ in range(4 if held else 0):
            await one.engine.step()
    taken = []
    for _ in range(passes):
        began = time.perf_counter()
        for one in driven:
            step = await one.engine.step()
            if step.wake_after_seconds is None:
                raise SystemExit("the run came to its end while it was measured")
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


async def measure(folder: Path, *, passes: int) -> Measured:
    """Everything, with one Postgres."""
    home = Home(state=folder / "state", cache=folder / "cache")
    async with embedded_postgres(home, durable=False) as server, Databases(server) as databases:
        dsn = await databases.ensure_service(JOURNAL)
        await migrate(dsn)
        alone = []
        for trials in BEHIND:
            async with AsyncExitStack() as stack:
                one = [await driven(stack, dsn, f"alone-{trials}", trials)]
                busy, idle = [await timed(one, passes, held=held) for held in (False, True)]
                alone.append(Passes(behind=trials, busy=busy, idle=idle))
        async with AsyncExitStack() as stack:
            many = [await driven(stack, dsn, f"one-of-many-{place}", TRIALS_EACH) for place in range(EXPERIMENTS)]
            busy, idle = [await timed(many, max(3, passes // 10), held=held) for held in (False, True)]
    return Measured(alone=tuple(alone), experiments=EXPERIMENTS, together_busy=busy, together_idle=idle)


def _table(done: Measured) -> Iterator[str]:
    yield f"{'milliseconds of a pass':<44}{'busy':>10}{'idle':>10}"
    for one in done.alone:
        yield f"{f'{one.behind:,} trials behind it, {PARALLELISM} at once':<44}{one.busy:>10.1f}{one.idle:>10.1f}"
    words = f"over {done.experiments} experiments of {TRIALS_EACH} trials"
    yield f"{words:<44}{done.together_busy:>10.0f}{done.together_idle:>10.0f}"
    growth = max(done.alone[-1].busy / done.alone[0].busy, done.alone[-1].idle / done.alone[0].idle)
    met = "met" if growth <= GROWTH_AIM else "MISSED"
    yield f"a thousand times as many trials: {growth:.1f} times as long; aim: at most {GROWTH_AIM:g} times: {met}"


def main() -> None:
    parser = argparse.ArgumentParser(description="How long a pass takes.")
    parser.add_argument("--passes", type=int, default=50, choices=range(3, 1001), metavar="3-1000")
    parser.add_argument("--json", action="store_true", help="the result as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="killpoint-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # the embedded Postgres has a user of its own where root runs this
        done = asyncio.run(measure(folder, passes=options.passes))
    print(json.dumps(asdict(done), indent=2) if options.json else "\n".join(_table(done)))


if __name__ == "__main__":
    main()
