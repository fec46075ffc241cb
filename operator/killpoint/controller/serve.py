"""Serve: the operator from its start to its end."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager

import kopf

from killpoint.controller.abandoned import drop_abandoned_for_ever
from killpoint.controller.credentials import api_client
from killpoint.controller.evidence import application, finder, served
from killpoint.controller.handlers import kopf_settings, registry_of, scope_of
from killpoint.controller.lease import Lease
from killpoint.controller.probes import Answer, probes
from killpoint.controller.requests import Requests
from killpoint.controller.roster import BEAT_SECONDS_MAX, Roster
from killpoint.controller.settings import Settings
from killpoint.controller.shared import Shared, catalog_of
from killpoint.controller.sweeper import Sweeper
from killpoint.ports import SubstrateUnavailableError

CRD_PAUSE_SECONDS = 5.0
CRD_TELL_SECONDS = 60.0

_log = logging.getLogger(__name__)


class LeaseLostError(Exception):
    """Another operator may be at work by now; this one has stopped."""


async def serve(settings: Settings) -> None:
    """Look after experiments until the process is asked to end. Raises CredentialsError and LeaseLostError."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    roster = Roster(places=settings.experiments_max, clock=time.monotonic)
    ready = asyncio.Event()
    answers = {
        "/healthz": lambda: liveness(roster),
        "/readyz": lambda: Answer(well=ready.is_set(), document={"ready": ready.is_set()}),
    }
    async with await api_client() as api, probes(settings.probes_port, answers):
        requests = Requests(api, settings.namespace)
        lease = Lease(requests, identity=settings.identity, clock=time.monotonic)
        if not await _unless_stopped(_crd_and_lease(requests, lease, ready), stop):
            return
        try:
            async with (
                Shared(settings, catalog=catalog_of(settings), api=api, holds=lease.holds) as shared,
                served(application(finder(shared)), settings.evidence_port),
            ):
                await _work(roster, shared, lease, stop)
        finally:
            await lease.give_back()


def liveness(roster: Roster) -> Answer:
    """An operator that waits for services is well. One with an experiment that does not even wait hangs."""
    silent = roster.silent_seconds
    return Answer(well=silent <= BEAT_SECONDS_MAX, document={"silentSeconds": round(silent, 1)})


async def _crd_and_lease(requests: Requests, lease: Lease, ready: asyncio.Event) -> None:
    told = -CRD_TELL_SECONDS
    while not await _knows_experiments(requests):
        if time.monotonic() - told >= CRD_TELL_SECONDS:
            _log.error("the API server does not know CrashExperiment: install killpoint's CustomResourceDefinition")
            told = time.monotonic()
        await asyncio.sleep(CRD_PAUSE_SECONDS)
    ready.set()  # one that waits for the lease is as ready as can be
    await lease.acquire()


async def _knows_experiments(requests: Requests) -> bool:
    try:
        return await requests.serves_experiments()
    except SubstrateUnavailableError as error:
        _log.warning("%s", error)
        return False


async def _work(roster: Roster, shared: Shared, lease: Lease, stop: asyncio.Event) -> None:
    """Run kopf while the lease is ours."""
    settings = shared.settings
    sweeper = Sweeper(shared.requests)
    abandoned = drop_abandoned_for_ever(shared, is_attended=lambda uid: roster.seat(uid) is not None)
    async with _beside(sweeper.run(), stop), _beside(abandoned, stop), _beside(lease.keep(), stop) as keeping:
        _log.info("looking after experiments in %s", ", ".join(settings.namespaces) or "all namespaces")
        await kopf.operator(
            registry=registry_of(roster=roster, sweeper=sweeper, shared=shared),
            settings=kopf_settings(),
            standalone=True,
            stop_flag=stop,
            **scope_of(settings),
        )
        if keeping.done():
            raise LeaseLostError("the lease is lost")


@asynccontextmanager
async def _beside(work: Coroutine[None, None, None], stop: asyncio.Event) -> AsyncIterator[asyncio.Task[None]]:
    """Have something done beside the block. Where it ends, or fails, by itself, all is stopped."""
    task: asyncio.Task[None] = asyncio.create_task(work)
    task.add_done_callback(lambda _: stop.set())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _unless_stopped(work: Coroutine[None, None, None], stop: asyncio.Event) -> bool:
    """Wait for something. False: the process is asked to end first."""
    task: asyncio.Task[None] = asyncio.create_task(work)
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            return False
        await task
        return True
    finally:
        for waiting in (task, stopping):
            waiting.cancel()
        await asyncio.gather(task, stopping, return_exceptions=True)
