"""Findings over cells: those that show the same thing after the same kill become one, with one rate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from killpoint.model.cells import Kill
from killpoint.model.findings import Verdict
from killpoint.model.intervals import Interval, interval
from killpoint.model.summary import CellSummary, ExperimentSummary, TrialRecord
from killpoint.report.layout import kill_name
from killpoint.report.resends import resend_words
from killpoint.report.standing import HARM, HARMLESS, Mark, Standing, counted, mark, standing, tally

ORDER = (Mark.UNMET, Mark.UNKNOWN, Mark.MET)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellGroup:
    """Cells with one mark, one worst verdict and one kill."""

    anchor: str
    mark: Mark
    verdict: Verdict | None
    """The worst of the counted trials; None where none counts."""
    kill: Kill
    cells: tuple[CellSummary, ...]

    @property
    def records(self) -> tuple[TrialRecord, ...]:
        return tuple(record for cell in self.cells for record in counted(cell))

    @property
    def shown(self) -> Verdict:
        """The verdict whose rate is shown: where no harm was done, how sure it is that there is none."""
        return self.verdict if self.verdict is not None and self.verdict not in HARMLESS else Verdict.DUPLICATE

    @property
    def count(self) -> int:
        return dict(tally(self.records)).get(self.shown, 0)

    @property
    def bounds(self) -> Interval:
        return interval(self.count, len(self.records))

    @property
    def example(self) -> TrialRecord | None:
        """The trial that shows the finding."""
        every = [record for cell in self.cells for record in cell.trials if record.judgement is not None]
        wanted = {Mark.UNMET: Standing.UNEXPECTED, Mark.UNKNOWN: Standing.INCONCLUSIVE}.get(self.mark)
        first = [record for record in every if wanted is None or standing(record) is wanted] or every
        worst = [r for r in first if r.judgement is not None and r.judgement.verdict is self.verdict] or first
        return worst[0] if worst else None

    def title(self, action: str) -> str:
        killed = "without a kill" if self.kill.is_control else f"killed at {kill_name(self.kill)}"
        if self.mark is Mark.UNKNOWN:
            return f"Not known, {killed}"
        names = {
            None: f"Not known, {killed}",
            Verdict.DUPLICATE: f"{action.capitalize()} made more than once, {killed}",
            Verdict.EXACTLY_ONCE: f"Once, {killed}",
            Verdict.LOST: f"An effect lost, {killed}",
        }
        return names.get(self.verdict, f"{(self.verdict or Verdict.INCONCLUSIVE).capitalize()}, {killed}")

    def explanation(self, action: str) -> str:
        """Where the run was when it was killed, and what the request log shows of the rest."""
        return f"{stage(self.kill)} {resend_words(self.records, action)}".strip()


def group(summary: ExperimentSummary) -> tuple[CellGroup, ...]:
    """Every judged cell in exactly one group: not expected first, then not known, harm before none, controls last."""
    found: dict[tuple[Mark, Verdict | None, Kill], list[CellSummary]] = {}
    for cell in summary.cells:
        sign = mark(cell)
        if sign is Mark.PENDING and not counted(cell):
            continue
        verdicts = tally(counted(cell))
        shown = Mark.UNKNOWN if sign is Mark.PENDING else sign
        found.setdefault((shown, verdicts[0][0] if verdicts else None, cell.cell.coordinates.kill), []).append(cell)
    ordered = sorted(found.items(), key=lambda item: _rank(*item[0]))
    return tuple(
        CellGroup(anchor=f"f-{number}", mark=sign, verdict=verdict, kill=kill, cells=tuple(cells))
        for number, ((sign, verdict, kill), cells) in enumerate(ordered, start=1)
    )


def anchors(groups: Iterable[CellGroup]) -> dict[str, str]:
    """Cell id → the anchor of its group."""
    return {cell.cell.id: one.anchor for one in groups for cell in one.cells}


def examples(groups: Sequence[CellGroup], *, most: int) -> tuple[TrialRecord, ...]:
    """The trials to show in full: one for each group that is not as expected or not known, else of the worst one."""
    wanted = [one for one in groups if one.mark is not Mark.MET] or [
        one for one in groups if one.verdict in HARM or not one.kill.is_control
    ][:1]
    shown = (one.example for one in wanted)
    return tuple(record for record in shown if record is not None)[:most]


def stage(kill: Kill) -> str:
    """Where the run stood when it was killed, in a sentence."""
    if kill.is_control:
        return "Nothing was killed: the normal run."
    step, _, place = kill.at[0].partition("#")[0].rpartition(".")
    sentences = {
        "before": f"Nothing was asked for by {step} yet.",
        "sent": f"The request of {step} was sent, its answer not read.",
        "after": f"{step.capitalize()} was done and answered, its result not yet recorded.",
        "recorded": f"{step.capitalize()} was done and its result recorded.",
    }
    first = sentences.get(place, "")
    more = len(kill.at) - 1
    return (
        f"{first} Then killed {more} more times.".strip()
        if more > 1
        else (f"{first} Then killed once more." if more else first)
    )


def _rank(sign: Mark, verdict: Verdict | None, kill: Kill) -> tuple[int, int, bool]:
    severity = -1 if verdict is None else verdict.severity
    return (ORDER.index(sign), -severity, kill.is_control)
