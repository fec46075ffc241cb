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
CHARACTER_PIXELS = 7.2
"""The width of a character, bold ones among them."""
BESIDE_PIXELS = 6
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
    def least(self) -> float:
        """Its width where it is narrowest: on a page, or on a phone, where every panel is as wide as that."""
        return min(self.pixels, PHONE_PIXELS)

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
        words = f"{tick / 1000:.{digits}f}{' s' if first else ''}"
        half = len(words) * CHARACTER_PIXELS / 2 / panel.least * 100
        # At the rim, words turn inwards.
        anchor = "start" if x < half else "end" if x > 100 - half else "middle"
        yield words_at(words, f"{x}%", y + 18, anchor=anchor, cls="mu")
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


def beside(panel: Panel, words: tuple[str, ...], x: float, y: float, *, cls: str | None = None) -> Html:
    """Words at a place, on the side with more room. ``words``: from long to short; the first that fits there is said.

    The last one is said in any case.
    """
    right = x > 50  # noqa: PLR2004 (the middle)
    room = max(x, 100 - x) / 100 * panel.least - BESIDE_PIXELS
    fitting = next((one for one in words if len(one) * CHARACTER_PIXELS <= room), words[-1])
    return svg(
        "text",
        fitting,
        x=f"{x}%",
        dx=-BESIDE_PIXELS if right else BESIDE_PIXELS,
        y=y,
        text_anchor="end" if right else "start",
        cls=cls,
    )
