"""The engine: one pass over a run. It reads the journal, observes the world, decides, acts and records.

A pass is level-triggered and can be broken off anywhere: whatever is killed, the next pass goes on from the journal.
It never sleeps; whoever drives it waits, and wakes it when something has happened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from killpoint.core.contract import Assigned, assignment_of
from killpoint.core.decide import Situation, decide, spoiled_takes, waiting_for_quiet
from killpoint.core.discover import discovered
from killpoint.core.plan import Discovered, Plan, ordered_of, plan, run_of
from killpoint.core.state import AttemptState, RunState, TrialState, changes, fold
from killpoint.core.summarize import JudgedTrial, Run, run_from_state, trials_of, verdict_on
from killpoint.model.actions import Action, CleanUp, Finish, KillFromOutside, Record, Release, Start, StartAgain
from killpoint.model.cells import AttemptId, TrialId
from killpoint.model.events import (
    AttemptIntended,
    AttemptKillIntended,
    AttemptLaunched,
    AttemptReleased,
    Event,
    RunContinued,
    RunEnded,
    RunOpened,
    RunSuspended,
    ServicesSeen,
)
from killpoint.model.experiment import Experiment
from killpoint.model.observations import Observed
from killpoint.ports import SESSION, Journal, Launch, Ledger, LedgerUnavailableError, Substrate

POLL_SECONDS = 0.25
"""How long a driver may wait when nothing wakes it: deadlines and settling are looked at this often."""
WAITING_SECONDS = 20.0
"""How long an attempt may take to start before it is told of: to make a container takes a moment everywhere."""
REFUSED_SECONDS = 5.0
"""The same where a first try to start it has failed: a second one, at once, may do."""
AUDIT_RUNS = 200
"""How many runs are asked for in one request of the last audit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a pass left behind. ``wake_after_seconds`` is None when the run is over."""

    plan: Plan
    state: RunState
    wake_after_seconds: float | None
    waiting: tuple[str, ...] = ()
    """What attempts wait for that should have started by now, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The adapters and the sources of time and chance that an engine works with."""

    journal: Journal
    substrate: Substrate
    ledger: Ledger
    now_ms: Callable[[], int]
    new_nonce: Callable[[], str]
    incarnation: str = ""
    """Of the process that drives, where attempts die with it. Empty where they outlive it: they are adopted."""
    mint_token: Callable[[str, str], str]
    """(run, attempt) → the bearer token under which payments attributes what the attempt does."""


class Engine:
    """Drives one run of an experiment, pass by pass."""

    def __init__(self, experiment: Experiment, journal_id: str, world: World) -> None:
        self._experiment = experiment
        self._journal_id = journal_id
        self._world = world
        self._state = RunState()
        self._known = False
        """Whether the state is what the journal holds. False at first, and after an append of unknown fate."""
        self._planned = Plan(cells=())
        self._planned_at = -1
        self._discovered: Discovered | None = None
        """The points that the plan was made with."""
        self._inherited: str | None = None
        """The database's incarnation as the engine before this one left it in the journal."""
        self._first_session: str | None = None
        """The database's incarnation as this engine found it."""

    def steer(self, experiment: Experiment) -> None:
        """Go on with what may change while a run goes on: parallelism, whether it is suspended, or aborted."""
        if experiment.digest != self._experiment.digest:
            raise ValueError("a run cannot go on under another specification")
        self._experiment = experiment

    async def step(self) -> Step:
        """One pass. Raises FencedError (stop), and one of the errors of a service that is away (try again)."""
        await self._catch_up()
        if self._state.opened is None:
            await self._append(
                RunOpened(
                    experiment=self._experiment.name,
                    spec_digest=self._experiment.digest,
                    seed=self._experiment.seed,
                )
            )
        if self._state.result is not None:
            return self._step(None)
        if self._experiment.suspended is (self._state.suspended_ms is None):
            await self._append(RunSuspended() if self._experiment.suspended else RunContinued())
        await self._see_services()
        situation = await self._look()
        if await self._answered_anew(situation):
            return self._step(0.0)
        actions = decide(situation)
        progressed = await self._carry_out(actions)
        over = self._state.result is not None
        return self._step(None if over else 0.0 if progressed else POLL_SECONDS, _waiting(situation))

    @property
    def state(self) -> RunState:
        """The run as the journal knows it, as of the last pass."""
        return self._state

    def run(self, *, thin: bool = False) -> Run:
        """The run as it stands, for whoever shows it. ``thin``: without the evidence that no status shows."""
        return run_from_state(self._experiment, self._plan(), self._state, journal=self._journal_id, thin=thin)

    def trials(self) -> Iterator[JudgedTrial]:
        """Every trial with all of its evidence, one after another, as the journal knows them now."""
        experiment, state = self._experiment, self._state
        return (
            trial
            for cell in self._plan().cells
            for trial in trials_of(experiment, state, cell, journal=self._journal_id)
        )

    def _step(self, wake_after_seconds: float | None, waiting: tuple[str, ...] = ()) -> Step:
        return Step(plan=self._plan(), state=self._state, wake_after_seconds=wake_after_seconds, waiting=waiting)

    def _plan(self) -> Plan:
        if self._planned_at != self._state.sequence:
            found = discovered(self._experiment, self._state)
            if found != self._discovered:
                self._planned, self._discovered = plan(self._experiment, found), found
            self._planned_at = self._state.sequence
        return self._planned

    # --- the journal -------------------------------------------------------------------------------------------

    async def _catch_up(self) -> None:
        if not self._known:
            self._state = fold(self._state, await self._world.journal.read(self._state.sequence))
            self._known = True
            if self._first_session is None and self._state.services is not None:
                self._inherited = self._state.services.database

    async def _append(self, *events: Event) -> None:
        self._known = False
        recorded = await self._world.journal.append(events)
        self._state = fold(self._state, recorded)
        self._known = True

    # --- seeing ------------------------------------------------------------------------------------------------

    async def _see_services(self) -> None:
        """Note when the database is another incarnation than before: what ran meanwhile is disturbed.

        Payments is asked once; from then on each view of its ledger says which start of it has answered.
        """
        known = self._state.services
        try:
            payments = known.payments if known is not None else await self._world.ledger.incarnation()
        except LedgerUnavailableError:
            return  # the look below meets the same, and says so where it matters
        await self._note(
            ServicesSeen(database=await self._database(), payments=payments, harness=self._world.incarnation)
        )

    async def _answered_anew(self, situation: Situation) -> bool:
        """Whether payments was started anew since it was last seen. Nothing may be decided before that is noted."""
        known = self._state.services
        boots = {view.boot for view in situation.observed.ledgers.values()}
        if known is None or boots <= {known.payments}:
            return False
        return await self._note(replace(known, payments=next(iter(boots - {known.payments}))))

    async def _note(self, seen: ServicesSeen) -> bool:
        known = self._state.services
        if known is not None and not changes(known, seen):
            return False
        await self._append(seen)
        return True

    async def _database(self) -> str:
        """The database's incarnation. That this engine has another session than the one before it disturbs nobody."""
        incarnation = await self._world.journal.incarnation()
        if self._first_session is None:
            self._first_session = incarnation
        known = self._inherited
        if known is not None and incarnation == self._first_session and _server(known) == _server(incarnation):
            return known
        return incarnation

    async def _look(self) -> Situation:
        situation = Situation(
            experiment=self._experiment,
            journal=self._journal_id,
            plan=self._plan(),
            state=self._state,
            observed=Observed(now_ms=self._world.now_ms()),
        )
        running = [attempt.id for trial in self._open() for attempt in trial.attempts.values() if attempt.end is None]
        attempts = await self._world.substrate.observe(running) if running else {}
        observed = replace(situation.observed, attempts=attempts)
        quiet = waiting_for_quiet(situation)
        if quiet:
            runs = [run_of(self._journal_id, trial.id) for trial in quiet]
            sessions = await self._world.substrate.sessions([attempt for trial in quiet for attempt in trial.attempts])
            observed = replace(observed, sessions=sessions)
            try:
                observed = replace(observed, ledgers=await self._world.ledger.view(runs))
            except LedgerUnavailableError as error:
                observed = replace(observed, ledger_fault=str(error))
        return replace(situation, observed=observed)

    def _open(self) -> list[TrialState]:
        return list(self._state.open.values())

    # --- acting ------------------------------------------------------------------------------------------------

    async def _carry_out(self, actions: Sequence[Action]) -> bool:
        """Do what was decided; intent first. Whether anything was done that calls for another pass at once."""
        records = [action.event for action in actions if isinstance(action, Record)]
        starts = [action for action in actions if isinstance(action, Start)]
        kills = [action for action in actions if isinstance(action, KillFromOutside)]
        again = [action.attempt for action in actions if isinstance(action, StartAgain)]
        intents: list[Event] = [self._intent(start) for start in starts]
        intents += [
            AttemptKillIntended(attempt=kill.attempt, reason=kill.reason, scheduled=kill.scheduled, of_run=kill.of_run)
            for kill in kills
            if not self._is_intended(kill)
        ]
        releases = [action.attempt for action in actions if isinstance(action, Release)]
        intents += [AttemptReleased(attempt=of) for of in releases if self._attempt(of).released_ms is None]
        if records or intents:
            await self._append(*records, *intents)
        await self._launch([*again, *(start.attempt for start in starts)])
        for kill in kills:
            await self._world.substrate.kill(kill.attempt, kill.method)
        for attempt in releases:
            await self._world.substrate.release(attempt)
        for action in actions:
            if isinstance(action, CleanUp):
                await self._world.substrate.clean_up(action.attempts)
        for action in actions:
            if isinstance(action, Finish):
                await self._finish(action)
        return bool(records or intents or again)

    def _is_intended(self, kill: KillFromOutside) -> bool:
        attempt = self._attempt(kill.attempt)
        return attempt.kill_requested if kill.scheduled else attempt.kill_intended is not None

    def _intent(self, start: Start) -> AttemptIntended:
        return AttemptIntended(
            attempt=start.attempt,
            run=run_of(self._journal_id, start.attempt.trial),
            action=start.action,
            scheduled=start.scheduled,
            nonce=self._world.new_nonce(),
            method=start.method,
        )

    def _attempt(self, attempt: AttemptId) -> AttemptState:
        return self._state.trials[attempt.trial].attempts[attempt]

    async def _launch(self, attempts: Sequence[AttemptId]) -> None:
        if not attempts:
            return
        launches = [self._world.substrate.launch(self._launch_of(attempt)) for attempt in attempts]
        # Each is waited for, and what was started is on record, before the fault of one ends the pass.
        results = await asyncio.gather(*launches, return_exceptions=True)
        started = [attempt for attempt, result in zip(attempts, results, strict=True) if result is True]
        if started:
            await self._append(*(AttemptLaunched(attempt=attempt) for attempt in started))
        for result in results:
            if isinstance(result, BaseException):
                raise result

    def _launch_of(self, attempt: AttemptId) -> Launch:
        intended = self._attempt(attempt)
        cell = self._plan().cell(attempt.trial.cell)
        if cell is None:
            raise AssertionError(f"attempt {attempt} belongs to no cell of the plan")
        assigned = Assigned(
            experiment=self._experiment.name,
            workflow=self._experiment.workflow,
            attempt=attempt,
            run=intended.run,
            nonce=intended.nonce,
            action=intended.action,
            scheduled=intended.scheduled,
            method=intended.method,
            coordinates=cell.coordinates,
            ordered=ordered_of(self._experiment.seed, attempt.trial),
        )
        return Launch(
            attempt=attempt,
            run=intended.run,
            setup=cell.coordinates.setup,
            store=cell.coordinates.store,
            assignment=assignment_of(assigned),
            token=self._world.mint_token(intended.run, str(attempt)),
        )

    # --- ending ------------------------------------------------------------------------------------------------

    async def _finish(self, finish: Finish) -> None:
        """Read the whole ledger once more: what was committed after a judgement reopens its trial."""
        late = [] if finish.aborted else await self._late_effects()
        if late:
            await self._append(*late)
            return
        await self._append(RunEnded(result=verdict_on(self.run(thin=True)), aborted=finish.aborted))

    async def _late_effects(self) -> list[Event]:
        """Of every take that ran, those that were run again included: none of what they did is to be overlooked.

        Raises LedgerUnavailableError, unless payments has never answered for any of them: to wait on would be in vain.
        """
        trials, late = self._state.trials, list[Event]()
        for takes in _batches(tuple(trials), AUDIT_RUNS):
            reads = [read for take in takes if (read := trials[take].ledger) is not None]
            try:
                views = await self._world.ledger.view([run_of(self._journal_id, read.trial) for read in reads])
            except LedgerUnavailableError:
                if all(trial.ledger is None or trial.ledger.view is None for trial in trials.values()):
                    return []
                raise
            for read in reads:
                view = views[run_of(self._journal_id, read.trial)]
                if read.view is None or view.effects != read.view.effects:
                    late.append(replace(read, view=view))
        return late


def _batches(trials: Sequence[TrialId], most: int) -> Iterator[Sequence[TrialId]]:
    return (trials[start : start + most] for start in range(0, len(trials), most))


def _waiting(situation: Situation) -> tuple[str, ...]:
    """What attempts wait for that were asked for a while ago and have not started."""
    asked = {of.id: of.intended_ms for trial in situation.state.open.values() for of in trial.running}
    now_ms = situation.observed.now_ms
    return tuple(
        f"{seen.waits}{_take(situation, of.trial)}"
        for of, seen in situation.observed.attempts.items()
        if seen.waits
        and of in asked
        and now_ms - asked[of] >= 1000 * (REFUSED_SECONDS if seen.refused else WAITING_SECONDS)
    )


def _take(situation: Situation, trial: TrialId) -> str:
    """Which of its takes a trial is at, where it is not the first."""
    number = spoiled_takes(situation.state, trial) + 1
    return f" (take {number} of {situation.experiment.limits.inconclusive_retries + 1})" if number > 1 else ""


def _server(incarnation: str) -> str:
    """Which start of the server it is, whatever the session."""
    return incarnation.partition(SESSION)[0]
