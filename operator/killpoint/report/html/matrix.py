"""The matrix as a heat map: rows are setups and what varies in them, columns are kills, the control first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from killpoint.model.cells import Kill
from killpoint.model.findings import Verdict
from killpoint.model.summary import CellSummary, ExperimentSummary, TrialRecord
from killpoint.report.effects import DIGITS_MAX, effects_text
from killpoint.report.html.glyphs import STEP, dots, shape, sign, verdict_shape, where
from killpoint.report.html.markup import NOTHING, Html, el, hidden, link, scrolled
from killpoint.report.layout import Group, Matrix, Row, cell_name, kill_name
from killpoint.report.standing import (
    HARM,
    MEANINGS,
    Mark,
    Standing,
    expected_words,
    mark,
    notes,
    primary_action,
    standing,
    tally,
    verdict_words,
)
from killpoint.report.words import count, listing

PLACES = {
    "before": "not begun",
    "sent": "sent, answer unread",
    "after": "done, not recorded",
    "recorded": "done and recorded",
}
MARKS = {Mark.MET: "as expected", Mark.UNMET: "not as expected", Mark.UNKNOWN: "not known", Mark.PENDING: "not yet"}
COLUMNS_MAX = 6
"""With more columns than this the table is narrow in all its parts, and scrolls in its frame where it has to."""
CHARACTER_PIXELS = 7
COLUMN_PIXELS = 64
GAP_PIXELS = 16
WORDS_PIXELS = 100


def section(summary: ExperimentSummary, matrix: Matrix, anchors: Mapping[str, str]) -> Html:
    """``anchors``: cell id → where its finding is."""
    action = primary_action(summary)
    head = el("div", el("h2", "Matrix", id="h-matrix"), el("p", _said(summary)), cls="sh")
    trials = max((cell.cell.trials for cell in summary.cells), default=0)
    many = len(matrix.columns) > COLUMNS_MAX
    long = trials > DIGITS_MAX // 2
    wide = many or long
    names = {"mx": True, "wd": wide, "nr": many, "bl": many and long and trials <= DIGITS_MAX}
    table = el(
        "table",
        el("caption", f"{action.capitalize()}s per trial: rows are setups, columns are kills", cls="sr"),
        _head(summary, matrix),
        *(_group(group, matrix, anchors, action) for group in matrix.groups),
        _foot(matrix),
        cls=" ".join(name for name, holds in names.items() if holds),
        style=f"--w:{_width(matrix, trials)}" if wide else None,
    )
    frame = scrolled(table, label="Matrix") if wide else table
    return el("section", head, _legend(summary, action), frame, id="matrix", aria_labelledby="h-matrix")


def _width(matrix: Matrix, trials: int) -> int:
    """About how many pixels a wide table takes. Paper does not scroll: where it is narrower the table shrinks."""
    names = max((len(", ".join(row.values)) for group in matrix.groups for row in group.rows), default=0)
    words = 0 if len(matrix.columns) > COLUMNS_MAX else WORDS_PIXELS
    column = max(trials * STEP if trials <= DIGITS_MAX else 0, COLUMN_PIXELS) + words
    return names * CHARACTER_PIXELS + len(matrix.columns) * (column + GAP_PIXELS)


def steps_of(summary: ExperimentSummary) -> tuple[str, ...]:
    """The workflow's steps, as the points name them: those that a run passed, else those that kills name."""
    passed = (
        point.point
        for cell in summary.cells
        for record in cell.trials
        for attempt in record.evidence.attempts
        if attempt.end is not None and attempt.end.outcome is not None
        for point in attempt.end.points
    )
    named = (point.partition("#")[0] for cell in summary.cells for point in cell.cell.coordinates.kill.at)
    for points in (passed, named):
        steps = tuple(dict.fromkeys(point.rpartition(".")[0] for point in points if "." in point))
        if steps:
            return steps
    return ()


def _said(summary: ExperimentSummary) -> str:
    unmet = sum(cell.met is False for cell in summary.cells)
    marks = Counter(mark(cell) for cell in summary.cells)
    unknown, pending = marks[Mark.UNKNOWN], marks[Mark.PENDING]
    cells = count(len(summary.cells), "cell")
    words = [f"{unmet} of {cells} not as expected"] if unmet else []
    words += [f"{unknown} not known" if unmet else f"{unknown} of {cells} not known"] if unknown else []
    words += [f"{pending} not judged yet" if words else f"{pending} of {cells} not judged yet"] if pending else []
    words = words or [f"All {cells} as expected"]
    steps = steps_of(summary)
    run = f" A run is {listing(steps)}; killed at a point, then resumed." if steps else ""
    return f"{', '.join(words)}.{run} Dots lead to the trials, signs to the findings."


def _head(summary: ExperimentSummary, matrix: Matrix) -> Html:
    steps = steps_of(summary)
    axes = el("th", ", ".join(matrix.axes), scope="col")
    return el("thead", el("tr", axes, *(_column(kill, steps) for kill in matrix.columns)))


def _column(kill: Kill, steps: tuple[str, ...]) -> Html:
    if kill.is_control:
        return el("th", el("span", "no kill"), el("small", "control"), scope="col", cls="ct")
    place = kill.at[0].partition("#")[0].rpartition(".")[2]
    small = PLACES.get(place, "") if len(kill.at) == 1 else f"killed {len(kill.at)} times"
    first, *rest = re.split(r"(?<=[.+])", kill_name(kill))
    # A line may end after the dot, and nowhere else in a point's name.
    name = [el("span", first, cls="pre") if rest else first]
    for part in rest:
        name += [el("wbr"), part]
    return el("th", where(kill, steps), el("span", *name), el("small", small), scope="col")


def _group(group: Group, matrix: Matrix, anchors: Mapping[str, str], action: str) -> Html:
    records = [record for cell in group.cells for record in cell.trials]
    name = el("div", el("b", group.setup), _sum(records))
    head = el("th", name, scope="rowgroup", colspan=len(matrix.columns) + 1)
    rows = (_row(row, matrix, anchors, action) for row in group.rows)
    return el("tbody", el("tr", head, cls="gr"), *rows)


def _sum(records: list[TrialRecord]) -> Html:
    kept = [record for record in records if standing(record) is not Standing.SET_APART]
    said = [f"{number} {verdict}" for verdict, number in tally(kept) if verdict in HARM]
    standings = Counter(standing(record) for record in records)
    said += [f"{standings[one]} {one}" for one in (Standing.SET_APART, Standing.INCONCLUSIVE) if standings[one]]
    unexpected = standings[Standing.UNEXPECTED]
    alarm = el("b", f"{unexpected} not expected", cls="al") if unexpected else NOTHING
    judged = sum(record.judgement is not None for record in records)
    if not judged:
        return el("span", "nothing judged", cls="sum")
    words = f"{', '.join(said) if said else 'no harm'} in {count(judged, 'trial')}"
    return el("span", words, ", " if unexpected else "", alarm, cls="sum")


def _row(row: Row, matrix: Matrix, anchors: Mapping[str, str], action: str) -> Html:
    cells = (
        el("td", *(_cell(cell, matrix, anchors, action) for cell in slot), cls=_class(slot, kill))
        for slot, kill in zip(row.slots, matrix.columns, strict=True)
    )
    return el("tr", el("th", ", ".join(row.values), scope="row"), *cells)


def _class(slot: tuple[CellSummary, ...], kill: Kill) -> str | None:
    names = ["bad"] if any(cell.met is False for cell in slot) else []
    names += ["ct"] if kill.is_control else []
    return " ".join(names) or None


def _cell(cell: CellSummary, matrix: Matrix, anchors: Mapping[str, str], action: str) -> Html:
    said = mark(cell)
    verdict = verdict_words(cell)
    effects = effects_text(cell, action)
    label = f"{' '.join(effects) if cell.cell.trials <= DIGITS_MAX else effects}: {verdict}, {MARKS[said]}"
    name = cell_name(cell.cell, matrix.axes)
    picture = link(f"c-{cell.cell.id}", dots(cell, action, label=label))
    anchor = anchors.get(cell.cell.id)
    words = hidden(f"{MARKS[said]}: finding for {name}")
    judged = link(anchor, sign(said), words, cls="to") if anchor else sign(said)
    return el("div", el("span", picture, judged, cls="ds"), _words(cell, said, verdict, action))


def _words(cell: CellSummary, said: Mark, verdict: str, action: str) -> Html:
    quiet = said is Mark.PENDING or (said is Mark.MET and verdict == Verdict.EXACTLY_ONCE)
    parts = [] if quiet else [el("span", verdict)]
    if cell.cell.trials > DIGITS_MAX:
        parts.append(el("small", effects_text(cell, action)))
    if said is Mark.UNMET:
        parts.append(el("b", f"expected {expected_words(cell.expected)}", cls="al"))
    parts += [el("small", note) for note in notes(cell)]
    return el("span", *parts, cls="t") if parts else NOTHING


def _foot(matrix: Matrix) -> Html:
    cells = []
    for index in range(len(matrix.columns)):
        slots = [cell for group in matrix.groups for row in group.rows for cell in row.slots[index]]
        kept = [r for cell in slots for r in cell.trials if r.judgement is not None and not r.set_apart]
        harm = sum(number for verdict, number in tally(kept) if verdict in HARM)
        said = (f"{harm}", " ", el("span", f"of {len(kept)}")) if kept else (el("span", "none judged"),)
        cells.append(el("td", *said))
    return el("tfoot", el("tr", el("th", "harm", scope="row"), *cells))


def _legend(summary: ExperimentSummary, action: str) -> Html:
    many = any(cell.cell.trials > DIGITS_MAX for cell in summary.cells)
    how = f"one bar for each number of {action}s" if many else f"one column a trial, one dot a {action}"
    verdicts = {v for cell in summary.cells for v, _ in tally(r for r in cell.trials if r.set_apart is None)}
    standings = {standing(record) for cell in summary.cells for record in cell.trials}
    items = [el("li", how)]
    items += [el("li", verdict_shape(verdict), verdict.value) for verdict in reversed(Verdict) if verdict in verdicts]
    items += [el("li", shape("set-apart"), "set apart")] if Standing.SET_APART in standings else []
    items += [el("li", shape("pending"), "not judged")] if Standing.PENDING in standings else []
    marks = {mark(cell) for cell in summary.cells}
    items += [el("li", sign(one), MARKS[one]) for one in Mark if one in marks]
    rest = el("ul", *_meanings(), cls="vg")
    said = el("p", "Blue: no harm. Orange: harm; the shape says which. Grey: proves nothing. Red: not expected.")
    return Html(el("ul", *items, cls="lg") + el("details", el("summary", "All verdicts"), said, rest, cls="all"))


def _meanings() -> Iterator[Html]:
    for verdict in reversed(Verdict):
        yield el("li", verdict_shape(verdict), el("span", f"{verdict}: {MEANINGS[verdict]}"))
    yield el("li", shape("set-apart"), el("span", "set apart: the framework's own error; counted by itself"))
