"""The sweeper: what finished experiments still need. A new generation is acknowledged, retention is kept to."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from killpoint.controller.freeing import free_children
from killpoint.controller.requests import Requests
from killpoint.controller.subjects import Body, Due, Subject, due, is_stale, stamped
from killpoint.kubernetes.client import ApiRefused
from killpoint.ports import SubstrateUnavailableError

ROUND_SECONDS = 15.0
"""How late what is due may be done, and how long until what failed is tried again."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """What is to be done about one finished object."""

    subject: Subject
    due: Due
    stale: Body | None
    """The object, where its status is about an earlier generation. A mutable edit after the end makes it so, and
    ``kubectl wait`` would wait for ever."""

    @property
    def is_open(self) -> bool:
        return self.stale is not None or self.due != Due()


class Sweeper:
    """Learns of objects from the watch, and remembers those that something is to be done about."""

    def __init__(self, requests: Callable[[str], Requests], *, clock: Callable[[], float] = time.time) -> None:
        self._requests = requests
        self._clock = clock
        self._tasks: dict[str, _Task] = {}
        self._freed: set[str] = set()
        """Objects whose children have been freed."""
        self._wake = asyncio.Event()

    def note(self, body: Body) -> None:
        """The object is like this now."""
        task = _Task(subject=Subject.of(body), due=due(body), stale=body if is_stale(body) else None)
        if not task.is_open:
            self._tasks.pop(task.subject.uid, None)
            return
        self._tasks[task.subject.uid] = task
        if task.stale is not None:
            self._wake.set()

    def forget(self, uid: str) -> None:
        """The object is gone."""
        self._tasks.pop(uid, None)
        self._freed.discard(uid)

    async def run(self) -> None:
        """Do what is due, for ever."""
        while True:
            self._wake.clear()
            await self.once()
            try:
                async with asyncio.timeout(ROUND_SECONDS):
                    await self._wake.wait()
            except TimeoutError:
                continue  # the next round

    async def once(self) -> None:
        """Do what is due now."""
        for task in tuple(self._tasks.values()):
            await self._do_safely(task)

    async def _do_safely(self, task: _Task) -> None:
        try:
            await self._do(task)
        except (ApiRefused, SubstrateUnavailableError) as error:
            _log.warning("experiment %s: what is due after its end is tried again: %s", task.subject, error)
        except Exception:  # noqa: BLE001 - the sweeper's supervision point: no object may stop it for the others
            _log.exception("experiment %s: what is due after its end failed", task.subject)

    async def _do(self, task: _Task) -> None:
        requests = self._requests(task.subject.namespace)
        uid, now = task.subject.uid, self._clock()
        if task.stale is not None:
            await self._acknowledge(requests, task.subject, task.stale)
        if task.due.children is not None and now >= task.due.children and uid not in self._freed:
            await free_children(requests, uid)
            self._freed.add(uid)
        if task.due.experiment is not None and now >= task.due.experiment:
            _log.info("experiment %s is deleted: spec.retention.experimentAfter", task.subject)
            await requests.delete_experiment(task.subject)
            self._tasks.pop(uid, None)

    async def _acknowledge(self, requests: Requests, subject: Subject, body: Body) -> None:
        """Put the generation of now into the conditions. Where the object has moved on, its next event comes here."""
        version = body["metadata"]["resourceVersion"]
        if not await requests.apply_status(subject, stamped(body), version=version):
            _log.debug("experiment %s has moved on", subject)
        task = self._tasks.get(subject.uid)
        if task is not None and task.stale is body:
            self._tasks[subject.uid] = _Task(subject=subject, due=task.due, stale=None)
