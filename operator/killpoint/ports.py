"""Ports: what the engine needs from the world, as protocols. Adapters are chosen by the CLI and the operator.

Every call is bounded in time by its adapter and can be made twice with the same meaning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from killpoint.model.cells import AttemptId, Method
from killpoint.model.events import Event, Recorded
from killpoint.model.evidence import LedgerView
from killpoint.model.observations import Observation


class Impediment(Exception):
    """Something keeps an experiment from being run. ``str()`` is for people: what, the details, and the remedy."""

    def __init__(self, what: str, *, remedy: str, detail: str = "") -> None:
        super().__init__("\n".join(part for part in (what, detail, remedy) if part))
        self.what = what
        self.detail = detail
        self.remedy = remedy


class LedgerUnavailableError(Exception):
    """Payments, or its database, does not answer now. Says what was tried."""


class JournalUnavailableError(Exception):
    """The journal's database does not answer now; nothing was lost, the pass is made again."""


class SubstrateUnavailableError(Exception):
    """Where attempts run (the API server of a cluster) cannot be asked now; the pass is made again."""


class FencedError(Exception):
    """Another engine has taken over this run; this one must stop and act no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One worker process to be started: the assignment, and where it runs."""

    attempt: AttemptId
    run: str
    setup: str
    store: str
    assignment: Mapping[str, object]
    """The KILLPOINT_ASSIGNMENT document of the worker contract, nonce included."""
    token: str = field(repr=False)


class Substrate(Protocol):
    """Where attempts run: local processes, or pods."""

    async def launch(self, launch: Launch) -> bool:
        """Start an attempt. A second call for the same attempt is a success that starts nothing.

        Whether there is something of it that outlives this process. False: it was refused, and is known to this
        process alone; another one asks for it anew.

        An attempt that cannot be started is observed as ended, ``not-started``, with the reason; it never raises
        for that. Raises SubstrateUnavailableError, as every method here, when nobody can be asked.
        """

    async def kill(self, attempt: AttemptId, method: Method) -> None:
        """End an attempt from outside: a parked one as its cell demands, any other by SIGKILL at a deadline.

        Nothing to kill is a success.
        """

    async def release(self, attempt: AttemptId) -> None:
        """Let a frozen attempt go on. Doing it again is harmless."""

    async def observe(self, attempts: Sequence[AttemptId]) -> Mapping[AttemptId, Observation]:
        """What is known of each of these attempts. One that the substrate has never heard of is absent.

        An attempt that this or an earlier process of the harness started, and whose end nobody saw, is observed as
        ended, ``vanished``, and only when its process is certainly dead.
        """

    async def sessions(self, attempts: Sequence[AttemptId]) -> Mapping[AttemptId, int]:
        """How many database sessions of these attempts the server still holds.

        An attempt that is absent from the answer could not be asked for: that is not zero.
        """

    async def clean_up(self, attempts: Sequence[AttemptId]) -> None:
        """Free what these finished attempts hold. Doing it again is harmless."""


class Ledger(Protocol):
    """The payments service's own account, read-only."""

    async def incarnation(self) -> str:
        """Which start of the payments service answers. Raises LedgerUnavailableError."""

    async def view(self, runs: Sequence[str]) -> Mapping[str, LedgerView]:
        """What the ledger shows of each run. Raises LedgerUnavailableError; never answers for a run it did not read."""


SESSION = ", session "
"""In a journal's incarnation: between the start of its server and our own session there."""


class Journal(Protocol):
    """Append-only events of one experiment run, under this engine's epoch."""

    async def incarnation(self) -> str:
        """Which start of the database server answers and, after SESSION, in which session of ours where it tells.

        Raises JournalUnavailableError.
        """

    async def read(self, after: int) -> Sequence[Recorded]:
        """The events with a sequence number above ``after``, in order."""

    async def append(self, events: Sequence[Event]) -> Sequence[Recorded]:
        """Write events durably, all or none. Raises FencedError when another engine has taken over."""
