"""The codec: whatever is written is read back the same, and what is not understood is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from killpoint.core.judge import judge
from killpoint.journal.codec import CodecError, decode, encode
from killpoint.model.cells import Method
from killpoint.model.events import (
    AttemptEnded,
    AttemptIntended,
    AttemptKillIntended,
    AttemptLaunched,
    AttemptParked,
    AttemptReleased,
    Event,
    LedgerRead,
    PointChecked,
    RunContinued,
    RunEnded,
    RunOpened,
    RunSuspended,
    ServicesSeen,
    TrialJudged,
)
from killpoint.model.findings import Result
from tests.unit.core.strategies import POINTS, TRIAL, WORDS, attempt_id, checks, ends, evidences, ledgers

ATTEMPT = st.just(attempt_id(2))
events = st.one_of(
    st.builds(RunOpened, experiment=WORDS, spec_digest=WORDS, seed=st.integers(0, 2**31)),
    st.builds(ServicesSeen, database=WORDS, payments=WORDS),
    st.builds(
        AttemptIntended,
        attempt=ATTEMPT,
        run=WORDS,
        action=st.sampled_from(["start", "resume", "inspect"]),
        scheduled=st.none() | st.sampled_from(POINTS),
        nonce=WORDS,
        method=st.sampled_from(Method),
    ),
    st.builds(AttemptLaunched, attempt=ATTEMPT),
    st.builds(AttemptParked, attempt=ATTEMPT, point=st.sampled_from(POINTS)),
    st.builds(AttemptReleased, attempt=ATTEMPT),
    st.builds(AttemptKillIntended, attempt=ATTEMPT, reason=WORDS, scheduled=st.booleans()),
    st.builds(AttemptEnded, attempt=ATTEMPT, end=ends),
    st.builds(PointChecked, attempt=ATTEMPT, check=checks),
    st.builds(LedgerRead, trial=st.just(TRIAL), view=st.none() | ledgers, fault=st.none() | WORDS),
    st.builds(TrialJudged, trial=st.just(TRIAL), judgement=evidences().map(judge)),
    st.builds(RunSuspended),
    st.builds(RunContinued),
    st.builds(RunEnded, result=st.sampled_from(Result), aborted=st.booleans()),
)


@given(events)
def test_an_event_survives_being_written(event: Event) -> None:
    kind, document = encode(event)
    assert decode(kind, json.dumps(json.loads(document))) == event


@pytest.mark.parametrize(
    ("kind", "document", "words"),
    [
        ("AttemptExploded", "{}", "written by another version"),
        ("AttemptLaunched", "{}", "cannot be read"),
        ("AttemptLaunched", "nonsense", "cannot be read"),
        ("RunEnded", '{"result": "Splendid"}', "cannot be read"),
    ],
)
def test_what_is_not_understood_is_refused(kind: str, document: str, words: str) -> None:
    with pytest.raises(CodecError, match=words):
        decode(kind, document)
