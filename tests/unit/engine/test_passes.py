"""A pass looks at what is open and at what can be started, however many trials are behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from killpoint.core.decide import Situation, decide, unstarted, waiting_for_quiet
from killpoint.core.plan import plan
from killpoint.core.state import RunState, TrialState, fold
from killpoint.journal.codec import decode
from killpoint.model.cells import TrialId
from killpoint.model.events import Recorded
from killpoint.model.experiment import Experiment
from killpoint.model.observations import Observed
from killpoint.model.rules import Rule
from killpoint.model.summary import Expected, FrameworkErrors
from tests.unit.core.thousands import JOURNAL, STARTED_MS, Story, Teller
from tests.unit.engine.world import Flaw, Sim, cell, experiment

LOOKS_MAX = 50
"""Into the trials of a run, in one pass with four places."""


class Counted(Mapping[TrialId, TrialState]):
    """The trials of a run. Each look is counted, and nobody may walk through them."""

    def __init__(self, trials: Mapping[TrialId, TrialState]) -> None:
        self._trials = trials
        self.looks = 0

    def __getitem__(self, trial: TrialId) -> TrialState:
        self.looks += 1
        return self._trials[trial]

    def __iter__(self) -> Iterator[TrialId]:
        raise AssertionError("a pass walks through every trial of the run")

    def __len__(self) -> int:
        return len(self._trials)


def situation(experiment: Experiment, state: RunState) -> Situation:
    observed = Observed(now_ms=STARTED_MS + 1000)
    return Situation(experiment=experiment, journal=JOURNAL, plan=plan(experiment, {}), state=state, observed=observed)


def judged(run: Experiment, count: int) -> RunState:
    """The state after so many trials of each cell."""
    teller = Teller(experiment=run)
    events = [*teller.opening()]
    for of in run.cells:
        for number in range(1, min(count, of.trials) + 1):
            events += teller.trial(of, number, Story.ONCE if of.is_control else Story.TWICE)
    return fold(RunState(), events)


@pytest.mark.parametrize("trials", [10, 300, 2000])
def test_a_pass_takes_no_more_looks_when_more_trials_are_behind_it(trials: int) -> None:
    run = experiment(cell(at=("charge.after",), trials=2100), cell(at=("charge.before",), trials=2100))
    state = judged(run, trials)
    counted = Counted(state.trials)
    seen = situation(run, replace(state, trials=counted))
    assert waiting_for_quiet(seen) == ()
    assert len(decide(seen)) == 4
    assert counted.looks <= LOOKS_MAX


def every_state(sim: Sim) -> Iterator[RunState]:
    """The state after each event of a run."""
    state = RunState()
    for sequence, at_ms, kind, document in sim.journal.stored:
        state = fold(state, [Recorded(sequence=sequence, at_ms=at_ms, event=decode(kind, document))])
        yield state


FLAWED: dict[str, Any] = {
    "all is well": lambda _: Flaw.NONE,
    "first takes vanish": lambda attempt: Flaw.VANISHES if attempt.trial.retry == 0 else Flaw.NONE,
    "every take vanishes": lambda _: Flaw.VANISHES,
    "resumes raise": lambda attempt: Flaw.RAISES if attempt.number == 2 else Flaw.NONE,
    "starts raise": lambda attempt: Flaw.RAISES if attempt.trial.number % 2 else Flaw.NONE,
}


@pytest.mark.parametrize("flaw", FLAWED)
def test_what_is_kept_for_a_pass_is_what_a_walk_through_every_trial_finds(flaw: str) -> None:
    """Checked after each event of whole runs, with takes that are run again and controls that are set apart."""
    errors = Expected(framework_errors=FrameworkErrors(match="dictionary changed size", most=5))
    rules = (Rule(expected=errors), Rule(control=True, expected=errors))
    sim = Sim(experiment(*(cell(at=(point,), trials=3) for point in ("charge.before", "charge.after")), rules=rules))
    sim.substrate.flaw = FLAWED[flaw]
    sim.run()
    for state in every_state(sim):
        assert list(state.open) == [of.id for of in state.trials.values() if of.judgement is None]
        assert startable(sim.experiment, state) == walked(sim.experiment, state)


def startable(experiment: Experiment, state: RunState) -> list[TrialId]:
    return [trial for trial, _ in unstarted(situation(experiment, state))]


def walked(experiment: Experiment, state: RunState) -> list[TrialId]:
    """The same, with every trial of every cell taken for one that may have to be started."""
    takes: dict[str, frozenset[TrialId]] = {}
    for trial in state.trials:
        takes[trial.cell] = takes.get(trial.cell, frozenset()) | {trial}
    fresh = {
        TrialId(cell=of.id, number=number)
        for of in experiment.cells
        for number in of.numbers
        if state.latest(of.id, number) is None
    }
    found = startable(experiment, replace(state, doubtful=takes))
    new = {trial for trial in found if trial.retry == 0}
    assert new == {trial for trial in fresh if trial.cell in {one.cell for one in new}}
    return found
