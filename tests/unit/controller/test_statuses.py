"""The statuses that do not come from a look at the run, and the times of conditions."""

from __future__ import annotations

from dataclasses import replace

from killpoint.api.conditions import Standing
from killpoint.controller.statuses import (
    NOTHING,
    QUEUED,
    Verdictless,
    carried,
    command_for,
    ended_by,
    status_document,
    told,
    with_times,
    without_run,
)
from killpoint.controller.subjects import Subject
from killpoint.model.findings import Result

SUBJECT = Subject(namespace="team", name="tiny", uid="u1")
NOW_MS = 1_796_032_805_000
AWAY = Standing(reason="PaymentsAway", message="payments does not answer", stalled=True)


def conditions(document: dict[str, object]) -> dict[str, tuple[str, str]]:
    found = document["conditions"]
    assert isinstance(found, list)
    return {entry["type"]: (entry["status"], entry["reason"]) for entry in found}


def test_a_refused_experiment_says_what_is_wrong_with_it_and_is_complete() -> None:
    refused = Verdictless(reason="InvalidSpec", message="spec.trials: too many", accepted=False)
    summary = ended_by(refused, without_run(SUBJECT, created_ms=NOW_MS), now_ms=NOW_MS)
    document = status_document(summary, generation=3, standing=refused.standing)
    assert (document["phase"], document["result"], document["observedGeneration"]) == ("Complete", "Error", 3)
    assert document["reasons"] == ["spec.trials: too many"]
    assert "journalID" not in document
    said = conditions(document)
    assert said["Accepted"] == ("False", "InvalidSpec")
    assert said["Complete"] == ("True", "InvalidSpec")
    assert said["FaultConfirmed"][0] == "Unknown", "that none of no kills is missing says nothing"


def test_an_experiment_that_waits_for_others_is_pending() -> None:
    document = status_document(without_run(SUBJECT, created_ms=NOW_MS), generation=1, standing=QUEUED)
    assert document["phase"] == "Pending"
    assert told(document)[0] == "Queued"


def test_what_is_known_of_the_run_stays_while_it_cannot_be_looked_at() -> None:
    """An operator that starts while its database is away must not tell people that nothing was run."""
    before = {"phase": "Running", "progress": "3/9", "journalID": "0badcafe", "kills": {"planned": 6, "confirmed": 2}}
    document = status_document(without_run(SUBJECT, created_ms=NOW_MS), generation=1, standing=AWAY)
    after = carried(document, before)
    assert {name: after[name] for name in before} == before
    assert conditions(after)["Stalled"] == ("True", "PaymentsAway")


def test_an_end_is_an_end_whatever_was_known() -> None:
    lost = Verdictless(reason="JournalLost", message="it is empty")
    summary = ended_by(lost, without_run(SUBJECT, created_ms=NOW_MS), now_ms=NOW_MS)
    assert summary.result is Result.ERROR
    after = carried(
        status_document(summary, generation=1, standing=lost.standing), {"phase": "Running", "progress": "3/9"}
    )
    assert (after["phase"], after["progress"], after["result"]) == ("Complete", "3/9", "Error")


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    first = status_document(without_run(SUBJECT, created_ms=NOW_MS), generation=1, standing=QUEUED)
    later = with_times(
        status_document(without_run(SUBJECT, created_ms=NOW_MS + 9000), generation=1, standing=AWAY),
        first,
        now_ms=NOW_MS + 60_000,
    )
    times = {found["type"]: found["lastTransitionTime"] for found in later["conditions"]}
    assert times["Complete"] == "2026-11-30T10:00:05Z", "another reason is no transition"
    assert times["Stalled"] == "2026-11-30T10:01:05Z"
    assert with_times(first, None, now_ms=0) == first


def test_what_was_counted_before_is_still_said_of_one_that_waits_for_its_turn() -> None:
    run = replace(without_run(SUBJECT, created_ms=NOW_MS), totals=replace(NOTHING, trials=9, judged=3, kills_planned=6))
    before = status_document(run, generation=1)
    queued = status_document(without_run(SUBJECT, created_ms=NOW_MS), generation=1, standing=QUEUED)
    after = carried(queued, before)
    said = {found["type"]: found["message"] for found in after["conditions"]}
    assert told(after) == ("Queued", "3 of 9 trials judged")
    assert said["FaultConfirmed"] == "0 of 6 kills confirmed"
    assert said["Reconciling"] == QUEUED.message


def test_running_it_again_leaves_what_was_found_where_it_is() -> None:
    command = command_for(SUBJECT)
    assert "kubectl create" in command
    assert "name: tiny-again" in command
    assert "replace" not in command
