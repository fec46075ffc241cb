"""Supervision: what is done about what goes wrong with one experiment, so that the others never notice. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from killpoint.api.conditions import Standing
from killpoint.api.problems import ProblemsError
from killpoint.controller.statuses import Verdictless
from killpoint.core.state import JournalLostError
from killpoint.databases.errors import DatabaseError
from killpoint.journal.codec import CodecError
from killpoint.journal.postgres import OtherSpecificationError
from killpoint.ports import JournalUnavailableError, LedgerUnavailableError, SubstrateUnavailableError

TRIES_MAX = 5
"""How often an experiment may fail unexpectedly, without getting on in between, before it is given up."""
BACKOFF_SECONDS = (1.0, 2.0, 5.0, 10.0, 15.0)
"""After one failure, two in a row, and so on; the last one for all further ones."""
TOLD_AFTER = 2
"""How many tries in a row find something away until people are told: what is back at once is nobody's concern."""
STALLED_SECONDS = 60.0
"""How long a service may be away until the experiment is called stalled."""

AWAY = (DatabaseError, JournalUnavailableError, LedgerUnavailableError, SubstrateUnavailableError)
"""Something that experiments need does not answer. They wait for it, for as long as it takes."""
TERMINAL = (ProblemsError, JournalLostError, OtherSpecificationError, CodecError)
"""Nothing that comes later can mend it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What has gone wrong with an experiment since it last got on."""

    failures: int = 0
    sequence: int = 0
    """The journal's, when it last failed."""
    away_since: float | None = None
    """Since when, by a monotonic clock, something that it needs does not answer."""
    away_times: int = 0

    def away(self, now: float) -> Trouble:
        since = now if self.away_since is None else self.away_since
        return replace(self, away_since=since, away_times=self.away_times + 1)

    def back(self) -> Trouble:
        """Everything answers."""
        return replace(self, away_since=None, away_times=0)

    def failed(self, sequence: int) -> Trouble:
        """It failed unexpectedly when the journal was at this number."""
        failures = 1 if sequence > self.sequence else self.failures + 1
        return replace(self, failures=failures, sequence=sequence)

    @property
    def is_worth_telling(self) -> bool:
        return self.away_times >= TOLD_AFTER

    @property
    def is_hopeless(self) -> bool:
        return self.failures >= TRIES_MAX

    def is_stalled(self, now: float) -> bool:
        return self.away_since is not None and now - self.away_since >= STALLED_SECONDS

    @property
    def pause_seconds(self) -> float:
        """How long to wait until the next try."""
        times = max(self.failures, self.away_times, 1)
        return BACKOFF_SECONDS[min(times, len(BACKOFF_SECONDS)) - 1]


def end_of(error: Exception) -> Verdictless:
    """The end of an experiment that cannot be run, or run on."""
    match error:
        case ProblemsError():
            return Verdictless(reason="InvalidSpec", message=str(error), accepted=False)
        case JournalLostError():
            return Verdictless(reason="JournalLost", message=str(error))
        case OtherSpecificationError():
            remedy = "It was begun under another specification, or by another version. Make the object anew."
            return Verdictless(reason="JournalLost", message=f"{error}. {remedy}")
        case CodecError():
            return Verdictless(reason="JournalLost", message=str(error))
        case _:
            return Verdictless(reason="GaveUp", message=f"given up after {TRIES_MAX} tries: {in_words(error)}")


def standing_of(error: Exception, *, stalled: bool) -> Standing:
    """Where an experiment stands while something is wrong that may pass."""
    match error:
        case DatabaseError() | JournalUnavailableError():
            reason = "DatabaseAway"
        case LedgerUnavailableError():
            reason = "PaymentsAway"
        case SubstrateUnavailableError():
            reason = "ClusterAway"
        case _:
            reason = "Failing"
    return Standing(reason=reason, message=in_words(error), stalled=stalled)


def waiting_for(waiting: Sequence[str]) -> Standing | None:
    """Where an experiment stands while attempts of it do not start; None where all do.

    Not stalled: each has its deadline, and is run again, or is the experiment's reason in the end.
    """
    if not waiting:
        return None
    more = f" ({len(waiting) - 1} more wait)" if len(waiting) > 1 else ""
    return Standing(reason="PodsWaiting", message=f"{waiting[0]}{more}")


def in_words(error: Exception) -> str:
    """An error for people: ours say what to do, others are named with their class."""
    if isinstance(error, AWAY + TERMINAL):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
