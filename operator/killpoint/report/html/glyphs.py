"""Small drawings: a trial's dots, verdicts, marks, where a kill falls. Shape says what color says, too."""

from __future__ import annotations

from killpoint.model.cells import Kill
from killpoint.model.findings import Result, Verdict
from killpoint.model.summary import CellSummary, TrialRecord
from killpoint.report.effects import DIGITS_MAX
from killpoint.report.html.markup import Html, el, svg
from killpoint.report.standing import HARM, Mark, Standing, standing

STACK_MAX = 3
"""Up to so many effects a trial has one dot for each, above it a number."""
STEP = 9
WIDTH = 112
HEIGHT = 26
MIDDLE = 13.0
RISE = 8.2
UNPROVEN = (99, "nb")
"""The bar of the trials that prove nothing: the last one."""

SHAPES = {
    "exactly-once": '<circle cx="8" cy="8" r="4" class="o"/>',
    "duplicate": '<circle cx="8" cy="12" r="3.4" class="d"/><circle cx="8" cy="3.8" r="3.4" class="d"/>',
    "lost": '<circle cx="8" cy="8" r="4.2" class="l" stroke-dasharray="2.2 1.4"/>',
    "withheld": '<path d="M5.5 3.5v9M10.5 3.5v9" class="h"/>',
    "stranded": '<path d="M2.5 8h7M12.5 3.5v9" class="l"/>',
    "phantom": '<path d="M8 2.6L13.4 8 8 13.4 2.6 8z" class="l"/>',
    "wrong-payload": '<path d="M4 4h8v8H4z" class="f"/>',
    "divergent": '<path d="M8 3l5.2 9.6H2.8z" class="f"/>',
    "inconclusive": '<path d="M5.2 5.6a2.8 2.8 0 1 1 4.2 2.5q-1.4.8-1.4 2m0 2v1.2" class="n"/>',
    "set-apart": '<path d="M4.4 4.4l7.2 7.2m0-7.2l-7.2 7.2" class="n"/>',
    "pending": '<circle cx="8" cy="8" r="1.4" class="n"/>',
}
RESULTS = {
    Result.PASS: ("pass", "M2 7.5l3.5 3.5L12 3.5"),
    Result.FAIL: ("fail", "M2 5h10M2 9.5h10M9.5 1.5l-5 11"),
    Result.INCONCLUSIVE: ("inc", "M4 4.5a3 3 0 1 1 4.5 2.6Q7 8 7 9.3m0 2.6v.1"),
    Result.ERROR: ("err", "M7 1.5v6.5m0 4v.1"),
}


def symbols() -> Html:
    """The shapes, once for the page."""
    shapes = (svg("symbol", Html(shape), id=f"g-{name}", viewbox="0 0 16 16") for name, shape in SHAPES.items())
    return svg("svg", *shapes, width=0, height=0, cls="defs", aria_hidden="true")


def shape(name: str) -> Html:
    return svg("svg", svg("use", href=f"#g-{name}"), cls="g", aria_hidden="true")


def shape_of(record: TrialRecord) -> str:
    """The shape that stands for a trial."""
    match standing(record):
        case Standing.PENDING:
            return "pending"
        case Standing.SET_APART:
            return "set-apart"
        case _:
            return "inconclusive" if record.judgement is None else record.judgement.verdict.value


def badge(result: Result | None) -> Html:
    """The result as a word with a sign, in a frame."""
    if result is None:
        return el("span", "Running", cls="res inc")
    cls, path = RESULTS[result]
    sign = svg("svg", svg("path", d=path), viewbox="0 0 14 14", aria_hidden="true")
    return el("span", sign, result.value, cls=f"res {cls}")


def sign(mark: Mark) -> Html:
    """Whether an expectation is met, as a sign for the eye; say it in words beside it."""
    cls = {Mark.MET: "eq", Mark.UNMET: "ne", Mark.UNKNOWN: "uk", Mark.PENDING: "uk"}[mark]
    return el("i", mark.value, cls=cls, aria_hidden="true")


def dots(cell: CellSummary, action: str, *, label: str) -> Html:
    """One column a trial, one dot an effect; above ten trials a bar for each number of effects."""
    trials = max(cell.cell.trials, len(cell.trials))
    if trials > DIGITS_MAX:
        return _bars(cell, action, trials=trials, label=label)
    counts = cell.effects(action)
    stacks = [_stack(record, number) for record, number in zip(cell.trials, counts, strict=True)]
    base = MIDDLE + RISE / 2 * (max(stacks, default=1) - 1)
    marks = [
        _column(record, stack, number or 0, x=index * STEP + STEP // 2, base=base)
        for index, (record, stack, number) in enumerate(zip(cell.trials, stacks, counts, strict=True))
    ]
    marks += [_use("pending", x=index * STEP + STEP // 2, y=base) for index in range(len(cell.trials), trials)]
    return svg(
        "svg",
        *marks,
        cls="s",
        viewbox=f"0 0 {trials * STEP} {HEIGHT}",
        width=trials * STEP,
        height=HEIGHT,
        role="img",
        aria_label=label,
    )


def _stack(record: TrialRecord, effects: int | None) -> int:
    """How many dots stand on one another for a trial: one for a shape, or for a number."""
    plain = shape_of(record) in {"exactly-once", "duplicate"} and effects
    return effects if plain and effects and effects <= STACK_MAX else 1


def _column(record: TrialRecord, stack: int, effects: int, *, x: int, base: float) -> Html:
    name = shape_of(record)
    if name not in {"exactly-once", "duplicate"} or effects == 0:
        return _use(name, x=x, y=base)
    harm = record.judgement is not None and record.judgement.verdict in HARM
    cls = "d" if harm else "k" if record.evidence.coordinates.kill.is_control else "o"
    if effects > STACK_MAX:
        dot = svg("circle", cx=x, cy=base + 5, r=3.4, cls=cls)
        return Html(dot + svg("text", f"{effects}", x=x, y=base, cls="few"))
    return Html(
        "".join(svg("circle", cx=x, cy=round(base - RISE * level, 1), r=3.4, cls=cls) for level in range(stack))
    )


def _use(name: str, *, x: int, y: float) -> Html:
    return svg("use", href=f"#g-{name}", x=x - 6, y=y - 6, width=12, height=12)


def _bars(cell: CellSummary, action: str, *, trials: int, label: str) -> Html:
    bins: dict[tuple[int, str], int] = {}
    for record, effects in zip(cell.trials, cell.effects(action), strict=True):
        proves = effects is not None and shape_of(record) not in {"pending", "set-apart", "inconclusive"}
        place = (effects or 0, _bar_class(record)) if proves else UNPROVEN
        bins[place] = bins.get(place, 0) + 1
    rows = sorted(bins.items())
    bars = (
        svg("rect", x=0, y=index * 9 + 1, width=max(60 * number / trials, 1.5), height=7, cls=cls)
        for index, ((_, cls), number) in enumerate(rows)
    )
    return svg("svg", *bars, cls="s", width=62, height=max(len(rows) * 9, 9), role="img", aria_label=label)


def _bar_class(record: TrialRecord) -> str:
    return "d" if record.judgement is not None and record.judgement.verdict in HARM else "o"


def where(kill: Kill, steps: tuple[str, ...]) -> Html:
    """The run as a row of steps, with a cross where the first kill falls. Empty for a control."""
    if kill.is_control or not steps:
        return Html("")
    gap = min(26.0, WIDTH / len(steps) * 0.5)
    box = (WIDTH - gap * (len(steps) + 0.5)) / len(steps)
    step, _, place = kill.at[0].partition("#")[0].rpartition(".")
    parts = [svg("path", d=f"M0 7h{WIDTH}", cls="ax")]
    lefts = [gap / 2 + index * (box + gap) for index in range(len(steps))]
    parts += [svg("rect", x=round(left, 1), y=4, width=round(box, 1), height=6, cls="st") for left in lefts]
    if step in steps:
        left = lefts[steps.index(step)]
        # The tick is the record: the step's result is in the store from there on.
        parts.append(svg("path", d=f"M{left + box + gap / 2:.1f} 3v8", cls="rc"))
        places = {"before": -gap / 4, "sent": box / 2, "after": box + gap / 4, "recorded": box + gap * 0.75}
        at = left + places.get(place, -gap / 4)
        parts.append(svg("path", d=f"M{at - 3.5:.1f} 3.5l7 7m0-7l-7 7", cls="kx"))
    return svg("svg", *parts, cls="m", viewbox=f"0 0 {WIDTH} 14", aria_hidden="true")


def verdict_shape(verdict: Verdict) -> Html:
    return shape(verdict.value)
