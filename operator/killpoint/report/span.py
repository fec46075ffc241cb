"""A trial's time line as values: which stretches of time are drawn, and what lies in them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from killpoint.model.evidence import AttemptEvidence, Effect, PointPassed, Request, TrialEvidence
from killpoint.report.chronicle import started_of, was_killed

CUTS_MAX = 4
CUT_SHARE = 0.6
"""A pause is cut out where it is longer than this share of all that is left without it."""
MARGIN = 0.07
CUT_MIN_MS = 100
STRETCH_MIN_MS = 20
LANES_MAX = 6
POINTS_MAX = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Passing:
    """A point on an attempt's lane."""

    spec: str
    step: str
    place: str
    at_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """An attempt."""

    number: int
    name: str
    started_ms: int
    ended_ms: int | None
    passings: tuple[Passing, ...]
    killed: bool
    said: str
    """How it ended, in a word or two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A piece of time that is drawn: from and to, with a margin."""

    begin_ms: float
    end_ms: float

    def place(self, at_ms: float) -> float:
        """A moment as a share of the stretch, from 0 to 1 where it lies in it."""
        return (at_ms - self.begin_ms) / (self.end_ms - self.begin_ms)

    def holds(self, at_ms: float) -> bool:
        return self.begin_ms <= at_ms <= self.end_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """All that is drawn of a trial."""

    origin_ms: int
    lanes: tuple[Lane, ...]
    lanes_left_out: int
    requests: tuple[Request, ...]
    effects: tuple[Effect, ...]
    stretches: tuple[Stretch, ...]
    untimed: int
    """Points that carry no time: drawn evenly between their neighbours."""


def span_of(evidence: TrialEvidence) -> Span | None:
    """The time line of a trial; None where nothing of it has a time."""
    shown = evidence.attempts[:LANES_MAX]
    if not shown:
        return None
    lanes = tuple(_lane(attempt) for attempt in shown)
    requests = () if evidence.ledger is None else evidence.ledger.requests
    effects = () if evidence.ledger is None else evidence.ledger.effects
    moments: list[float] = [passing.at_ms for lane in lanes for passing in lane.passings]
    moments += [lane.ended_ms for lane in lanes if lane.ended_ms is not None]
    moments += [request.received_ms for request in requests] + [effect.at_ms for effect in effects]
    moments += [request.answered_ms for request in requests if request.answered_ms is not None]
    if not moments:
        return None
    return Span(
        origin_ms=lanes[0].started_ms,
        lanes=lanes,
        lanes_left_out=len(evidence.attempts) - len(shown),
        requests=requests,
        effects=effects,
        stretches=stretches(moments),
        untimed=sum(p.at_ms is None for attempt in shown if attempt.end is not None for p in attempt.end.points),
    )


def stretches(moments: Sequence[float]) -> tuple[Stretch, ...]:
    """The moments in as few stretches as show them well: the longest pauses are cut out, at most four."""
    times = sorted(set(moments))
    pauses = sorted(itertools.pairwise(times), key=lambda pair: pair[0] - pair[1])
    left = times[-1] - times[0]
    cuts: list[float] = []
    for begin, end in pauses[:CUTS_MAX]:
        if end - begin <= max(CUT_SHARE * (left - (end - begin)), CUT_MIN_MS):
            break
        cuts.append(end)
        left -= end - begin
    bounds = [times[0], *sorted(cuts)]
    made = []
    for index, begin in enumerate(bounds):
        inside = [t for t in times if t >= begin and (index + 1 == len(bounds) or t < bounds[index + 1])]
        made.append(_stretch(inside[0], inside[-1]))
    return tuple(_apart(made))


def _stretch(begin: float, end: float) -> Stretch:
    length = max(end - begin, STRETCH_MIN_MS)
    margin = length * MARGIN
    slack = (length - (end - begin)) / 2
    return Stretch(begin_ms=begin - slack - margin, end_ms=end + slack + margin)


def _apart(made: list[Stretch]) -> list[Stretch]:
    """Margins must not overlap: time is drawn once."""
    for index in range(len(made) - 1):
        if made[index].end_ms > made[index + 1].begin_ms:
            middle = (made[index].end_ms + made[index + 1].begin_ms) / 2
            made[index] = replace(made[index], end_ms=middle)
            made[index + 1] = replace(made[index + 1], begin_ms=middle)
    return made


def _lane(attempt: AttemptEvidence) -> Lane:
    end = attempt.end
    said = "end not seen"
    if end is not None:
        said = end.outcome.word.value if end.outcome is not None else end.reason.value
        said = f"exit {end.exit_code}" if end.outcome is None and end.exit_code is not None else said
    return Lane(
        number=attempt.id.number,
        name=f"attempt {attempt.id.number}",
        started_ms=started_of(attempt),
        ended_ms=None if end is None else end.at_ms,
        passings=_passings(attempt),
        killed=end is not None and was_killed(end),
        said=said,
    )


def _passings(attempt: AttemptEvidence) -> tuple[Passing, ...]:
    if attempt.end is None:
        return ()
    points = attempt.end.points
    if len(points) > POINTS_MAX:
        points = (*points[: POINTS_MAX // 2], *points[-POINTS_MAX // 2 :])
    times = _filled([point.at_ms for point in points], started_of(attempt), attempt.end.at_ms)
    return tuple(_passing(point, at) for point, at in zip(points, times, strict=True))


def _passing(point: PointPassed, at_ms: float) -> Passing:
    step, _, place = point.point.rpartition(".")
    return Passing(spec=point.spec, step=step or point.point, place=place if step else "", at_ms=at_ms)


def _filled(times: Sequence[int | None], begin: int, end: int) -> list[float]:
    """Moments with the missing ones spread evenly between their neighbours."""
    filled: list[float] = []
    for index, time in enumerate(times):
        if time is not None:
            filled.append(time)
            continue
        after = next(((i, t) for i, t in enumerate(times[index:], start=index) if t is not None), (len(times), end))
        before = filled[-1] if filled else float(begin)
        filled.append(before + (after[1] - before) / (after[0] - index + 1))
    return filled
