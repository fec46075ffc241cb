"""Observations: what the world looks like now. Nothing here is remembered unless an event says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from killpoint.model.cells import AttemptId
from killpoint.model.evidence import AttemptEnd, LedgerView


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What the substrate sees of one attempt now."""

    attempt: AttemptId
    pid: int | None = None
    started_ms: int | None = None
    parked_at: str | None = None
    """The point at which it waits to be killed or released."""
    lines: int = 0
    """Lines in its termination log so far, the header included."""
    waits: str | None = None
    """What its start waits for, in words; None where it has started."""
    refused: bool = False
    """Whether a first try to start it has failed already: what it waits for is no matter of a moment."""
    end: AttemptEnd | None = None
    """None while it lives."""
    made: bool = True
    """False: there is no process and no pod, only this process's word that it was refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What one pass sees. What could not be asked for is absent, never zero."""

    now_ms: int
    attempts: Mapping[AttemptId, Observation] = field(default_factory=lambda: MappingProxyType({}))
    ledgers: Mapping[str, LedgerView] = field(default_factory=lambda: MappingProxyType({}))
    """Run → what payments shows of it, for the trials that wait for quiet."""
    ledger_fault: str | None = None
    sessions: Mapping[AttemptId, int] = field(default_factory=lambda: MappingProxyType({}))
    """Attempt → database sessions that the server still holds for it."""
