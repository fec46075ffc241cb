"""A trial's time line: a lane for each attempt, one for payments; long pauses are cut and said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from killpoint.model.evidence import Effect, Request, RequestOutcome, TrialEvidence
from killpoint.report.html.markup import NOTHING, Html, el, svg
from killpoint.report.html.panel import (
    CHARACTER_PIXELS,
    LANE,
    NAME_ABOVE,
    PHONE_PIXELS,
    TOP,
    Panel,
    axis,
    beside,
    words_at,
)
from killpoint.report.span import Lane, Passing, Span, Stretch, span_of
from killpoint.report.words import count, duration, money, shorten

PAGE_PIXELS = 1080
GAP_PIXELS = 84
SHARE_MIN = 0.2
"""The least part of the width that a stretch gets, however short it is."""
KEY_CHARACTERS = 10
LABEL_MIN = 8
"""Fewer characters than these say nothing."""


def timeline(evidence: TrialEvidence) -> Html:
    """The drawing, or a sentence that says why there is none."""
    span = span_of(evidence)
    if span is None:
        return el("p", "No time line: nothing of this trial carries a time.", cls="mu")
    shares = _shares(span.stretches)
    pixels = PAGE_PIXELS - GAP_PIXELS * (len(shares) - 1)
    parts: list[Html] = []
    for index, (stretch, share) in enumerate(zip(span.stretches, shares, strict=True)):
        if index:
            parts.append(_gap(span, span.stretches[index - 1], stretch))
        panel = Panel(span=span, stretch=stretch, pixels=share * pixels, first=index == 0)
        parts.append(_panel(panel))
    columns = f" {GAP_PIXELS}px ".join(f"{share:.3f}fr" for share in shares)
    drawing = el("div", *parts, cls="tg", style=f"--tg:{columns}")
    return Html(drawing + _left_out(span))


def _shares(stretches: tuple[Stretch, ...]) -> list[float]:
    lengths = [stretch.end_ms - stretch.begin_ms for stretch in stretches]
    whole = sum(lengths)
    least = min(SHARE_MIN, 1 / len(lengths))
    shares = [max(length / whole, least) for length in lengths]
    return [share / sum(shares) for share in shares]


def _left_out(span: Span) -> Html:
    words = []
    if span.lanes_left_out:
        words.append(f"{count(span.lanes_left_out, 'further attempt')} not drawn.")
    if span.untimed:
        words.append(f"{count(span.untimed, 'point')} without a time, drawn evenly.")
    return el("p", " ".join(words), cls="mu sm") if words else NOTHING


def _gap(span: Span, before: Stretch, after: Stretch) -> Html:
    begins = [f"{lane.name} starts" for lane in span.lanes if before.end_ms < lane.started_ms < after.begin_ms]
    words = ", ".join(begins)
    said = el("b", duration(after.begin_ms - before.end_ms))
    return el("div", el("span", said, " not drawn"), el("span", words) if words else NOTHING, cls="gap")


def _panel(panel: Panel) -> Html:
    parts = [part for index, lane in enumerate(panel.span.lanes) for part in _lane(panel, lane, TOP + LANE * index)]
    parts += _payments(panel)
    parts += axis(panel)
    parts += _names(panel)
    return svg("svg", *parts, cls="tl", width="100%", height=panel.height, role="img", aria_label=_label(panel))


def _label(panel: Panel) -> str:
    said = []
    for lane in panel.span.lanes:
        passed = [passing.spec for passing in lane.passings if panel.stretch.holds(passing.at_ms)]
        if passed:
            said.append(f"{lane.name} passes {', '.join(passed)}")
        if lane.ended_ms is not None and panel.stretch.holds(lane.ended_ms):
            said.append(f"{lane.name} ends: {'killed, ' if lane.killed else ''}{lane.said}")
    effects = [effect.action for effect in panel.span.effects if panel.stretch.holds(effect.at_ms)]
    if effects:
        said.append(f"payments commits {', '.join(effects)}")
    return "; ".join(said) or "nothing happens"


# --- an attempt ------------------------------------------------------------------------------------------------------


def _lane(panel: Panel, lane: Lane, y: int) -> Iterator[Html]:
    begin, end = panel.stretch.begin_ms, panel.stretch.end_ms
    ended = lane.ended_ms if lane.ended_ms is not None else end
    if lane.started_ms > end or ended < begin:
        yield svg("line", x1=0, x2="100%", y1=y, y2=y, cls="idle")
        said = "not started" if lane.started_ms > end else f"over, {lane.said}"
        yield words_at(said, "100%", y - 6, anchor="end", cls="mu")
        return
    left, right = panel.x(lane.started_ms), panel.x(ended)
    yield svg("line", x1=0, x2="100%", y1=y, y2=y, cls="idle")
    yield svg("line", x1=f"{left}%", x2=f"{right}%", y1=y, y2=y, cls="live")
    inside = [passing for passing in lane.passings if panel.stretch.holds(passing.at_ms)]
    for box in _boxes(inside, ended):
        yield from _box(panel, box, y)
    for passing in inside:
        yield svg(
            "line", x1=f"{panel.x(passing.at_ms)}%", x2=f"{panel.x(passing.at_ms)}%", y1=y - 13, y2=y + 13, cls="pt"
        )
    if lane.ended_ms is not None and panel.stretch.holds(lane.ended_ms):
        yield from _end(panel, lane, y)
    yield from _named(panel, lane, inside, y)


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A step, from its first point to the last that is inside it."""

    step: str
    begin_ms: float
    end_ms: float


def _boxes(passings: list[Passing], ended_ms: float) -> Iterator[Box]:
    """Steps as their points tell: from ``before`` to ``after``, or to the attempt's end where it never came there."""
    begun: dict[str, float] = {}
    for passing in passings:
        if passing.place == "before":
            begun.setdefault(passing.step, passing.at_ms)
        elif passing.place == "after" and passing.step in begun:
            yield Box(step=passing.step, begin_ms=begun.pop(passing.step), end_ms=passing.at_ms)
    for step, begin in begun.items():
        yield Box(step=step, begin_ms=begin, end_ms=ended_ms)


def _box(panel: Panel, box: Box, y: int) -> Iterator[Html]:
    left, right = panel.x(box.begin_ms), panel.x(box.end_ms)
    yield svg("rect", x=f"{left}%", width=f"{round(right - left, 2)}%", y=y - 10, height=20, cls="st")
    room = (right - left) / 100
    need = len(box.step) * CHARACTER_PIXELS + 4
    if need <= room * panel.pixels:
        cls = None if need <= room * PHONE_PIXELS else "dk"
        yield words_at(box.step, f"{(left + right) / 2:.2f}%", y + 4, anchor="middle", cls=cls)


def _end(panel: Panel, lane: Lane, y: int) -> Iterator[Html]:
    if lane.killed:
        last = lane.passings[-1] if lane.passings else None
        at = panel.x(last.at_ms if last is not None else lane.ended_ms or 0)
        yield svg("line", x1=f"{at}%", x2=f"{at}%", y1=y - 20, y2=y + 20, cls="kl")
        cross = svg("path", d="M-6-6L6 6M6-6L-6 6", cls="kx2")
        yield svg("svg", cross, x=f"{at}%", y=y, overflow="visible")
        said = (f"SIGKILL at {last.spec}", "SIGKILL") if last is not None else ("SIGKILL",)
        yield beside(panel, said, at, y - 22, cls="b")
        return
    at = panel.x(lane.ended_ms or 0)
    yield svg("circle", cx=f"{at}%", cy=y, r=3.5, cls="end")
    yield beside(panel, (lane.said,), at, y - 18, cls="b" if lane.said == "failed" else None)


def _named(panel: Panel, lane: Lane, inside: list[Passing], y: int) -> Iterator[Html]:
    """The point ``recorded``, which no step's box shows. Left out where it would run into another word."""
    taken = [panel.x(lane.ended_ms)] if lane.ended_ms is not None else []
    for passing in inside:
        x = panel.x(passing.at_ms)
        near = min((abs(x - other) for other in taken), default=100) / 100 * panel.pixels
        killed_here = lane.killed and passing is lane.passings[-1]
        if passing.place == "recorded" and not killed_here and near > 2 * CHARACTER_PIXELS * len("recorded"):
            taken.append(x)
            yield words_at("recorded", f"{x}%", y - 18, anchor="middle", cls="mu dk")


# --- payments --------------------------------------------------------------------------------------------------------


def _payments(panel: Panel) -> Iterator[Html]:
    y = panel.payments
    yield svg("line", x1=0, x2="100%", y1=y, y2=y, cls="ax")
    for request in panel.span.requests:
        if panel.stretch.holds(request.received_ms):
            yield from _request(panel, request, y)
    for effect in panel.span.effects:
        if panel.stretch.holds(effect.at_ms):
            yield svg("circle", cx=f"{panel.x(effect.at_ms)}%", cy=y, r=6, cls=_effect_class(panel.span, effect))
    yield from _labels(panel, y)


def _request(panel: Panel, request: Request, y: int) -> Iterator[Html]:
    left = panel.x(request.received_ms)
    right = panel.x(request.answered_ms if request.answered_ms is not None else request.received_ms)
    source = next(
        (index for index, lane in enumerate(panel.span.lanes) if request.attempt.endswith(f".{lane.number}")), None
    )
    if source is not None:
        for x in (left, right) if request.answered_ms is not None else (left,):
            yield svg("line", x1=f"{x}%", x2=f"{x}%", y1=TOP + LANE * source + 10, y2=y, cls="cn")
    yield svg("rect", x=f"{left}%", width=f"{round(max(right - left, 0.3), 2)}%", y=y - 2.5, height=5, cls="rq")
    if request.outcome is not RequestOutcome.COMMITTED:
        yield svg("circle", cx=f"{right}%", cy=y, r=5, cls="rp")


def _effect_class(span: Span, effect: Effect) -> str:
    same = sum(other.operation == effect.operation for other in span.effects)
    return "d" if same > 1 else "o"


def _labels(panel: Panel, y: int) -> Iterator[Html]:
    """What each effect is, below it as far as the panel reaches; in two rows, so that neighbours do not collide."""
    ends = [-100.0, -100.0]
    told = sorted(_told(panel), key=lambda pair: pair[0])
    for at_ms, name, said in told:
        x = panel.x(at_ms)
        strong = shorten(name, max(int(panel.least / CHARACTER_PIXELS), 1))
        most = int(panel.pixels / CHARACTER_PIXELS)
        words = shorten(said, most - len(strong) - 1) if most > len(strong) + LABEL_MIN else ""
        whole = f"{strong} {words}".strip()
        # A phone shows the strong words alone, on a panel that may be wider or narrower than the page's.
        halves = (len(whole) / 2 / panel.pixels, len(strong) / 2 / PHONE_PIXELS)
        half = min(max(halves) * CHARACTER_PIXELS * 100, 50)
        middle = round(min(max(x, half), 100 - half), 2)
        row = 0 if middle - half > ends[0] + 1 else 1
        ends[row] = middle + half
        bold = svg("tspan", strong, cls="b")
        more = svg("tspan", f" {words}", cls="dk") if words else NOTHING
        yield svg("text", bold, more, x=f"{middle}%", y=y + 22 + 16 * row, text_anchor="middle")


def _told(panel: Panel) -> Iterator[tuple[float, str, str]]:
    seen: dict[str, int] = {}
    for effect in sorted(panel.span.effects, key=lambda effect: effect.at_ms):
        seen[effect.action] = seen.get(effect.action, 0) + 1
        many = sum(other.action == effect.action for other in panel.span.effects) > 1
        if panel.stretch.holds(effect.at_ms):
            key = f"key {shorten(effect.key, KEY_CHARACTERS)}" if effect.key else "no key" if effect.amount else ""
            amount = money(effect.amount, effect.currency) if effect.amount else ""
            words = ", ".join(part for part in (amount, key) if part)
            yield effect.at_ms, f"{effect.action} {seen[effect.action]}" if many else effect.action, words
    for request in panel.span.requests:
        if request.outcome is RequestOutcome.REPLAYED and panel.stretch.holds(request.received_ms):
            yield request.answered_ms or request.received_ms, f"{request.action} answered again", "same key"


def _names(panel: Panel) -> Iterator[Html]:
    """Lanes are named in the first panel; on a phone, where panels stand below one another, in each."""
    cls = None if panel.first else "ph"
    for index, lane in enumerate(panel.span.lanes):
        yield words_at(lane.name, "0", TOP + LANE * index - NAME_ABOVE, anchor="start", cls=f"lb {cls or ''}".strip())
    yield words_at("payments", "0", panel.payments - 14, anchor="start", cls=f"lb {cls or ''}".strip())
