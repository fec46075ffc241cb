"""The matrix for a terminal: aligned, at most eighty columns wide, readable without color."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from killpoint.model.findings import Result, Verdict
from killpoint.model.summary import CellSummary, ExperimentSummary, TrialRecord
from killpoint.report.effects import DIGITS_MAX, TIMES, effects_text
from killpoint.report.layout import Group, Matrix, arrange, cell_name, kill_name
from killpoint.report.lead import lead_text, result_word
from killpoint.report.standing import (
    HARM,
    Mark,
    counted,
    example,
    expected_words,
    ledger_words,
    mark,
    other_reasons,
    primary_action,
    replay,
    tally,
    verdict_words,
)
from killpoint.report.words import count, printable, shorten

LABEL_MAX = 44
CELLS_MAX = 10
REASONS_MAX = 10
CELL_REASONS_MAX = {Mark.UNMET: 1, Mark.UNKNOWN: 2}
GAP = "  "


class Ink(StrEnum):
    """ANSI styles; the value is the code between ``ESC[`` and ``m``."""

    STRONG = "1"
    FAINT = "2"
    ALARM = "1;31"
    GOOD = "32"
    HARM = "33"


INKS = {Result.PASS: Ink.GOOD, Result.FAIL: Ink.ALARM, Result.ERROR: Ink.ALARM, Result.INCONCLUSIVE: Ink.HARM}


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """How wide it is and whether it takes color."""

    width: int
    color: bool

    def ink(self, text: str, ink: Ink | None) -> str:
        return f"\x1b[{ink}m{text}\x1b[0m" if self.color and ink is not None and text.strip() else text

    def wrap(self, text: str, *, indent: str = "", hanging: str | None = None) -> list[str]:
        return textwrap.wrap(
            text,
            self.width,
            initial_indent=indent,
            subsequent_indent=indent if hanging is None else hanging,
            break_on_hyphens=False,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What stands in the table for a cell."""

    text: str
    ink: Ink | None = None


def render(summary: ExperimentSummary, *, color: bool = False, width: int = 80) -> str:
    """The matrix, the result with its reasons, the totals, and what was not as expected. Ends with a newline."""
    paper = Paper(width=width, color=color)
    lines = [
        *_head(summary, paper),
        "",
        *_matrix(summary, paper),
        "",
        *_result(summary, paper),
        *_totals(summary, paper),
    ]
    lines += _cells(summary, paper, mark_=Mark.UNMET, title="Not as expected")
    lines += _cells(summary, paper, mark_=Mark.UNKNOWN, title="Not known")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _head(summary: ExperimentSummary, paper: Paper) -> Iterator[str]:
    name = shorten(printable(summary.name), paper.width - len(result_word(summary.result)) - 2)
    ink = None if summary.result is None else INKS[summary.result]
    yield f"{paper.ink(name, Ink.STRONG)}  {paper.ink(result_word(summary.result), ink)}"


def _matrix(summary: ExperimentSummary, paper: Paper) -> Iterator[str]:
    matrix = arrange(summary.cells)
    if not matrix.columns:
        yield "No cells."
        return
    action = primary_action(summary)
    labels = _Labels.of(matrix)
    room = paper.width - labels.width - len(GAP)
    widths = [min(_column_width(matrix, index, action), room) for index in range(len(matrix.columns))]
    for number, block in enumerate(_blocks(widths, room)):
        if number:
            yield ""
        heads = [shorten(printable(kill_name(matrix.columns[index])), widths[index]) for index in block]
        head = GAP.join(text.ljust(widths[index]) for text, index in zip(heads, block, strict=True))
        yield paper.ink((labels.text(matrix.axes) + GAP + head).rstrip(), Ink.FAINT)
        for group in matrix.groups:
            yield _group_line(group, paper, columns=block)
            yield from _rows(group, paper, labels=labels, columns=[(i, widths[i]) for i in block], action=action)
    yield ""
    yield from (paper.ink(line, Ink.FAINT) for line in paper.wrap(_legend(summary, action)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Labels:
    """The rows' names: a column for each axis that varies."""

    widths: tuple[int, ...]

    @classmethod
    def of(cls, matrix: Matrix) -> _Labels:
        names = [matrix.axes, *(row.values for group in matrix.groups for row in group.rows)]
        widths = [max(len(printable(name)) for name in column) for column in zip(*names, strict=True)]
        most = (LABEL_MAX - len(GAP) * (len(widths) - 1)) // len(widths)
        fits = sum(widths) + len(GAP) * (len(widths) - 1) <= LABEL_MAX
        return cls(widths=tuple(widths if fits else (min(width, max(most, 1)) for width in widths)))

    @property
    def width(self) -> int:
        return sum(self.widths) + len(GAP) * (len(self.widths) - 1)

    def text(self, values: tuple[str, ...]) -> str:
        pairs = zip(values, self.widths, strict=True)
        return GAP.join(shorten(printable(value), width).ljust(width) for value, width in pairs)


def _column_width(matrix: Matrix, index: int, action: str) -> int:
    texts = [_entry(cell, action).text for group in matrix.groups for row in group.rows for cell in row.slots[index]]
    return max(len(text) for text in (printable(kill_name(matrix.columns[index])), *texts))


def _blocks(widths: list[int], room: int) -> Iterator[list[int]]:
    """The columns in as many tables as it takes to stay within the width."""
    block: list[int] = []
    used = 0
    for index, width in enumerate(widths):
        if block and used + len(GAP) + width > room:
            yield block
            block, used = [], 0
        used += width + (len(GAP) if block else 0)
        block.append(index)
    yield block


def _group_line(group: Group, paper: Paper, *, columns: list[int]) -> str:
    """The setup, and the harm in these columns: those below it, where the matrix takes several tables."""
    cells = (cell for row in group.rows for index in columns for cell in row.slots[index])
    harm = [(verdict, number) for verdict, number in tally(_kept(cells)) if verdict in HARM]
    note = ", ".join(f"{number} {verdict}" for verdict, number in harm)
    name = shorten(printable(group.setup), paper.width - len(note) - 2)
    gap = " " * (paper.width - len(name) - len(note))
    return paper.ink(name, Ink.STRONG) + gap + paper.ink(note, Ink.FAINT)


def _kept(cells: Iterable[CellSummary]) -> list[TrialRecord]:
    return [record for cell in cells for record in cell.trials if not record.set_apart]


def _rows(group: Group, paper: Paper, *, labels: _Labels, columns: list[tuple[int, int]], action: str) -> Iterator[str]:
    for row in group.rows:
        name = labels.text(row.values)
        # Cells that share a place (kills that differ in more than their name) stand under one another.
        for depth in range(max((len(row.slots[index]) for index, _ in columns), default=0)):
            texts = []
            for index, width in columns:
                slot = row.slots[index]
                entry = _entry(slot[depth], action) if depth < len(slot) else Entry(text="")
                said = shorten(entry.text, width)
                # Padded outside of the ink, so that a line ends alike with color and without.
                texts.append(paper.ink(said, entry.ink) + " " * (width - len(said)))
            yield (name if depth == 0 else " " * labels.width) + GAP + GAP.join(texts)


def _entry(cell: CellSummary, action: str) -> Entry:
    sign = mark(cell)
    verdict = _verdict(cell)
    # A cell that is exactly-once and was expected to be needs no word: those that have one stand out.
    quiet = sign is Mark.PENDING or (sign is Mark.MET and verdict == Verdict.EXACTLY_ONCE)
    text = " ".join(part for part in (effects_text(cell, action), sign.value, "" if quiet else verdict) if part)
    harm = any(verdict in HARM for verdict, _ in tally(_kept([cell])))
    ink = Ink.ALARM if sign is Mark.UNMET else Ink.FAINT if sign is not Mark.MET else Ink.HARM if harm else None
    return Entry(text=text, ink=ink)


def _verdict(cell: CellSummary) -> str:
    """The verdict in few words: of a mixed cell the worst one, and how often where no digits show it."""
    verdicts = tally(counted(cell))
    if len(verdicts) < 2:  # noqa: PLR2004 (one verdict, or none)
        return verdict_words(cell)
    worst, number = verdicts[0]
    if cell.cell.trials <= DIGITS_MAX:
        return worst.value
    return f"{number} of {sum(times for _, times in verdicts)} {worst}"


def _legend(summary: ExperimentSummary, action: str) -> str:
    texts = [effects_text(cell, action) for cell in summary.cells]
    signs = {sign for text in texts for sign in text}
    many = any(cell.cell.trials > DIGITS_MAX for cell in summary.cells)
    words = [f"{action}s{TIMES}trials" if many else f"One digit a trial: its {action}s"]
    words += [
        word for sign, word in (("x", "x set apart"), ("?", "? inconclusive"), (".", ". not judged")) if sign in signs
    ]
    words += ["= as expected", "≠ not as expected"]
    marks = {mark(cell) for cell in summary.cells}
    words += [word for sign, word in ((Mark.UNKNOWN, "? not known"), (Mark.PENDING, "… not yet")) if sign in marks]
    return "; ".join((*words, "no word: exactly-once")) + "."


def _result(summary: ExperimentSummary, paper: Paper) -> Iterator[str]:
    ink = None if summary.result is None else INKS[summary.result]
    first, *rest = paper.wrap(f"{result_word(summary.result)}: {printable(lead_text(summary))}")
    word, _, text = first.partition(":")
    yield f"{paper.ink(word, ink)}:{text}"
    yield from rest
    said = lead_text(summary)
    reasons = [reason for reason in other_reasons(summary) if reason not in said]
    for reason in reasons[:REASONS_MAX]:
        yield from paper.wrap(printable(reason), indent="- ", hanging="  ")
    if len(reasons) > REASONS_MAX:
        yield f"- and {count(len(reasons) - REASONS_MAX, 'more reason')}"
    yield ""


def _totals(summary: ExperimentSummary, paper: Paper) -> Iterator[str]:
    totals = summary.totals
    apart = [f"{totals.set_apart:,} set apart"] if totals.set_apart else []
    verdicts = [f"{number:,} {v}" for v, number in sorted(totals.verdicts, key=lambda item: item[0].severity)]
    pending = [f"{totals.trials - totals.judged:,} not judged"] if totals.trials > totals.judged else []
    retries = [f"{count(totals.retries, 'earlier take')} spoiled"] if totals.retries else []
    controls = f" ({count(totals.controls, 'control')})" if totals.controls else ""
    lines = {
        "trials": f"{totals.trials:,}{controls}: " + ", ".join([*verdicts, *apart, *pending, *retries]),
        "kills": f"{totals.kills_confirmed:,} of {totals.kills_planned:,} confirmed",
        f"{primary_action(summary)}s": ledger_words(summary),
    }
    if totals.set_apart:
        lines["apart"] = _reasons_apart(summary)
    label = max(len(name) for name in lines)
    for name, text in lines.items():
        yield from paper.wrap(printable(text), indent=name.ljust(label) + GAP, hanging=" " * label + GAP)


def _reasons_apart(summary: ExperimentSummary) -> str:
    reasons = Counter(record.set_apart for cell in summary.cells for record in cell.trials if record.set_apart)
    return "; ".join(f"{number} {TIMES} {shorten(reason, LABEL_MAX * 2)}" for reason, number in reasons.most_common())


def _cells(summary: ExperimentSummary, paper: Paper, *, mark_: Mark, title: str) -> Iterator[str]:
    cells = [cell for cell in summary.cells if mark(cell) is mark_]
    if not cells:
        return
    axes = arrange(summary.cells).axes
    yield ""
    yield paper.ink(f"{title}: {count(len(cells), 'cell')}", Ink.ALARM if mark_ is Mark.UNMET else Ink.STRONG)
    for cell in cells[:CELLS_MAX]:
        yield from paper.wrap(printable(cell_name(cell.cell, axes)), indent=GAP)
        seen = f"seen {verdict_words(cell)}, expected {expected_words(cell.expected)} ({cell.expected.source})"
        yield from paper.wrap(printable(seen), indent="    ")
        most = CELL_REASONS_MAX[mark_]
        for reason in cell.reasons[:most]:
            yield from paper.wrap(printable(reason), indent="    ")
        if len(cell.reasons) > most:
            yield f"    and {len(cell.reasons) - most} more"
        record = example(cell)
        if record is not None:
            yield f"    {replay(summary, record)}"
    if len(cells) > CELLS_MAX:
        yield f"{GAP}and {count(len(cells) - CELLS_MAX, 'more cell')}"
