"""The status is written once for each change, on the very object, by nobody else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from killpoint.controller.statuses import QUEUED, status_document, without_run
from killpoint.controller.subjects import Subject
from killpoint.controller.writer import ObjectGoneError, StatusWriter
from tests.unit.controller.fakes import FakeObjects
from tests.unit.controller.objects import UID, experiment

SUBJECT = Subject(namespace="team", name="tiny", uid=UID)
NOW_MS = 1_796_032_805_000


def document(generation: int = 1) -> dict[str, Any]:
    return status_document(without_run(SUBJECT, created_ms=NOW_MS), generation=generation, standing=QUEUED)


def writer(objects: FakeObjects, known: dict[str, Any] | None = None) -> StatusWriter:
    return StatusWriter(objects, SUBJECT, known=known, now_ms=lambda: NOW_MS)


def test_the_same_status_is_written_once() -> None:
    objects = FakeObjects(experiment())

    async def twice() -> list[bool]:
        one = writer(objects)
        return [await one.write(document()), await one.write(document())]

    assert asyncio.run(twice()) == [True, False]
    assert len(objects.written) == 1


def test_a_status_that_is_there_already_is_not_written() -> None:
    """Another operator, after a restart: it finds what the first one wrote."""
    objects = FakeObjects(experiment())
    asyncio.run(writer(objects).write(document()))
    assert not asyncio.run(writer(objects).write(document()))
    assert len(objects.written) == 1


def test_a_conflict_is_met_with_the_object_as_it_is_then() -> None:
    objects = FakeObjects(experiment(), conflicts=2)
    assert asyncio.run(writer(objects).write(document()))
    assert objects.object is not None
    assert objects.object["status"] == document()


@pytest.mark.parametrize("there", [None, {**experiment(), "metadata": {**experiment()["metadata"], "uid": "another"}}])
def test_nothing_is_written_on_another_object_of_the_name(there: dict[str, Any] | None) -> None:
    objects = FakeObjects(there)
    with pytest.raises(ObjectGoneError):
        asyncio.run(writer(objects).write(document()))
    assert objects.written == []


def test_writes_are_apart_but_for_the_last_one() -> None:
    objects = FakeObjects(experiment())

    async def due() -> tuple[bool, bool]:
        one = writer(objects)
        before = one.is_due
        await one.write(document())
        return before, one.is_due

    assert asyncio.run(due()) == (True, False)


def test_the_last_status_is_there_when_it_returns() -> None:
    objects = FakeObjects(experiment(), conflicts=6)
    asyncio.run(writer(objects).write_last(document(generation=4)))
    assert objects.object is not None
    assert objects.object["status"]["observedGeneration"] == 4
