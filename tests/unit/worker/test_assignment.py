from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from killpoint_worker import Assignment, AssignmentError, Environment, Order, Scheduled

DOCUMENT: dict[str, Any] = {
    "contract": 1,
    "experiment": "crash-table",
    "trial": "7f31e2c0.3",
    "run": "run-7f31e2c0-3",
    "tenant": "tests",
    "attempt": "7f31e2c0.3.1",
    "number": 1,
    "nonce": "c2f5b1a0",
    "action": "resume",
    "workflow": {"name": "charge", "versions": {"graph": "2"}},
    "coordinates": {
        "setup": "langgraph",
        "store": "volume",
        "key": "fresh",
        "resume": "continue",
        "parameters": {"durability": "sync"},
    },
    "job": {"orders": [{"id": "order-1", "amount": 4900, "currency": "EUR"}]},
    "schedule": [{"point": "charge.after", "occurrence": 2, "do": "die"}],
}


def read(**changes: object) -> Assignment:
    return Assignment.from_json(json.dumps({**DOCUMENT, **changes}))


def test_every_part_of_the_document_is_read() -> None:
    assignment = read()
    assert assignment.run == "run-7f31e2c0-3"
    assert assignment.workflow.versions.graph == "2"
    assert assignment.workflow.versions.state == "1"
    assert assignment.coordinates.parameters == {"durability": "sync"}
    assert assignment.job.orders == (Order(id="order-1", amount=4900, currency="EUR"),)
    assert assignment.schedule == (Scheduled(point="charge.after", occurrence=2, do="die"),)


def test_only_a_resume_by_the_frameworks_own_means_continues() -> None:
    assert read().continues
    assert not read(action="start").continues
    assert not read(coordinates={**DOCUMENT["coordinates"], "resume": "resend"}).continues


def test_fields_of_a_later_writer_are_ignored() -> None:
    assert read(later={"field": 1}) == read()


def test_a_schedule_and_a_job_may_be_absent() -> None:
    document = {name: value for name, value in DOCUMENT.items() if name not in {"schedule", "job"}}
    assignment = Assignment.from_json(json.dumps(document))
    assert assignment.schedule == ()
    assert assignment.job.orders == ()


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"contract": 2}, "contract is 2"),
        ({"contract": True}, "assignment.contract"),
        ({"run": 3}, "assignment.run"),
        ({"number": "1"}, "assignment.number"),
        ({"action": "stop"}, "assignment.action"),
        ({"workflow": []}, "assignment.workflow"),
        ({"coordinates": {}}, "assignment.coordinates.setup"),
        ({"coordinates": {"setup": "x", "parameters": {"durability": 1}}}, "parameters.durability"),
        ({"job": {"orders": [{"id": "order-1", "amount": True, "currency": "EUR"}]}}, r"job.orders\[0\].amount"),
        ({"schedule": [{"point": "charge.after", "do": "explode"}]}, r"schedule\[0\].do"),
        ({"schedule": ["charge.after"]}, r"schedule\[0\]"),
    ],
)
def test_a_complaint_names_the_place(changes: dict[str, object], place: str) -> None:
    with pytest.raises(AssignmentError, match=place):
        read(**changes)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null"])
def test_what_is_no_document_is_refused(text: str) -> None:
    with pytest.raises(AssignmentError):
        Assignment.from_json(text)


def test_a_missing_variable_says_who_starts_workers() -> None:
    with pytest.raises(AssignmentError, match="KILLPOINT_ASSIGNMENT is not set"):
        Assignment.from_environment({})


def test_an_empty_address_counts_as_unset() -> None:
    environment = Environment.from_environment({"KILLPOINT_DATABASE_URL": "", "KILLPOINT_VOLUME": "/data"})
    assert environment.database_url is None
    assert environment.volume == Path("/data")
    assert environment.termination_log == Path("/dev/termination-log")


def test_secrets_are_not_shown() -> None:
    environment = Environment.from_environment(
        {"KILLPOINT_TOKEN": "secret-token", "KILLPOINT_DATABASE_URL": "postgresql://u:secret@h/d"}
    )
    assert "secret" not in repr(environment)
