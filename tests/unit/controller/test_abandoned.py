"""Databases that nobody needs any more, and those that are nobody's to drop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from killpoint.controller.abandoned import Tenant, drop_abandoned
from killpoint.controller.requests import Document
from killpoint.controller.subjects import Subject
from tests.unit.controller.objects import UID, experiment, status

TENANT = Tenant.of(Subject.of(experiment()), journal="j1", installation="ours")


@dataclass
class FakeDatabases:
    held: list[str]
    dropped: list[str] = field(default_factory=list)

    async def notes(self) -> Sequence[str]:
        return self.held

    async def drop_experiment(self, journal: str) -> None:
        self.dropped.append(journal)


@dataclass
class FakeFinder:
    found: Document | None

    async def experiment(self, name: str) -> Document | None:
        assert name == "tiny"
        return self.found


def dropped(
    note: str, found: Document | None, *, namespaces: Sequence[str] = ("team",), attended: bool = False
) -> list[str]:
    databases = FakeDatabases([note])

    async def scenario() -> int:
        return await drop_abandoned(
            databases,
            lambda _: FakeFinder(found),
            installation="ours",
            namespaces=namespaces,
            is_attended=lambda uid: attended and uid == UID,
        )

    assert asyncio.run(scenario()) == len(databases.dropped)
    return databases.dropped


def another() -> Document:
    body = experiment()
    body["metadata"]["uid"] = "another"
    return body


@pytest.mark.parametrize("found", [None, another(), experiment(status=status(complete=True))])
@pytest.mark.parametrize("namespaces", [("team",), ()])
def test_the_database_of_an_experiment_that_is_gone_or_over_is_dropped(
    found: Document | None, namespaces: Sequence[str]
) -> None:
    assert dropped(TENANT.note(), found, namespaces=namespaces) == ["j1"]


@pytest.mark.parametrize("found", [experiment(), experiment(status=status())])
def test_one_that_runs_or_is_going_to_keeps_its_database(found: Document) -> None:
    assert dropped(TENANT.note(), found) == []


def test_one_that_is_just_ending_is_left_to_who_attends_it() -> None:
    assert dropped(TENANT.note(), None, attended=True) == []


@pytest.mark.parametrize(
    "note",
    [
        replace(TENANT, installation="theirs").note(),
        replace(TENANT, namespace="elsewhere").note(),
        "a database of mine",
        "[]",
        "{}",
        '{"installation": "ours"}',
    ],
)
def test_what_is_not_surely_ours_stays(note: str) -> None:
    assert dropped(note, None) == []
