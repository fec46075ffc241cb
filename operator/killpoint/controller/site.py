"""Site: what the daemon of an experiment works with, as protocols. ``composition`` has the real ones."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Protocol

from killpoint.api.v1alpha1.spec import CrashExperiment
from killpoint.api.v1alpha1.status import Report
from killpoint.controller.requests import Document
from killpoint.controller.subjects import Body, Subject
from killpoint.core.summarize import summarize
from killpoint.engine import Engine
from killpoint.model.cells import AttemptId
from killpoint.model.experiment import Experiment
from killpoint.model.summary import ExperimentSummary, Provenance


class Objects(Protocol):
    """The part of the API server that statuses and Events are written to."""

    async def experiment(self, name: str) -> Document | None: ...

    async def apply_status(self, subject: Subject, status: Document, *, version: str) -> bool: ...

    async def create_event(self, event: Document) -> None: ...


class Sweepable(Protocol):
    async def sweep(self, keep: Collection[AttemptId]) -> int: ...


class Endable(Protocol):
    async def end(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What an object asks for."""

    document: CrashExperiment
    experiment: Experiment


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """An experiment that this operator runs: nobody else appends to its journal."""

    engine: Engine
    journal: Endable
    substrate: Sweepable
    provenance: Provenance

    def summary(self) -> ExperimentSummary:
        """The run as it stands."""
        return summarize(self.engine.run(thin=True), self.provenance_now())

    def provenance_now(self) -> Provenance:
        """With the times of the run."""
        state = self.engine.state
        return replace(self.provenance, started_ms=state.opened_ms or 0, ended_ms=state.ended_ms)


class Site(Protocol):
    """What there is for one experiment."""

    @property
    def objects(self) -> Objects: ...

    async def order(self, body: Body) -> Order:
        """The experiment that the object describes. Raises ProblemsError with everything that is wrong with it."""

    def session(self, order: Order, body: Body) -> AbstractAsyncContextManager[Session]:
        """Take over the journal, and all of the run that there is. Raises JournalLostError, and as adapters do."""

    async def look_at_services(self) -> None:
        """Raises LedgerUnavailableError where nothing could be judged now."""

    async def keep_evidence(self, order: Order, opened: Session) -> Report | None:
        """Keep the evidence of a run that is over; where it can be read. Raises as the journal does."""

    async def free_children(self) -> None:
        """Delete every pod and every secret of the experiment. Raises SubstrateUnavailableError."""

    async def drop_database(self, journal: str) -> None:
        """Drop the experiment's database. Never raises: what is not dropped is in the log."""
