"""The harness's side of the worker contract: what it makes of a termination log."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from killpoint.core.contract import Reading, read_termination
from killpoint.model.evidence import OutcomeWord

HEADER = '{"killpoint":1,"attempt":"a.1.1","nonce":"n"}\n'


def read(text: str) -> Reading:
    return read_termination(text, attempt="a.1.1", nonce="n")


def test_points_and_the_outcome_are_read() -> None:
    reading = read(
        HEADER
        + '{"point":"charge.after","n":2,"t":5}\n'
        + '{"outcome":"finished","resumedFrom":"c1","claims":[{"action":"charge","order":"o","effect":"ch_1"}]}\n'
    )
    assert reading.fault is None
    assert [passed.spec for passed in reading.points] == ["charge.after#2"]
    assert reading.outcome is not None
    assert reading.outcome.word is OutcomeWord.FINISHED
    assert reading.outcome.claims is not None
    assert reading.outcome.claims[0].effect == "ch_1"


def test_folded_passings_are_counted() -> None:
    reading = read(HEADER + '{"point":"loop.after","n":40,"folded":38}\n')
    assert reading.points_left_out == 38
    assert reading.points[-1].occurrence == 40


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello\n", "not JSON"),
        ("[1]\n", "not a JSON object"),
        ('{"point":"charge.after"}\n', "first line must be the header"),
        ('{"killpoint":1,"attempt":"b.1.1","nonce":"n"}\n', "another attempt's header"),
        ('{"killpoint":1,"attempt":"a.1.1","nonce":"stolen"}\n', "another attempt's header"),
        ('{"killpoint":2,"attempt":"a.1.1","nonce":"n"}\n', "this harness speaks 1"),
        (HEADER + HEADER, "a second header"),
        (HEADER + '{"outcome":"splendid"}\n', "unknown outcome"),
        (HEADER + '{"outcome":"finished"}\n{"point":"x.after"}\n', "after the outcome"),
        (HEADER + '{"point":5}\n', "point must be a text"),
        (HEADER + '{"point":"x.after","n":"2"}\n', "n must be a whole number"),
        (HEADER + '{"outcome":"failed","error":"boom"}\n', "error must be an object"),
        (HEADER + '{"outcome":"inspected","recorded":{"charge":"yes"}}\n', "recorded must map"),
        (HEADER + '{"hello":1}\n', "neither header, point nor outcome"),
        (HEADER + '{"point":"somewhere"}\n', "'somewhere' is no point"),
        (HEADER + '{"point":"charge.after#2"}\n', "is no point"),
        (HEADER + '{"point":"x.after","n":1' + "0" * 30 + "}\n", "n must be a whole number"),
        (HEADER + '{"outcome":"finished","timings":{"run":NaN}}\n', "no time that anything took"),
        (HEADER + '{"outcome":"finished","timings":{"run":1e999}}\n', "no time that anything took"),
    ],
)
def test_rubbish_is_a_fault_that_names_the_line(text: str, words: str) -> None:
    fault = read(text).fault
    assert fault is not None
    assert words in fault
    assert fault.startswith("line ")


def test_what_was_readable_before_the_rubbish_is_kept() -> None:
    reading = read(HEADER + '{"point":"charge.before"}\nrubbish\n')
    assert [passed.point for passed in reading.points] == ["charge.before"]
    assert reading.fault is not None


@pytest.mark.parametrize(("spelled", "kept"), [("\\u0000", "a\N{REPLACEMENT CHARACTER}b"), ("\\ud800", "a?b")])
def test_what_no_database_holds_is_replaced(spelled: str, kept: str) -> None:
    """JSON can spell it, and an error's message is worth keeping without it."""
    outcome = read(HEADER + '{"outcome":"failed","error":{"class":"E","message":"a' + spelled + 'b"}}\n').outcome
    assert outcome is not None
    assert outcome.error_message == kept


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("token kp1.eyJlIjoieCJ9.c2lnbmF0dXJl refused", "token kp1.… refused"),
        ("postgresql://me:s3cr3t@db:5432/x is away", "postgresql://me:…@db:5432/x is away"),
        ("host=db user=me password=s3cr3t dbname=x", "host=db user=me password=… dbname=x"),
        ("PGPASSWORD=s3cr3t is set", "PGPASSWORD=… is set"),
        ("{'password': 's3cr3t', 'user': 'me'}", "{'password': … 'user': 'me'}"),
        ("http://127.0.0.1:80/v1/charges answers 500", "http://127.0.0.1:80/v1/charges answers 500"),
    ],
)
def test_what_a_worker_says_of_its_secrets_is_not_kept(said: str, kept: str) -> None:
    reading = read(HEADER + json.dumps({"outcome": "failed", "error": {"class": "E", "message": said}}) + "\n")
    assert reading.outcome is not None
    assert reading.outcome.error_message == kept
    rubbish = read(HEADER + said + "\n").fault
    assert rubbish is not None
    assert "s3cr3t" not in rubbish
    assert "c2lnbmF0dXJl" not in rubbish


def test_a_log_longer_than_a_kubelet_keeps_lacks_its_header() -> None:
    """What a cluster would cut is cut here as well, so that both say the same."""
    assert read(HEADER + '{"point":"charge.before"}\n' * 400).fault is not None


@given(st.text(max_size=300) | st.binary(max_size=300).map(lambda raw: raw.decode("latin-1")))
def test_it_never_raises_and_never_invents_an_outcome(text: str) -> None:
    reading = read(text)
    assert reading.outcome is None or reading.header


@given(
    st.dictionaries(
        st.text(max_size=8),
        st.integers() | st.text(max_size=8) | st.none() | st.lists(st.integers(), max_size=2),
        max_size=5,
    )
)
def test_any_object_after_the_header_is_read_or_faulted(line: dict[str, object]) -> None:
    reading = read(HEADER + json.dumps(line) + "\n")
    assert reading.header
    assert reading.fault is not None or reading.points or reading.outcome
