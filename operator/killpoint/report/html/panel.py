"""A stretch of a time line as it is drawn: where a moment lies, the axis below, words beside a place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from killpoint.report.html.markup import Html, svg
from killpoint.report.span import Span, Stretch

LANE = 72
TOP = 50
NAME_ABOVE = 36
"""How far above its lane a lane's name stands: above the row of what happens on it."""
PHONE_PIXELS = 340
TICKS = (1, 2, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A stretch as it is drawn: where its lanes lie, and how wide it is on a page and on a phone."""

    span: Span
    stretch: Stretch
    pixels: float
    first: bool

    def x(self, at_ms: float) -> float:
        """A moment in percent of the panel's width."""
        return round(min(max(self.stretch.place(at_ms), 0.0), 1.0) * 100, 2)

    @property
    def payments(self) -> int:
        return TOP + LANE * len(self.span.lanes) + 8

    @property
    def axis(self) -> int:
        return self.payments + 46

    @property
    def height(self) -> int:
        return self.axis + 24


def axis(panel: Panel) -> Iterator[Html]:
    y = panel.axis
    yield svg("line", x1=0, x2="100%", y1=y, y2=y, cls="ax")
    begin = panel.stretch.begin_ms - panel.span.origin_ms
    end = panel.stretch.end_ms - panel.span.origin_ms
    step = _tick_ms(end - begin, max(int(min(panel.pixels, PHONE_PIXELS) // 64), 2))
    tick = (int(begin // step) + 1) * step
    first = True
    while tick <= end:
        x = panel.x(tick + panel.span.origin_ms)
        yield svg("line", x1=f"{x}%", x2=f"{x}%", y1=y, y2=y + 5, cls="ax")
        digits = 3 if step < 10 else 2  # noqa: PLR2004 (below ten milliseconds a hundredth of a second hides the step)
        anchor = "start" if x < 4 else "end" if x > 96 else "middle"  # noqa: PLR2004 (at the rim, words turn inwards)
        yield words_at(f"{tick / 1000:.{digits}f}{' s' if first else ''}", f"{x}%", y + 18, anchor=anchor, cls="mu")
        first = False
        tick += step


def _tick_ms(length: float, most: int) -> int:
    """The distance of ticks: 1, 2 or 5 times a power of ten, so that there are at most so many."""
    power = 1
    while True:
        for step in TICKS:
            if length / (step * power) <= most:
                return step * power
        power *= 10


def words_at(words: str, x: str, y: float, *, anchor: str, cls: str | None = None) -> Html:
    return svg("text", words, x=x, y=y, text_anchor=anchor, cls=cls)


def beside(words: str, x: float, y: float, *, cls: str | None = None) -> Html:
    """Words at a place, turned inwards so that they do not leave the panel."""
    right = x > 50  # noqa: PLR2004 (the middle)
    return svg("text", words, x=f"{x}%", dx=-6 if right else 6, y=y, text_anchor="end" if right else "start", cls=cls)
