"""Follow an experiment to its end, as its status tells it; patient with an API server that is away for a while."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from killpoint.cli.cluster.experiments import (
    Document,
    Experiments,
    count_of,
    is_over,
    name_of,
    standing_of,
    status_of,
    uid_of,
)
from killpoint.cli.exits import Exit, Stop
from killpoint.cli.progress import Show
from killpoint.ports import SubstrateUnavailableError

POLL_SECONDS = 1.0
ACCEPT_SECONDS_MAX = 30.0
"""How long an experiment may be without a word from an operator."""
OUTAGE_SECONDS_MAX = 120.0
"""How long the API server may be away without a break before the command gives up."""
QUIET_SECONDS = 120.0
"""After so long without any news, people are told that there is none."""
ORDINARY = frozenset({"Running", ""})
"""Where an experiment stands when all is well: the progress says enough."""
STARTING = "PodsWaiting"
GOES_ON_SECONDS = 30.0
"""How long none waits until that is over: a trial that is taken again is told of anew after a while, as the first."""
POD = re.compile(r"\bpod \S+")
STATE = re.compile(r" \((?:[A-Z]\w+|\d+ more wait|take \d+ of \d+)\)")
QUOTES = " The cluster says: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Time:
    """Time as it passes for a command."""

    now: Callable[[], float] = time.monotonic
    """In seconds."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class _News:
    """What was shown already, and when something new was last seen."""

    def __init__(self, show: Show, now: float) -> None:
        self._show = show
        self._since = now
        self._status: Document = {}
        self._standing = ""
        self._told = ""
        """The gist of what it was last said to wait for; empty once it was said to go on."""
        self._well_since: float | None = None

    def see(self, body: Document, now: float) -> None:
        status = status_of(body)
        if status != self._status:
            self._status, self._since = status, now
        elif now - self._since >= QUIET_SECONDS:
            self._since = now
            self._show.prepare(
                f"nothing new for {QUIET_SECONDS:.0f} s: does the operator still run?"
                " `kubectl get pods --all-namespaces --selector=app.kubernetes.io/component=operator` shows it"
            )
        count = count_of(body)
        if count is not None:
            self._show.trials(count)
        reason, message = standing_of(body)
        if reason in ORDINARY:
            self._is_well(now)
        else:
            self._waits(reason, message)

    def _waits(self, reason: str, message: str) -> None:
        self._standing, self._well_since = reason, None
        gist = f"{reason}: {_gist(message)}"
        if gist != self._told:
            self._told = gist
            self._show.prepare(f"{reason}: {message}" if message else reason)

    def _is_well(self, now: float) -> None:
        self._well_since = now if self._well_since is None else self._well_since
        pause = GOES_ON_SECONDS if self._standing == STARTING else 0.0
        if self._told and now - self._well_since >= pause:
            self._told = ""
            self._show.prepare("it goes on")


def _gist(message: str) -> str:
    """A message without what differs from one pod to the next, and from one state of a pull to the next."""
    return STATE.sub("", POD.sub("pod", message.partition(QUOTES)[0]))


async def follow(experiments: Experiments, applied: Document, show: Show, passing: Time) -> Document:
    """Wait until an experiment is over, whatever its result: the object as it is then. Raises Stop."""
    began = passing.now()
    away_since: float | None = None
    news = _News(show, began)
    while True:
        try:
            body = await experiments.get(name_of(applied))
        except SubstrateUnavailableError as error:
            away_since = passing.now() if away_since is None else away_since
            if passing.now() - away_since > OUTAGE_SECONDS_MAX:
                raise _out_of_reach(error) from error
            await passing.sleep(POLL_SECONDS)
            continue
        away_since = None
        if body is None or uid_of(body) != uid_of(applied):
            raise Stop(Exit.NOT_EXECUTED, f"experiment {_called(experiments, applied)} was deleted by somebody else.")
        if is_over(body):
            return body
        news.see(body, passing.now())
        if not status_of(body) and passing.now() - began > ACCEPT_SECONDS_MAX:
            raise _not_accepted(experiments, applied)
        await passing.sleep(POLL_SECONDS)


async def gone(experiments: Experiments, body: Document, passing: Time, *, seconds_max: float) -> bool:
    """Wait until this very object is not there any more. False: it still is."""
    deadline = passing.now() + seconds_max
    while True:
        found = await experiments.get(name_of(body))
        if found is None or uid_of(found) != uid_of(body):
            return True
        if passing.now() >= deadline:
            return False
        await passing.sleep(POLL_SECONDS)


def _called(experiments: Experiments, body: Document) -> str:
    return f"{experiments.namespace}/{name_of(body)}"


def _out_of_reach(error: SubstrateUnavailableError) -> Stop:
    return Stop(
        Exit.NOT_EXECUTED,
        f"{error}\nIt was away for {OUTAGE_SECONDS_MAX:.0f} s. The experiment goes on without this command;"
        " the same command waits for it again.",
    )


def _not_accepted(experiments: Experiments, body: Document) -> Stop:
    return Stop(
        Exit.NOT_EXECUTED,
        f"no operator has accepted experiment {_called(experiments, body)} within {ACCEPT_SECONDS_MAX:.0f} s.\n"
        f"See whether one runs and looks after namespace {experiments.namespace} (the chart's `namespaces`):"
        " kubectl get pods --all-namespaces --selector=app.kubernetes.io/component=operator\n"
        "The experiment stays, and begins when one does. To take it back:"
        f" kubectl --namespace={experiments.namespace} delete crashexperiment {name_of(body)}",
    )
