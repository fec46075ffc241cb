"""The head: the name, the result in a word, in a sentence and as a bar, and the facts."""

from __future__ import annotations

from collections import Counter

from killpoint.model.findings import Verdict
from killpoint.model.summary import ExperimentSummary, TrialRecord
from killpoint.report.html.glyphs import badge, shape
from killpoint.report.html.markup import NOTHING, Html, command, el, facts, link, svg
from killpoint.report.lead import lead
from killpoint.report.standing import HARM, Standing, ledger_words, other_reasons, primary_action, standing
from killpoint.report.words import count, duration, minute

REASONS_MAX = 12
SECTIONS = {
    "matrix": "Matrix",
    "shown": "In full",
    "findings": "Findings",
    "costs": "Costs",
    "trials": "Trials",
    "provenance": "Provenance",
}

Piece = tuple[str, str, str]
"""A class of trials: the bar's color, the key's shape, the words."""


def head(summary: ExperimentSummary, *, shown: bool) -> Html:
    """``shown``: whether there is a section with trials in full."""
    sections = [link(to, name) for to, name in SECTIONS.items() if to != "shown" or shown]
    top = el("div", el("span", "killpoint report"), el("nav", *sections, aria_label="Sections"), cls="top")
    title = el("div", el("h1", summary.name), badge(summary.result), cls="hl")
    words = el("p", *(el("b", part.text, cls="al") if part.alarm else part.text for part in lead(summary)), cls="lead")
    return el("header", top, title, words, _reasons(summary), _bar(summary), _facts(summary))


def _reasons(summary: ExperimentSummary) -> Html:
    said = "".join(part.text for part in lead(summary))
    reasons = [reason for reason in other_reasons(summary) if reason not in said]
    if not reasons:
        return NOTHING
    items = [el("li", reason) for reason in reasons[:REASONS_MAX]]
    if len(reasons) > REASONS_MAX:
        items.append(el("li", f"and {len(reasons) - REASONS_MAX} more"))
    return el("ul", *items, cls="why")


def _bar(summary: ExperimentSummary) -> Html:
    """All trials as one bar, in pieces, with a key that says the same in words and numbers."""
    records = [record for cell in summary.cells for record in cell.trials]
    planned = sum(max(cell.cell.trials, len(cell.trials)) for cell in summary.cells)
    pieces = Counter(_piece(record) for record in records)
    pieces[_PENDING] += planned - len(records)
    shown = [(piece, number) for piece, number in sorted(pieces.items(), key=_rank) if number]
    if not shown:
        return NOTHING
    parts, begun = [], 0
    for (color, _, _), number in shown:
        x, width = 100 * begun / planned, 100 * number / planned
        parts.append(svg("rect", x=f"{x:.3f}%", width=f"{width:.3f}%", height=10, cls=color))
        begun += number
        if begun < planned:
            at = f"{100 * begun / planned:.3f}%"
            parts.append(svg("line", x1=at, x2=at, y1=0, y2=10, cls="sep"))
    label = f"{count(planned, 'trial')}: " + ", ".join(f"{number} {words}" for (_, _, words), number in shown)
    bar = svg("svg", *parts, cls="bar", role="img", aria_label=label)
    key = el(
        "ul", *(el("li", _sign(piece), el("b", f"{number:,}"), " ", piece[2]) for piece, number in shown), cls="key"
    )
    return Html(bar + key)


_PENDING: Piece = ("np", "pending", "not judged")


def _piece(record: TrialRecord) -> Piece:
    said = standing(record)
    verdict = Verdict.INCONCLUSIVE if record.judgement is None else record.judgement.verdict
    match said:
        case Standing.PENDING:
            return _PENDING
        case Standing.SET_APART:
            return ("nb", "set-apart", "set apart")
        case Standing.INCONCLUSIVE:
            harm = f"{verdict}, kill not proven" if verdict in HARM else "inconclusive"
            return ("nb", verdict.value, harm)
        case Standing.UNEXPECTED:
            return ("a", "", f"{verdict}, not expected")
        case Standing.EXPECTED if verdict is Verdict.EXACTLY_ONCE:
            return ("o", verdict.value, verdict.value)
        case _:
            return ("d" if verdict in HARM else "o", verdict.value, f"{verdict}, as expected")


def _rank(item: tuple[Piece, int]) -> tuple[int, str]:
    return (("o", "d", "a", "nb", "np").index(item[0][0]), item[0][2])


def _sign(piece: Piece) -> Html:
    return shape(piece[1]) if piece[1] else el("i", "≠", cls="ne", aria_hidden="true")


def _facts(summary: ExperimentSummary) -> Html:
    provenance, totals = summary.provenance, summary.totals
    took = "not over" if provenance.ended_ms is None else duration(provenance.ended_ms - provenance.started_ms)
    pairs = [
        ("When", minute(provenance.started_ms)),
        ("Took", took),
        ("Kills confirmed", f"{totals.kills_confirmed:,} of {totals.kills_planned:,}"),
        (f"{primary_action(summary).capitalize()}s", ledger_words(summary)),
        ("Seed", f"{provenance.seed}"),
    ]
    wide = facts([("Versions", versions(summary)), ("Reproduce", command(provenance.command))], cls="wide")
    return Html(facts(pairs, cls="facts") + wide)


def versions(summary: ExperimentSummary) -> str:
    """Every distribution once, with its version, and killpoint's own."""
    pairs = dict.fromkeys(pair for _, listed in summary.provenance.versions for pair in listed)
    own = ("killpoint", summary.provenance.killpoint)
    return ", ".join(f"{name} {version}" for name, version in (*pairs, own))
