"""What the operator reads in an object, whatever the object holds."""

from __future__ import annotations

from typing import Any

import pytest

from killpoint.controller.handlers import goes_unfinished, is_unfinished
from killpoint.controller.subjects import (
    Due,
    due,
    duration,
    is_finished,
    is_stale,
    journal_of,
    keeps_children,
    recorded_journal,
    seconds_of,
    stamped,
)
from tests.unit.controller.objects import experiment, status

ENDED = 1796032805.0
"""2026-11-30T10:00:05Z"""


def leaving(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "metadata": {**body["metadata"], "deletionTimestamp": "2026-11-30T11:00:00Z"}}


def edited(body: dict[str, Any], generation: int) -> dict[str, Any]:
    return {**body, "metadata": {**body["metadata"], "generation": generation}}


def test_an_object_has_a_daemon_until_it_is_complete() -> None:
    assert is_unfinished(experiment())
    assert is_unfinished(experiment(status=status()))
    assert not is_unfinished(experiment(status=status(complete=True)))


def test_only_what_is_deleted_in_mid_run_is_let_go() -> None:
    """True of any other object it would have kopf keep a copy of the specification in an annotation."""
    running, over = experiment(status=status()), experiment(status=status(complete=True))
    assert not goes_unfinished(running)
    assert goes_unfinished(leaving(running))
    assert goes_unfinished(leaving(experiment()))
    assert not goes_unfinished(leaving(over))


@pytest.mark.parametrize(
    "rubbish",
    [
        {},
        {"conditions": None},
        {"conditions": "x"},
        {"conditions": [3]},
        {"conditions": [{}]},
        {"journalID": 4},
        "x",
        None,
    ],
)
def test_rubbish_in_a_status_surprises_nobody(rubbish: Any) -> None:  # noqa: ANN401 - anything at all
    body = {**experiment(), "status": rubbish}
    assert not is_finished(body)
    assert not is_stale(body)
    assert due(body) == Due()
    assert recorded_journal(body) is None
    assert len(journal_of(body)) == 8


def test_a_status_names_the_journal_that_counts() -> None:
    assert journal_of(experiment(status=status(journalID="0badcafe"))) == "0badcafe"
    assert journal_of(experiment()) == journal_of(experiment(status=status()))


def test_an_edit_after_the_end_makes_the_status_stale() -> None:
    over = experiment(status=status(complete=True))
    assert not is_stale(over)
    assert is_stale(edited(over, 2))
    assert not is_stale(leaving(edited(over, 2)))
    assert not is_stale(edited(experiment(status=status()), 2)), "a running one is brought up to date by its daemon"


def test_the_stamp_changes_the_generation_and_nothing_else() -> None:
    body = edited(experiment(status=status(complete=True, result="Pass", cells=[{"id": "a"}])), 5)
    after = stamped(body)
    assert after["observedGeneration"] == 5
    assert [found["observedGeneration"] for found in after["conditions"]] == [5]
    again = {**body, "status": after}
    assert not is_stale(again)
    assert {**after, "observedGeneration": 1, "conditions": body["status"]["conditions"]} == body["status"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("15m", 900),
        ("2h", 7200),
        ("7d", 604_800),
        ("", None),
        ("5", None),
        ("m", None),
        (None, None),
        (3, None),
    ],
)
def test_durations(text: object, seconds: int | None) -> None:
    assert duration(text) == seconds


def test_retention_counts_from_the_end() -> None:
    body = experiment(status=status(complete=True), retention={"childrenAfter": "1m", "experimentAfter": "1h"})
    assert due(body) == Due(children=ENDED + 60, experiment=ENDED + 3600)
    assert due(leaving(body)) == Due()
    assert due(experiment(status=status(), retention={"experimentAfter": "1h"})) == Due()
    assert due(experiment(status=status(complete=True))) == Due(), "nothing goes unless it is asked for"


def test_children_go_at_the_end_unless_they_are_to_stay() -> None:
    assert keeps_children(experiment(retention={"childrenAfter": "1m"}))
    assert not keeps_children(experiment(retention={"experimentAfter": "1m"}))
    assert not keeps_children(experiment())


def test_a_time_that_is_none_is_none() -> None:
    assert seconds_of("2026-11-30T10:00:05Z") == ENDED
    assert seconds_of("soon") is None
    assert seconds_of(None) is None
