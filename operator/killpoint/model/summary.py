"""Summaries: what the status, the terminal and the reports show, all from the same values."""

from __future__ import annotations

from dataclasses import dataclass

from killpoint.model.cells import Cell
from killpoint.model.evidence import TrialEvidence
from killpoint.model.findings import Judgement, Result, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How large a part of the counted trials may have a verdict: for cells that are races."""

    verdict: Verdict
    least: float = 0.0
    most: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkErrors:
    """Which failures are the framework's own: set apart with their reason, at most so many in a cell."""

    match: str
    """Text that ``class: message`` of the failed outcome contains."""
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The rule that holds for a cell."""

    source: str = "built-in"
    """``built-in``, or the rule's path in the file: ``spec.expect[1]``."""
    verdicts: tuple[Verdict, ...] = (Verdict.EXACTLY_ONCE,)
    outcomes: tuple[str, ...] = ()
    """Empty: any."""
    effects: tuple[tuple[str, int], ...] = ()
    """Action → exact number of effects in each trial. Empty: not asked."""
    shares: tuple[Share, ...] = ()
    framework_errors: FrameworkErrors | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRecord:
    """A trial with its evidence, its judgement and what became of it in its cell."""

    evidence: TrialEvidence
    judgement: Judgement | None
    """None: not judged yet."""
    set_apart: str | None = None
    """Why the trial is left out of the counts: the framework's own error, in its words."""
    met: bool | None = None
    """Whether it is as expected; None for set apart, inconclusive and unjudged trials."""
    retries: int = 0
    """Earlier takes of it that infrastructure spoiled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How many of the counted trials had a verdict, with a 95 % interval (Clopper-Pearson)."""

    verdict: Verdict
    count: int
    of: int
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSummary:
    """A cell: what was expected, what its trials showed, and whether the two agree."""

    cell: Cell
    expected: Expected
    trials: tuple[TrialRecord, ...]
    met: bool | None
    """None: not known (yet), because too little of it is conclusive."""
    reasons: tuple[str, ...] = ()
    """Why it is not met or not known, in words."""
    rates: tuple[Rate, ...] = ()

    @property
    def rank(self) -> tuple[int, int, int]:
        """Sorts cells, worst first: not as expected before not known, by the worst of its verdicts, by how many."""
        bad = [record for record in self.trials if record.met is self.met] if self.met is not True else []
        severities = [
            record.judgement.verdict.severity for record in bad or self.trials if record.judgement is not None
        ]
        return ((False, None, True).index(self.met), -max(severities, default=0), -len(bad))

    def effects(self, action: str = "charge") -> tuple[int | None, ...]:
        """Witnessed effects of an action, trial by trial; None where they are not known or the trial is set apart."""
        return tuple(
            None
            if record.judgement is None or record.set_apart or record.evidence.ledger is None
            else dict(record.judgement.effects).get(action, 0)
            for record in self.trials
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Counts over all cells. Set-apart trials count only as such."""

    trials: int
    judged: int
    controls: int
    verdicts: tuple[tuple[Verdict, int], ...]
    set_apart: int
    kills_planned: int
    kills_confirmed: int
    effects_ordered: int
    effects_witnessed: int
    """Effects of ordered operations in all trials whose ledger was read."""
    effects_duplicate: int
    effects_lost: int
    retries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where the numbers come from."""

    killpoint: str
    substrate: str
    seed: int
    started_ms: int
    ended_ms: int | None
    versions: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    """Setup → (distribution, version)."""
    platform: tuple[tuple[str, str], ...]
    """Python, Postgres, machine: name → value."""
    command: str
    """What reproduces the run."""
    replay: str
    """What runs one of its trials again, but for the trial's id."""
    own_images: tuple[str, ...] = ()
    """Setups whose workers are images that the experiment names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentSummary:
    """The whole of an experiment run."""

    name: str
    journal: str
    result: Result | None
    """None while it is running."""
    reasons: tuple[str, ...]
    """Why the result is what it is, worst first, one sentence each."""
    workflow: str
    cells: tuple[CellSummary, ...]
    """Controls included; as planned, not sorted by how bad they are."""
    totals: Totals
    provenance: Provenance
    aborted: bool = False
    """Whether it was ended before everything had been run."""
