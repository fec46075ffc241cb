"""The part of an API server that statuses and Events are written to, in memory."""

from __future__ import annotations

import copy
from typing import Any

from killpoint.controller.requests import Document
from killpoint.controller.subjects import Subject
from killpoint.ports import SubstrateUnavailableError


class FakeObjects:
    """One object, or none."""

    def __init__(self, body: dict[str, Any] | None, *, conflicts: int = 0) -> None:
        self.object = copy.deepcopy(body)
        self.conflicts = conflicts
        self.written: list[dict[str, Any]] = []
        self.events: list[Document] = []
        self.away = False

    async def experiment(self, name: str) -> Document | None:
        self._answer()
        assert self.object is None or self.object["metadata"]["name"] == name
        return copy.deepcopy(self.object)

    async def apply_status(self, subject: Subject, status: Document, *, version: str) -> bool:
        self._answer()
        if self.object is None or self.object["metadata"]["uid"] != subject.uid:
            return False
        if self.conflicts or version != self.object["metadata"]["resourceVersion"]:
            self.conflicts -= 1
            self._touch()
            return False
        self.object["status"] = copy.deepcopy(dict(status))
        self._touch()
        self.written.append(self.object["status"])
        return True

    async def create_event(self, event: Document) -> None:
        self._answer()
        self.events.append(event)

    def _touch(self) -> None:
        assert self.object is not None
        metadata = self.object["metadata"]
        metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)

    def _answer(self) -> None:
        if self.away:
            raise SubstrateUnavailableError("the API server does not answer")
