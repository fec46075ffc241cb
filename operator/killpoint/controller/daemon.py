"""The daemon of one experiment: from its object to the last status, pass after pass, through whatever goes wrong."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from killpoint.api.conditions import Standing
from killpoint.api.v1alpha1.status import Report
from killpoint.controller.events import tell_change
from killpoint.controller.roster import Roster, Seat
from killpoint.controller.site import Order, Session, Site
from killpoint.controller.statuses import (
    QUEUED,
    SUSPENDED,
    Document,
    Verdictless,
    carried,
    ended_by,
    status_document,
    told,
    without_run,
)
from killpoint.controller.subjects import Body, Subject, generation, journal_of, keeps_children, seconds_of
from killpoint.controller.supervision import AWAY, TERMINAL, Trouble, end_of, standing_of, waiting_for
from killpoint.controller.writer import ObjectGoneError, StatusWriter
from killpoint.engine import Step
from killpoint.kubernetes.client import ApiRefused
from killpoint.model.cells import AttemptId
from killpoint.ports import FencedError

POLL_SECONDS = 1.0
"""The shortest pause between two passes of which the first one changed nothing: pods wake it before."""
IDLE_SECONDS = 60.0
"""How often one looks around that waits for somebody else."""
FENCED_SECONDS = 20.0
"""Longer than a lease: whoever took the run over has it, or this operator has been ended by then."""

_log = logging.getLogger(__name__)


class Daemon:
    """Looks after one experiment. ``body`` gives the object as it is now."""

    def __init__(
        self,
        body: Callable[[], Body],
        *,
        site: Site,
        seat: Seat,
        roster: Roster,
        now_ms: Callable[[], int],
    ) -> None:
        self._subject = Subject.of(body())
        self._body = body
        self._site = site
        self._seat = seat
        self._roster = roster
        self._now_ms = now_ms
        self._writer = StatusWriter(site.objects, self._subject, known=body().get("status"), now_ms=now_ms)
        self._trouble = Trouble()
        self._end: Verdictless | None = None
        """Why it ends without a result, once that is known."""
        self._order: Order | None = None
        self._generation = -1
        """Of the object that the order was read from."""
        self._sequence = 0
        """The journal's number after the last pass."""
        self._shown = -1
        """The journal's number that the status was last made of; -1: it tells of something else."""
        self._standing: Standing | None = None
        """That the status was then made with."""
        self._rests = False
        """Whether it is suspended and nothing of it runs."""

    async def run(self) -> None:
        """Return when the experiment is at its end, or is to be left alone. Never raises for what is its own fault."""
        known = self._writer.known
        _log.info("experiment %s: %s", self._subject, f"taken over ({told(known)[0]})" if known else "seen")
        while not self._seat.leaving:
            self._seat.rest()
            try:
                if await self._attempt():
                    return
            except ObjectGoneError:
                return
            except Exception as error:  # noqa: BLE001 - the supervision point: no experiment may stop another
                await self._suffer(error)

    async def _attempt(self) -> bool:
        """Get on as far as it goes. Whether the experiment is at its end, and its last status written."""
        if self._end is not None:
            await self._give_up(self._end)
            return True
        order = await self._ordered()
        experiment = order.experiment
        if self._rests and experiment.suspended and not experiment.aborted:
            await self._seat.pause(IDLE_SECONDS)
            return False
        # What is to be aborted need not wait for room: it makes some.
        if not self._roster.place(self._subject.uid) and not experiment.aborted:
            await self._report(SUSPENDED if experiment.suspended else QUEUED)
            await self._seat.pause(IDLE_SECONDS)
            return False
        try:
            async with self._site.session(order, self._body()) as opened:
                return await self._passes(opened)
        finally:
            self._roster.release(self._subject.uid)

    async def _passes(self, opened: Session) -> bool:
        """Pass after pass. Whether the experiment came to its end."""
        swept = False
        while not self._seat.leaving:
            self._seat.rest()
            order = await self._ordered()
            opened.engine.steer(order.experiment)
            try:
                step = await self._pass(opened, order)
            except AWAY as error:
                swept = False  # a trial may have been judged, and not freed
                await self._wait_for(error)
                continue
            if step.wake_after_seconds is None:
                await self._finish(opened, order)
                return True
            if not swept:
                swept = await self._sweep(opened, step)
            await self._show(opened, SUSPENDED if order.experiment.suspended else waiting_for(step.waiting))
            if order.experiment.suspended and not order.experiment.aborted and _is_idle(step):
                self._rests = True
                return False
            if step.wake_after_seconds:
                await self._seat.pause(max(step.wake_after_seconds, POLL_SECONDS))
        return False

    async def _sweep(self, opened: Session, step: Step) -> bool:
        """Free what is held by trials that are judged. Whether all of it was asked to go."""
        try:
            await opened.substrate.sweep(_expected(step))
        except AWAY as error:
            await self._wait_for(error)
            return False
        return True

    async def _pass(self, opened: Session, order: Order) -> Step:
        if not order.experiment.aborted:
            # Without the ledger nothing can be judged: trials are not to be spoiled by having waited for it.
            await self._site.look_at_services()
        step = await opened.engine.step()
        if step.wake_after_seconds is not None:  # at the end, more is needed than what a pass asks
            self._trouble = self._trouble.back()
        self._sequence = step.state.sequence
        return step

    async def _ordered(self) -> Order:
        """What the object asks for now. Raises ProblemsError."""
        body = self._body()
        if self._order is None or generation(body) != self._generation:
            self._order = await self._site.order(body)
            self._generation = generation(body)
            self._rests = False
        return self._order

    # --- what goes wrong ---------------------------------------------------------------------------------------

    async def _suffer(self, error: Exception) -> None:
        """Draw the consequence of an error, and wait as long as it asks for."""
        match error:
            case FencedError():
                _log.warning("experiment %s: %s", self._subject, error)
                await self._seat.pause(FENCED_SECONDS)
            case _ if isinstance(error, TERMINAL):
                self._end = end_of(error)
            case _ if isinstance(error, AWAY):
                await self._wait_for(error)
            case _:
                await self._fail(error)

    async def _wait_for(self, error: Exception) -> None:
        """Something does not answer: say so after a while, and try again."""
        now = asyncio.get_running_loop().time()
        self._trouble = self._trouble.away(now)
        if self._trouble.away_times == 1:
            _log.warning("experiment %s waits: %s", self._subject, error)
        if self._trouble.is_worth_telling:
            await self._report_if_possible(standing_of(error, stalled=self._trouble.is_stalled(now)))
        await self._seat.pause(self._trouble.pause_seconds)

    async def _fail(self, error: Exception) -> None:
        """Something that nobody thought of: try again, and end it when that does not help."""
        _log.error("experiment %s failed unexpectedly", self._subject, exc_info=error)
        self._trouble = self._trouble.failed(self._sequence)
        if self._trouble.is_hopeless:
            self._end = end_of(error)
        else:
            await self._report_if_possible(standing_of(error, stalled=True))
        await self._seat.pause(self._trouble.pause_seconds)

    async def _give_up(self, end: Verdictless) -> None:
        """End it without a result: what it holds is freed, what was seen of it stays in its status."""
        await self._free()
        await self._write_last(self._unseen(end.standing, end))

    # --- the status --------------------------------------------------------------------------------------------

    async def _show(self, opened: Session, standing: Standing | None) -> None:
        """Bring the status up to date, if there is something new and it is time for it."""
        sequence = opened.engine.state.sequence
        known = (self._writer.known or {}).get("observedGeneration")
        same = sequence == self._shown and known == self._generation and standing == self._standing
        if same or not self._writer.is_due:
            return
        began = asyncio.get_running_loop().time()
        status = await self._seen(opened, standing)
        self._writer.took(asyncio.get_running_loop().time() - began)
        try:
            await self._write(status)
        except ApiRefused as refused:
            # The run is well. Its last status is written until it is taken, and the trouble comes up there.
            _log.error("experiment %s: its status was refused: %s", self._subject, refused)
        self._shown, self._standing = sequence, standing

    async def _seen(self, opened: Session, standing: Standing | None = None, report: Report | None = None) -> Document:
        """The status of the run as it stands. In a thread: thousands of trials take their time."""
        made = partial(status_document, generation=generation(self._body()), standing=standing, report=report)
        return await asyncio.to_thread(lambda: made(opened.summary()))

    def _unseen(self, standing: Standing, end: Verdictless | None = None) -> Document:
        """The status of an experiment whose run is not looked at, with the figures of the one that is there."""
        body = self._body()
        created = seconds_of(body["metadata"].get("creationTimestamp"))
        created_ms = self._now_ms() if created is None else int(created * 1000)
        summary = without_run(self._subject, created_ms=created_ms)
        if end is not None:
            summary = ended_by(end, summary, now_ms=self._now_ms())
        return carried(status_document(summary, generation=generation(body), standing=standing), self._writer.known)

    async def _report(self, standing: Standing) -> None:
        await self._write(self._unseen(standing))

    async def _write(self, status: Document) -> None:
        before = self._writer.known
        self._shown = -1
        if await self._writer.write(status):
            await self._tell(before, status)

    async def _report_if_possible(self, standing: Standing) -> None:
        """Tell people of trouble. The trouble may be that nobody can be told."""
        try:
            await self._report(standing)
        except ObjectGoneError:
            self._seat.leave()
        except Exception as error:  # noqa: BLE001 - whatever it is, the trouble itself is what matters
            _log.warning("experiment %s: its status was not written: %s", self._subject, error)

    async def _finish(self, opened: Session, order: Order) -> None:
        """The run is over: free what it held, keep its evidence, and write the status of the end as the last act."""
        if not keeps_children(self._body()):
            await self._site.free_children()
        await self._site.drop_database(journal_of(self._body()))
        report = await self._site.keep_evidence(order, opened)
        await opened.journal.end()
        # Not before: whatever fails above is told of, and a status with a result in it would be the last one.
        await self._write_last(await self._seen(opened, report=report))

    async def _write_last(self, status: Document) -> None:
        before = self._writer.known
        await self._tell(before, status)
        await self._writer.write_last(status)

    async def _free(self) -> None:
        await self._site.free_children()
        await self._site.drop_database(journal_of(self._body()))

    async def _tell(self, before: Document | None, status: Document) -> None:
        await tell_change(self._site.objects, self._subject, before=before, now=status, now_ms=self._now_ms())


def _expected(step: Step) -> frozenset[AttemptId]:
    """The attempts whose pods may be there: those of trials that are not judged."""
    return frozenset(attempt for trial in step.state.open.values() for attempt in trial.attempts)


def _is_idle(step: Step) -> bool:
    """Whether every trial that was started is judged."""
    return not step.state.open
