"""What is over is kept small, and is what it was when it is asked for."""

from __future__ import annotations

from dataclasses import replace

from killpoint.api.status import status_of
from killpoint.core.packed import Packed, Unpacking
from killpoint.core.plan import plan
from killpoint.core.state import RunState, TrialState, fold
from killpoint.core.summarize import run_from_state, summarize
from killpoint.model.events import LedgerRead
from killpoint.model.evidence import LedgerView
from tests.unit.core.thousands import JOURNAL, PROVENANCE, Story, Teller, summary_of, told
from tests.unit.engine.world import cell, experiment

TRIALS = 40
BYTES_MAX = 1_500
"""Of a trial with two attempts, three effects and all that was seen of it."""
RUN = experiment(cell(at=("charge.after",), trials=TRIALS))


def stories(_: object, number: int) -> Story:
    return list(Story)[number % len(Story)]


def loose(state: RunState) -> RunState:
    """The same state with nothing packed."""
    return replace(state, trials=dict(state.trials))


def test_trials_that_are_over_take_little_room_and_controls_are_at_hand() -> None:
    state = told(RUN, stories)
    assert isinstance(state.trials, Unpacking)
    packed = {trial: held for trial, held in state.trials.held.items() if isinstance(held, Packed)}
    assert len(packed) == TRIALS == len(state.trials) - 1
    assert max(len(held.data) for held in packed.values()) <= BYTES_MAX


def test_what_was_packed_is_what_it_was() -> None:
    """Each trial folded by itself, with nothing in the journal after its evidence, is not packed yet."""
    teller = Teller(experiment=RUN, words="long words, ü")
    control, killed = RUN.cells
    del control
    for number, story in enumerate(Story, start=1):
        *seen, judged = teller.trial(killed, number, story)
        [before] = fold(RunState(), seen).trials.values()
        [after] = fold(RunState(), [*seen, judged]).trials.values()
        assert replace(after, judgement=None) == before
        assert after.judgement is not None


def test_a_summary_for_a_status_tells_the_same_as_one_with_all_evidence() -> None:
    state = told(RUN, stories)
    whole = summary_of(RUN, loose(state))
    thin = summarize(run_from_state(RUN, plan(RUN, {}), state, journal=JOURNAL, thin=True), PROVENANCE)
    assert thin != whole
    assert status_of(thin) == status_of(whole)


def test_a_ledger_that_is_read_anew_reopens_a_trial_that_was_packed() -> None:
    state = told(RUN, stories)
    trial = next(trial for trial, held in state.trials.held.items() if isinstance(held, Packed))  # type: ignore[attr-defined]
    assert trial in state.judgements
    again = LedgerRead(trial=trial, view=LedgerView(boot="boot-1"))
    teller = Teller(experiment=RUN)
    reopened = fold(replace(state, sequence=0), [teller.recorded(again)])
    assert list(reopened.open) == [trial]
    assert trial not in reopened.judgements
    assert isinstance(reopened.trials[trial], TrialState)
    assert reopened.trials[trial].attempts == state.trials[trial].attempts
