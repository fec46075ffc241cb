"""The experiments of a namespace in memory, with an operator that does as it is told, and time that passes at once."""

from __future__ import annotations

import asyncio
import copy
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from killpoint.api.load import load
from killpoint.api.v1alpha1.spec import CrashExperiment
from killpoint.cli.cluster.follow import Time
from killpoint.cli.cluster.target import Target
from killpoint.cli.progress import Count
from killpoint.controller.statuses import status_document
from killpoint.core.summarize import summarize
from killpoint.journal.archive import archive_of, digest_of, encode_archive
from killpoint.model.summary import Provenance
from killpoint.ports import SubstrateUnavailableError
from tests.unit.engine.world import Sim, cell, experiment

LOCATION = "/api/v1/namespaces/killpoint/services/http:killpoint-operator:evidence/proxy/v1/experiments/team/x/evidence"
PROVENANCE = Provenance(
    killpoint="0",
    substrate="memory",
    seed=1,
    started_ms=0,
    ended_ms=1,
    versions=(),
    platform=(),
    command="",
    replay="killpoint replay x",
)
TEXT = """\
apiVersion: killpoint.dev/v1alpha1
kind: CrashExperiment
metadata: {name: crash-table}
spec:
  matrix: {setup: [langgraph], kill: [{at: [charge.after]}]}
  trials: 2
"""


def document(text: str = TEXT) -> CrashExperiment:
    return load(text)


@dataclass(slots=True)
class Clock:
    """Time that passes as soon as somebody sleeps."""

    seconds: float = 0.0

    @property
    def time(self) -> Time:
        return Time(now=lambda: self.seconds, sleep=self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.seconds += seconds
        await asyncio.sleep(0)


@dataclass(slots=True)
class Seen:
    """What was shown."""

    lines: list[str] = field(default_factory=list)
    counts: list[Count] = field(default_factory=list)

    def prepare(self, text: str) -> None:
        self.lines.append(text)

    def trials(self, count: Count) -> None:
        self.counts.append(count)


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that is over: the status of its end, and its evidence."""

    status: Mapping[str, Any]
    evidence: bytes

    @classmethod
    async def of(cls, key: str = "none") -> Finished:
        """``none``: a duplicate that is not expected. ``stable``: as expected."""
        sim = Sim(experiment(cell(key=key, at=("charge.after",))))
        run = (await asyncio.to_thread(sim.run)).run()
        evidence = encode_archive(
            archive_of(run, document=document().model_dump(mode="json", by_alias=True), provenance=PROVENANCE)
        )
        status = status_document(summarize(run, PROVENANCE), generation=1)
        report = {"location": LOCATION, "sha256": digest_of(evidence)}
        return cls({**status, "report": report}, evidence)


def standing(reason: str, *, judged: int = 0, planned: int = 4, message: str = "", stalled: bool = False) -> Any:  # noqa: ANN401 - a document
    """A status on the way."""
    told = "Stalled" if stalled else "Reconciling"
    return {
        "phase": "Running",
        "progress": f"{judged}/{planned}",
        "trials": {"judged": judged, "planned": planned, "retries": 0},
        "kills": {"planned": planned, "confirmed": judged},
        "conditions": [
            {"type": "Accepted", "status": "True", "reason": "Valid"},
            {"type": "Complete", "status": "False", "reason": reason},
            {"type": told, "status": "True", "reason": reason, "message": message},
        ],
    }


class Memory:
    """``statuses``: what each look at the experiment finds, one after the other; the last one stays. None: no status.

    An exception among them is raised instead. Once it is told to abort, an operator, if there is one, does so.
    """

    namespace = "team"

    def __init__(self, statuses: Sequence[Any] = (), *, evidence: bytes = b"") -> None:
        self._statuses = list(statuses)
        self._uids = itertools.count(1)
        self.evidence = evidence
        self.known = True
        self.object: dict[str, Any] | None = None
        self.applied: list[Mapping[str, Any]] = []
        self.aborted = False
        self.operator = True
        self.stays = 0
        """How many looks a deleted object outlasts."""
        self.on_get: Callable[[], None] = lambda: None

    def command(self, *words: str) -> str:
        return Target(namespace=self.namespace).command(*words)

    def store(self, fields: Mapping[str, Any], status: Mapping[str, Any] | None = None) -> None:
        self.object = copy.deepcopy(dict(fields))
        self.object["metadata"]["uid"] = f"uid-{next(self._uids)}"
        if status is not None:
            self.object["status"] = dict(status)

    async def is_known(self) -> bool:
        return self.known

    async def get(self, name: str) -> Mapping[str, Any] | None:
        self.on_get()
        await asyncio.sleep(0)
        if self.object is None or self.object["metadata"]["name"] != name:
            return None
        if self.object["metadata"].get("deletionTimestamp"):
            self.stays -= 1
            if self.stays < 0:
                self.object = None
                return None
        elif self.applied:
            self._advance()
        return copy.deepcopy(self.object)

    def _advance(self) -> None:
        assert self.object is not None
        if self.aborted and self.operator:
            self.object["status"] = {"conditions": [{"type": "Complete", "status": "True", "reason": "Aborted"}]}
            return
        if not self._statuses:
            return
        status = self._statuses.pop(0) if len(self._statuses) > 1 else self._statuses[0]
        if isinstance(status, Exception):
            raise status
        self.object.pop("status", None)
        if status is not None:
            self.object["status"] = status

    async def list(self) -> Sequence[Mapping[str, Any]]:
        return [] if self.object is None else [self.object]

    async def apply(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        await asyncio.sleep(0)
        self.applied.append(document)
        if self.object is None:
            self.store(document)
        assert self.object is not None
        return copy.deepcopy(self.object)

    async def abort(self, name: str, uid: str) -> None:
        assert self.object is not None
        assert (name, uid) == (self.object["metadata"]["name"], self.object["metadata"]["uid"])
        self.aborted = True

    async def delete(self, name: str, uid: str) -> None:
        assert self.object is not None
        assert (name, uid) == (self.object["metadata"]["name"], self.object["metadata"]["uid"])
        self.object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    async def read(self, location: str) -> bytes:
        assert location == LOCATION
        return self.evidence


AWAY = SubstrateUnavailableError("the API server does not answer GET /apis: TimeoutError")
