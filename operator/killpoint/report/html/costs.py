"""Costs as drawings: a line from least to most, a bar over the middle half, a tick at the median."""

from __future__ import annotations

from collections.abc import Callable

from killpoint.model.summary import ExperimentSummary
from killpoint.report.costs import Costs, Spread, costs_of
from killpoint.report.html.markup import NOTHING, Html, el, svg
from killpoint.report.standing import primary_action

SECOND_MS = 1000.0
TICKS_MAX = 5


def section(summary: ExperimentSummary) -> Html:
    action = primary_action(summary)
    costs = costs_of(summary.cells, action)
    figures = [
        _figure("Normal run", "an attempt's start to its end; controls", costs, lambda cost: cost.normal),
        _figure("Recovery", "the last attempt's start to its end; killed trials", costs, lambda cost: cost.recovery),
        _figure("Checkpoints", "time spent on writing them, in a normal run", costs, lambda cost: cost.checkpoint),
        _effects(action, costs),
    ]
    said = "Bar: middle half. Line: all. Tick and number: median."
    head = el("div", el("h2", "Costs", id="h-costs"), el("p", said), cls="sh")
    shown = [figure for figure in figures if figure]
    body = el("div", *shown, cls="cg") if shown else el("p", "No trial finished: nothing to measure.")
    return el("section", head, body, id="costs", aria_labelledby="h-costs")


def _figure(title: str, said: str, costs: tuple[Costs, ...], pick: Callable[[Costs], Spread | None]) -> Html:
    spreads = [(cost.setup, pick(cost)) for cost in costs]
    known = [spread for _, spread in spreads if spread is not None]
    if not known:
        return NOTHING
    in_seconds = max(spread.median for spread in known) >= SECOND_MS
    unit, scale = ("s", SECOND_MS) if in_seconds else ("ms", 1.0)
    step = _step(max(spread.most for spread in known) / scale)
    most = step * -(-(max(spread.most for spread in known) / scale) // step)
    rows = [_row(setup, spread, unit=unit, scale=scale, most=most) for setup, spread in spreads]
    caption = el("figcaption", el("h3", f"{title}, {unit}"), " ", el("span", said, cls="mu"))
    return el("figure", caption, *rows, _axis(most, step))


def _row(setup: str, spread: Spread | None, *, unit: str, scale: float, most: float) -> Html:
    if spread is None:
        return el("div", el("span", setup), el("span", "no trial tells", cls="mu"), el("b", ""), cls="rw")
    low, lower, median, upper, high = (
        value / scale for value in (spread.least, spread.lower, spread.median, spread.upper, spread.most)
    )
    at = [round(100 * value / most, 2) if most else 0.0 for value in (low, lower, median, upper, high)]
    parts = [
        svg("line", x1=f"{at[0]}%", x2=f"{at[4]}%", y1=9, y2=9, cls="wh"),
        svg("rect", x=f"{at[1]}%", width=f"{round(at[3] - at[1], 2)}%", y=5.5, height=7, cls="bx"),
        svg("line", x1=f"{at[2]}%", x2=f"{at[2]}%", y1=2, y2=16, cls="md"),
    ]
    digits = 2 if unit == "s" else 1
    label = (
        f"{setup}: median {median:.{digits}f} {unit}, half between {lower:.{digits}f} and {upper:.{digits}f}, "
        f"all between {low:.{digits}f} and {high:.{digits}f}, n = {spread.n}"
    )
    picture = svg("svg", *parts, role="img", aria_label=label)
    return el("div", el("span", setup), picture, el("b", f"{median:.{digits}f}", title=label), cls="rw")


def _effects(action: str, costs: tuple[Costs, ...]) -> Html:
    known = [cost.effects for cost in costs if cost.effects is not None]
    if not known:
        return NOTHING
    most = max(2.0, float(-(-max(known) // 1)))
    rows = []
    for cost in costs:
        if cost.effects is None:
            rows.append(
                el("div", el("span", cost.setup), el("span", "no trial tells", cls="mu"), el("b", ""), cls="rw")
            )
            continue
        once, at = f"{100 / most:.2f}%", f"{100 * cost.effects / most:.2f}%"
        color = "d" if cost.effects > 1 else "o"
        parts = [
            svg("line", x1=once, x2=once, y1=2, y2=16, cls="dl"),
            svg("line", x1=once, x2=at, y1=9, y2=9, cls=f"ex {color}"),
            svg("circle", cx=at, cy=9, r=4.5, cls=color),
        ]
        label = f"{cost.setup}: {cost.effects:.2f} {action}s in a killed trial on average, 1 ordered"
        picture = svg("svg", *parts, role="img", aria_label=label)
        rows.append(el("div", el("span", cost.setup), picture, el("b", f"{cost.effects:.2f}"), cls="rw"))
    said = el("span", "mean over killed trials; 1 ordered in each", cls="mu")
    caption = el("figcaption", el("h3", f"{action.capitalize()}s per trial"), " ", said)
    return el("figure", caption, *rows, _axis(most, 1.0))


def _axis(most: float, step: float) -> Html:
    marks = []
    ticks = round(most / step) if step else 0
    for number in range(ticks + 1):
        anchor = "start" if number == 0 else "end" if number == ticks else "middle"
        words = f"{number * step:g}"
        marks.append(svg("text", words, x=f"{100 * number / max(ticks, 1):.2f}%", y=10, text_anchor=anchor, cls="mu"))
    return el("div", el("span"), svg("svg", *marks, aria_hidden="true"), el("b"), cls="rw axr")


def _step(most: float) -> float:
    """The distance of ticks: 1, 2 or 5 times a power of ten, so that there are at most five."""
    power = 0.001
    while True:
        for step in (1, 2, 5):
            if most <= TICKS_MAX * step * power:
                return step * power
        power *= 10
