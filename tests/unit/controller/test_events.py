"""What Events say: the last thing that `kubectl describe` prints, and the first that is read."""

from __future__ import annotations

from dataclasses import replace

from killpoint.api.conditions import Standing
from killpoint.controller.events import event_of, message_of
from killpoint.controller.statuses import Document, status_document, without_run
from killpoint.controller.subjects import Subject
from killpoint.model.findings import Result

SUBJECT = Subject(namespace="team", name="tiny", uid="u1")
BEGUN = without_run(SUBJECT, created_ms=1_796_032_805_000)


def status(result: Result | None = None, *reasons: str, standing: Standing | None = None) -> Document:
    return status_document(replace(BEGUN, result=result, reasons=reasons), generation=1, standing=standing)


def test_an_end_is_told_with_its_result_and_the_first_reason() -> None:
    assert message_of(status(Result.FAIL, "langgraph, none: lost")) == "Fail: langgraph, none: lost"


def test_the_beginning_is_told_as_progress() -> None:
    assert message_of(status()) == "0 of 0 trials judged"


def test_what_is_waited_for_is_told_in_its_words_whether_it_is_stalled_or_not() -> None:
    for stalled in (False, True):
        waits = Standing(reason="PaymentsAway", message="payments does not answer", stalled=stalled)
        assert message_of(status(standing=waits)) == "payments does not answer"


def test_a_message_is_one_line_since_kubectl_shows_no_more() -> None:
    event = event_of(SUBJECT, reason="Inconclusive", message="it ends with:\n    No module\n    named mine\n", now_ms=0)
    assert event["message"] == "it ends with: No module / named mine"
