"""Ways to be killed: each with its own proof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from killpoint.model.cells import AttemptId, Method
from killpoint.model.evidence import EndReason
from killpoint.model.findings import Cause, Verdict
from tests.unit.engine.telling import only_trial
from tests.unit.engine.world import LIMITS, Sim, cell, experiment

METHODS = [Method.EXIT, Method.DELETE_POD, Method.EVICT]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_kills_with_its_own_proof(method: Method) -> None:
    record = only_trial(Sim(experiment(cell(at=("charge.after",), method=method))))
    assert record.judgement is not None
    assert (record.judgement.verdict, record.judgement.kills_confirmed) == (Verdict.DUPLICATE, 1)


def test_a_frozen_attempt_goes_on_after_another_took_over() -> None:
    """The zombie: it was stopped before its charge, and charges when it is let go, after the resume has finished."""
    record = only_trial(Sim(experiment(cell(at=("charge.before",), method=Method.FREEZE))))
    assert record.judgement is not None
    assert record.judgement.kills_confirmed == 1
    assert dict(record.judgement.effects)["charge"] == 2
    first, second = record.evidence.attempts
    assert first.end is not None
    assert second.end is not None
    assert first.end.at_ms > second.end.at_ms


def test_a_frozen_attempt_is_never_judged_away_while_it_lives() -> None:
    """Not quiet for too long: it is let go on to its end before the trial is judged."""
    sim = Sim(
        experiment(cell(at=("charge.before",), method=Method.FREEZE), limits=replace(LIMITS, inconclusive_retries=0))
    )
    observe = sim.substrate.observe

    async def observed(attempts: Sequence[AttemptId]) -> object:
        sim.target.in_flight = int(bool(sim.substrate.stopped))
        return await observe(attempts)

    sim.substrate.observe = observed  # type: ignore[assignment,method-assign]
    record = only_trial(sim)
    assert sim.substrate.stopped
    assert all(seen.end is not None for seen in sim.substrate.seen.values())
    assert record.judgement is not None
    assert not record.judgement.conclusive


def test_a_frozen_attempts_time_to_live_counts_from_its_release() -> None:
    """A zombie older than attemptSeconds goes on when it is let go; it is not killed for its age."""
    sim = Sim(experiment(cell(at=("charge.before",), method=Method.FREEZE)))
    release, observe = sim.substrate.release, sim.substrate.observe

    async def late(attempt: AttemptId) -> None:
        sim.clock.ms += LIMITS.attempt_seconds * 2000
        sim.substrate.slow.add(attempt)

    async def observed(attempts: Sequence[AttemptId]) -> object:
        seen = await observe(attempts)
        for attempt in list(sim.substrate.slow):
            sim.substrate.slow.discard(attempt)
            await release(attempt)
        return seen

    sim.substrate.release = late  # type: ignore[method-assign]
    sim.substrate.observe = observed  # type: ignore[assignment,method-assign]
    record = only_trial(sim)
    assert record.evidence.attempts[0].end is not None
    assert record.evidence.attempts[0].end.reason is EndReason.EXITED


def test_a_pod_that_somebody_else_deleted_is_not_our_kill() -> None:
    sim = Sim(
        experiment(cell(at=("charge.after",), method=Method.DELETE_POD), limits=replace(LIMITS, inconclusive_retries=0))
    )
    observe = sim.substrate.observe

    async def deleted(attempts: Sequence[AttemptId]) -> object:
        for attempt in sim.substrate.stopped:
            if sim.substrate.seen[attempt].end is None:
                await sim.substrate.kill(attempt, Method.DELETE_POD)
        return await observe(attempts)

    sim.substrate.observe = deleted  # type: ignore[assignment,method-assign]
    record = only_trial(sim)
    assert record.judgement is not None
    assert record.judgement.verdict is Verdict.INCONCLUSIVE
    assert record.judgement.findings[0].cause is Cause.INFRASTRUCTURE
    assert record.judgement.kills_confirmed == 0


@pytest.mark.parametrize("method", [Method.DELETE_POD, Method.EVICT])
def test_a_parked_attempt_that_its_deadline_killed_instead_proves_nothing(method: Method) -> None:
    """As where a disruption budget lets no eviction through."""
    sim = Sim(experiment(cell(key="stable", at=("charge.after",), method=method)))
    kill = sim.substrate.kill

    async def refused(attempt: AttemptId, how: Method) -> None:
        if how is not method:
            await kill(attempt, how)

    sim.substrate.kill = refused  # type: ignore[assignment,method-assign]
    record = only_trial(sim)
    assert record.evidence.attempts[0].end is not None
    assert record.evidence.attempts[0].end.reason is EndReason.TIMED_OUT
    assert record.judgement is not None
    assert (record.judgement.verdict, record.judgement.kills_confirmed) == (Verdict.INCONCLUSIVE, 0)
