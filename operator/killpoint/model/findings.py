"""Findings and verdicts: what a judgement says of a trial, and the word for the experiment."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """The word for a trial. The members stand in order, worst first; a trial's verdict is its worst finding.

    *inconclusive* stands below what the ledger alone proves (money moved twice is a fact, whatever became of
    the kill) and above all that rests on the kill having landed.
    """

    PHANTOM = "phantom"
    WRONG_PAYLOAD = "wrong-payload"
    DUPLICATE = "duplicate"
    LOST = "lost"
    DIVERGENT = "divergent"
    INCONCLUSIVE = "inconclusive"
    STRANDED = "stranded"
    WITHHELD = "withheld"
    EXACTLY_ONCE = "exactly-once"

    @property
    def severity(self) -> int:
        """Higher is worse."""
        return _SEVERITY[self]


_SEVERITY = {verdict: len(Verdict) - place for place, verdict in enumerate(Verdict)}


class Cause(StrEnum):
    """Why a trial is inconclusive."""

    NOT_REACHED = "not-reached"
    NOT_KILLED = "not-killed"
    POINT_FALSE = "point-false"
    POINT_UNKNOWN = "point-unknown"
    INFRASTRUCTURE = "infrastructure"
    """Nothing that the worker or the framework did: the trial is run again, a bounded number of times."""
    INTERRUPTED = "interrupted"
    """killpoint itself was stopped, and the attempts with it: the trial is run again, and that is no fault to count."""
    WORKER = "worker"
    LEDGER = "ledger"
    JUDGE = "judge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One judgement with its reason in words."""

    verdict: Verdict
    reason: str
    cause: Cause | None = None
    """Only for inconclusive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """All findings of a trial. Never empty: to find nothing is to find that it is inconclusive."""

    findings: tuple[Finding, ...]
    effects: tuple[tuple[str, int], ...]
    """Action → number of effects witnessed, for the ordered actions; empty where the ledger was not read."""
    kills_planned: int
    kills_confirmed: int
    outcome: str
    """The run's outcome word, or ``none`` where no attempt declared one."""

    @property
    def verdict(self) -> Verdict:
        return max((finding.verdict for finding in self.findings), key=lambda verdict: verdict.severity)

    @property
    def doubtful(self) -> bool:
        """Whether the trial may have to be run again: something kept it from showing anything, or ended it early."""
        return any(finding.verdict in _DOUBTFUL for finding in self.findings)

    @property
    def conclusive(self) -> bool:
        """Whether the trial shows what its cell is about. A duplicate with no proven kill is harm, but not this."""
        return all(finding.verdict is not Verdict.INCONCLUSIVE for finding in self.findings)


_DOUBTFUL = frozenset({Verdict.INCONCLUSIVE, Verdict.STRANDED})


class Result(StrEnum):
    """The word for an experiment, worst first."""

    ERROR = "Error"
    FAIL = "Fail"
    INCONCLUSIVE = "Inconclusive"
    PASS = "Pass"  # noqa: S105 - a result, no password
