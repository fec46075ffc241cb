"""Findings, grouped, with rates and their bounds; and what was not counted, with reasons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from killpoint.model.findings import Verdict
from killpoint.model.summary import CellSummary, ExperimentSummary, TrialRecord
from killpoint.report.grouping import CellGroup
from killpoint.report.html.glyphs import shape, sign
from killpoint.report.html.markup import NOTHING, Html, el, link, svg
from killpoint.report.layout import Matrix, cell_name
from killpoint.report.scope import scope_of
from killpoint.report.standing import HARM, Mark, Standing, expected_words, primary_action, standing
from killpoint.report.words import listing, percent

TITLES = {Mark.UNMET: "Not expected", Mark.UNKNOWN: "Not known", Mark.MET: "As expected"}
TRIALS_MAX = 8
REASONS_MAX = 4


def section(summary: ExperimentSummary, matrix: Matrix, groups: tuple[CellGroup, ...]) -> Html:
    said = (
        "Cells that show the same after the same kill. Rates from 0 to 100 %, with bounds at 95 % "
        "(Clopper–Pearson; one-sided at 0 and at 100 %)."
    )
    head = el("div", el("h2", "Findings", id="h-findings"), el("p", said), cls="sh")
    parts: list[Html] = []
    for mark, title in TITLES.items():
        items = [_group(summary, matrix, one) for one in groups if one.mark is mark]
        if items:
            parts += [el("h3", title, cls="fh"), el("ul", *items, cls="fl")]
    parts.append(_uncounted(summary, matrix))
    nothing = el("p", "Nothing is judged yet." if summary.result is None else "Nothing was judged.")
    return el("section", head, *(parts if groups else [nothing]), id="findings", aria_labelledby="h-findings")


def _group(summary: ExperimentSummary, matrix: Matrix, group: CellGroup) -> Html:
    action = primary_action(summary)
    words = [el("h4", group.title(action)), el("p", group.explanation(action))]
    if group.mark is Mark.UNMET:
        asked = listing(dict.fromkeys(f"{expected_words(c.expected)} ({c.expected.source})" for c in group.cells), "or")
        words.append(el("p", el("b", f"Expected {asked}.", cls="al")))
    if group.mark is not Mark.MET:
        words.append(_reasons(group.cells))
    words.append(el("p", scope_of(matrix).name(group.cells), ". ", _example(group), cls="mu wb"))
    cls = "bad" if group.mark is Mark.UNMET else None
    return el("li", sign(group.mark), el("div", *words), _rate(group), id=group.anchor, cls=cls)


def _reasons(cells: Iterable[CellSummary]) -> Html:
    reasons = [reason for cell in cells for reason in cell.reasons]
    items = [el("li", reason) for reason in reasons[:REASONS_MAX]]
    if len(reasons) > REASONS_MAX:
        items.append(el("li", f"and {len(reasons) - REASONS_MAX} more"))
    return el("ul", *items, cls="rs") if items else NOTHING


def _example(group: CellGroup) -> Html:
    record = group.example
    if record is None:
        return NOTHING
    return el("span", "Example: trial ", link(f"t-{record.evidence.id}", str(record.evidence.id)), ".")


def _rate(group: CellGroup) -> Html:
    number, of = group.count, len(group.records)
    if not of:
        return el("div", el("p", "no trial counts"), cls="rt")
    bound = group.bounds
    color = "d" if number and group.shown in HARM else "o"
    parts = [
        svg("line", x1=0, x2="100%", y1=8, y2=8, cls="gl"),
        svg("line", x1=0, x2=0, y1=4, y2=12, cls="gl"),
        svg("line", x1="100%", x2="100%", y1=4, y2=12, cls="gl"),
        svg("line", x1=f"{bound.low * 100:.2f}%", x2=f"{bound.high * 100:.2f}%", y1=8, y2=8, cls=f"iv {color}"),
        svg("circle", cx=f"{number / of * 100:.2f}%", cy=8, r=4, cls=color),
    ]
    picture = svg("svg", *parts, cls="ci", aria_hidden="true")
    words = el("p", el("b", f"{number} of {of}"), f" {group.shown}")
    return el("div", words, picture, el("p", bound_words(number, of, bound.low, bound.high), cls="mu"), cls="rt")


def bound_words(number: int, of: int, low: float, high: float) -> str:
    """``above 92.6 % at 95 %``, ``below 4.9 % at 95 %``, ``40.8 % to 73.7 % at 95 %``."""
    if number == of:
        return f"above {percent(low)} at 95 %"
    return f"below {percent(high)} at 95 %" if number == 0 else f"{percent(low)} to {percent(high)} at 95 %"


# --- not counted -----------------------------------------------------------------------------------------------------


def _uncounted(summary: ExperimentSummary, matrix: Matrix) -> Html:
    """Set-apart and inconclusive trials, those with one reason together."""
    found: dict[tuple[Standing, str], list[tuple[CellSummary, TrialRecord]]] = {}
    for cell in summary.cells:
        for record in cell.trials:
            for key in _why(record):
                found.setdefault(key, []).append((cell, record))
    if not found:
        return NOTHING
    judged = summary.totals.judged
    ordered = sorted(found.items(), key=lambda item: (item[0][0] is not Standing.SET_APART, -len(item[1])))
    items = [_why_item(said, reason, trials, matrix=matrix, judged=judged) for (said, reason), trials in ordered]
    return Html(el("h3", "Not counted", cls="fh") + el("ul", *items, cls="fl"))


def _why(record: TrialRecord) -> Iterator[tuple[Standing, str]]:
    if record.set_apart is not None:
        yield Standing.SET_APART, record.set_apart
    elif record.judgement is not None and standing(record) is Standing.INCONCLUSIVE:
        reasons = [f.reason for f in record.judgement.findings if f.verdict is Verdict.INCONCLUSIVE]
        yield Standing.INCONCLUSIVE, reasons[0] if reasons else "its expectation says nothing of it"


def _why_item(
    said: Standing, reason: str, trials: list[tuple[CellSummary, TrialRecord]], *, matrix: Matrix, judged: int
) -> Html:
    apart = said is Standing.SET_APART
    title = "Set apart: the framework's own error" if apart else "Inconclusive: proves nothing"
    links: list[str] = []
    for cell, record in trials[:TRIALS_MAX]:
        links += [
            cell_name(cell.cell, matrix.axes),
            " (",
            link(f"t-{record.evidence.id}", str(record.evidence.id)),
            "); ",
        ]
    more = f"and {len(trials) - TRIALS_MAX} more" if len(trials) > TRIALS_MAX else ""
    where = el("p", *(links if more else links[:-1]), more or ")", cls="mu wb")
    rate = el("div", el("p", el("b", f"{len(trials)} of {judged}"), " trials"), cls="rt")
    words = el("div", el("h4", title), el("p", reason), where)
    return el("li", shape("set-apart" if apart else "inconclusive"), words, rate)
