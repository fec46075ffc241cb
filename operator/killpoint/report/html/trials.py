"""Every trial: some in full at once, the others behind a heading that opens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from killpoint.model.evidence import TrialEvidence
from killpoint.model.summary import CellSummary, ExperimentSummary, TrialRecord
from killpoint.report.html.glyphs import shape, shape_of, sign
from killpoint.report.html.markup import NOTHING, Html, el, hidden, link
from killpoint.report.html.trial import body, title, verdict_of
from killpoint.report.layout import Matrix, cell_name, kill_name, row_values
from killpoint.report.standing import Mark, Standing, expected_words, mark, notes, standing, verdict_words
from killpoint.report.words import count

TRIALS_MAX = 1000
"""So many trials are shown with their evidence; of the rest only the number is said. About 8 KB each."""
DRAWN_MAX = 400
"""So many of them have a time line; those that are not as expected, or prove nothing, before all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which trials the page shows: those in full, those with a time line, those with their evidence."""

    full: tuple[TrialRecord, ...]
    drawn: frozenset[str]
    told: frozenset[str]


def choose(summary: ExperimentSummary, full: tuple[TrialRecord, ...]) -> Choice:
    """The trials that matter first: shown in full, not as expected, inconclusive, set apart, then one of each cell."""
    first = [str(record.evidence.id) for record in full]
    ranked = sorted(
        (
            (_weight(record), number, str(record.evidence.id))
            for cell in summary.cells
            for number, record in enumerate(cell.trials)
            if record.evidence.attempts or record.judgement is not None
        ),
    )
    ids = list(dict.fromkeys([*first, *(name for _, _, name in ranked)]))
    return Choice(full=full, drawn=frozenset(ids[:DRAWN_MAX]), told=frozenset(ids[:TRIALS_MAX]))


def in_full(summary: ExperimentSummary, matrix: Matrix, choice: Choice) -> Html:
    """The trials that show what matters."""
    if not choice.full:
        return NOTHING
    cells = {str(record.evidence.id): cell for cell in summary.cells for record in cell.trials}
    articles = []
    for record in choice.full:
        cell = cells[str(record.evidence.id)]
        name = el("h3", f"Trial {record.evidence.id}", el("span", cell_name(cell.cell, matrix.axes), cls="mu"))
        articles.append(el("article", name, body(summary, cell, record), id=f"t-{record.evidence.id}", cls="one"))
    one = len(choice.full) == 1
    said = "The trial that shows most." if one else "One for each finding that is not as expected, or not known."
    head = el("div", el("h2", "One trial in full" if one else "Trials in full", id="h-shown"), el("p", said), cls="sh")
    return el("section", head, *articles, id="shown", aria_labelledby="h-shown")


def section(summary: ExperimentSummary, matrix: Matrix, choice: Choice) -> Html:
    trials = sum(len(cell.trials) for cell in summary.cells)
    said = f"Every trial of every cell: {count(trials, 'trial')} in {count(len(summary.cells), 'cell')}."
    head = el("div", el("h2", "Trials", id="h-trials"), el("p", said), cls="sh")
    parts: list[Html] = [_left_out(summary, choice)]
    for group in matrix.groups:
        cells = sorted(group.cells, key=lambda cell: matrix.columns.index(cell.cell.coordinates.kill))
        parts.append(el("h3", group.setup, cls="fh"))
        entries = [_cell(summary, cell, matrix, choice) for cell in _in_rows(cells, matrix)]
        parts.append(el("div", *entries, cls="ces"))
    return el("section", head, *parts, id="trials", aria_labelledby="h-trials")


def _in_rows(cells: Iterable[CellSummary], matrix: Matrix) -> Iterator[CellSummary]:
    rows: dict[tuple[str, ...], list[CellSummary]] = {}
    for cell in cells:
        rows.setdefault(row_values(cell.cell, matrix.axes), []).append(cell)
    for row in rows.values():
        yield from row


def _left_out(summary: ExperimentSummary, choice: Choice) -> Html:
    told = [record for cell in summary.cells for record in cell.trials if _has_evidence(record.evidence)]
    words = []
    if len(told) > len(choice.drawn):
        words.append(f"{len(told) - len(choice.drawn):,} trials have no time line here")
    if len(told) > len(choice.told):
        words.append(f"{len(told) - len(choice.told):,} are left out with their evidence")
    said = " and ".join(words) + ", to keep this file small: the journal has them all." if words else ""
    return el("p", said, cls="mu") if said else NOTHING


def _cell(summary: ExperimentSummary, cell: CellSummary, matrix: Matrix, choice: Choice) -> Html:
    name = ", ".join((*row_values(cell.cell, matrix.axes), kill_name(cell.cell.coordinates.kill)))
    said = mark(cell)
    words = {
        Mark.MET: "",
        Mark.UNMET: f"expected {expected_words(cell.expected)}",
        Mark.UNKNOWN: "not known",
        Mark.PENDING: "",
    }[said]
    about = ", ".join(part for part in (verdict_words(cell), words, *notes(cell)) if part)
    met = hidden(", as expected") if said is Mark.MET else NOTHING
    heading = el(
        "summary", el("b", name), " ", sign(said), " ", el("span", about, met, cls="al" if said is Mark.UNMET else None)
    )
    reasons = el("ul", *(el("li", reason) for reason in cell.reasons), cls="rs") if cell.reasons else NOTHING
    entries = [entry for record in cell.trials for entry in _entry(summary, cell, record, choice)]
    if not entries:
        entries = [el("p", "No trial was run.", cls="mu")]
    missing = sum(str(r.evidence.id) not in choice.told and _has_evidence(r.evidence) for r in cell.trials)
    more = el("p", f"{count(missing, 'trial')} left out.", cls="mu") if missing else NOTHING
    return el("details", heading, el("div", reasons, *entries, more, cls="in"), id=f"c-{cell.cell.id}", cls="ce")


def _entry(summary: ExperimentSummary, cell: CellSummary, record: TrialRecord, choice: Choice) -> Iterator[Html]:
    name = str(record.evidence.id)
    if any(record is shown for shown in choice.full):
        yield el("p", shape(shape_of(record)), link(f"t-{name}", title(record)), ", shown in full above", cls="te")
    elif not _has_evidence(record.evidence):
        yield el("p", shape("pending"), f"{name}: not run", id=f"t-{name}", cls="te")
    elif name in choice.told:
        heading = el("summary", shape(shape_of(record)), hidden("trial "), f"{name}: {verdict_of(record)}")
        inside = el("div", body(summary, cell, record, drawn=name in choice.drawn), cls="in")
        yield el("details", heading, inside, id=f"t-{name}", cls="tr")


def _has_evidence(evidence: TrialEvidence) -> bool:
    return bool(evidence.attempts) or evidence.ledger is not None


def _weight(record: TrialRecord) -> int:
    order = (Standing.UNEXPECTED, Standing.INCONCLUSIVE, Standing.SET_APART, Standing.PENDING, Standing.EXPECTED)
    return order.index(standing(record))
