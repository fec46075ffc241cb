"""Handlers: what kopf calls, and how it is set up. They hold no logic of their own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

import kopf

from killpoint.controller.composition import ClusterSite
from killpoint.controller.credentials import login
from killpoint.controller.daemon import Daemon
from killpoint.controller.deletion import let_go
from killpoint.controller.orphans import free_if_orphaned
from killpoint.controller.roster import Roster
from killpoint.controller.settings import Settings
from killpoint.controller.shared import Shared, now_ms
from killpoint.controller.subjects import GROUP, PLURAL, VERSION, Body, Subject, is_finished, is_leaving
from killpoint.controller.sweeper import Sweeper
from killpoint.kubernetes import names
from killpoint.ports import SubstrateUnavailableError

FINALIZER = "killpoint.dev/kopf"
LEAVE_SECONDS = 5.0
"""How long a pass may still take when its daemon is to leave."""
INSTANT_EXIT_SECONDS = 10.0
"""kopf waits so long for a daemon within the handling of a deletion; otherwise it looks again a minute later."""
SERVER_SECONDS = 600
CLIENT_SECONDS = 660
CONNECT_SECONDS = 10
REQUEST_SECONDS = 30
WORKERS_MAX = 64
IDLE_SECONDS = 0.2
"""How long a worker of kopf's stays with an object after an event. Its place is one of few, and pods come and go."""
CHUNK = 100

_log = logging.getLogger(__name__)


class NoDiffBase(kopf.DiffBaseStorage):
    """Keeps no copy of the specification in an annotation: nothing here asks what has changed."""

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:  # noqa: ARG002 - kopf's signature
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        """Keep nothing."""


def kopf_settings() -> kopf.OperatorSettings:
    """Kopf as it is used here: no annotations, no peering, no Events of its own, watches that end by themselves."""
    settings = kopf.OperatorSettings()
    settings.persistence.finalizer = FINALIZER
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=names.DOMAIN, v1=False)
    settings.persistence.diffbase_storage = NoDiffBase()
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.networking.request_timeout = REQUEST_SECONDS
    settings.networking.connect_timeout = CONNECT_SECONDS
    settings.watching.server_timeout = SERVER_SECONDS
    settings.watching.client_timeout = CLIENT_SECONDS
    settings.watching.connect_timeout = CONNECT_SECONDS
    settings.watching.chunk_size = CHUNK
    settings.watching.label_selectors["v1", "pods"] = f"{names.MANAGED_BY}=killpoint"
    settings.queueing.worker_limit = WORKERS_MAX
    settings.queueing.idle_timeout = IDLE_SECONDS
    settings.background.instant_exit_timeout = INSTANT_EXIT_SECONDS
    settings.process.ultimate_exiting_timeout = 60
    return settings


def scope_of(settings: Settings) -> Mapping[str, Any]:
    """Kopf's arguments for where it looks."""
    return {"namespaces": list(settings.namespaces)} if settings.namespaces else {"clusterwide": True}


def is_unfinished(body: Body, **_: object) -> bool:
    """Whether an experiment has a daemon."""
    return not is_finished(body)


def goes_unfinished(body: Body, **_: object) -> bool:
    """Whether an experiment is deleted in the midst of its run. True of such alone: kopf then keeps no annotation."""
    return is_leaving(body) and not is_finished(body)


def registry_of(*, roster: Roster, sweeper: Sweeper, shared: Shared) -> kopf.OperatorRegistry:
    """All handlers."""
    registry = kopf.OperatorRegistry()
    experiments = (GROUP, VERSION, PLURAL)
    kopf.on.login(registry=registry, id="login")(login)

    @kopf.on.cleanup(registry=registry, id="close")
    async def close(**_: object) -> None:
        # All daemons have left. Connections have tasks of their own, which kopf would take for hung ones of its own.
        await shared.close()

    @kopf.daemon(*experiments, registry=registry, id="experiment", when=is_unfinished, cancellation_timeout=1.0)
    async def attend(body: kopf.Body, stopped: kopf.DaemonStopped, **_: object) -> None:
        subject = Subject.of(body)
        seat = roster.sit(subject.uid)
        try:
            site = ClusterSite(subject, shared)
            daemon = Daemon(lambda: body, site=site, seat=seat, roster=roster, now_ms=now_ms)
            await _until_stopped(asyncio.create_task(daemon.run()), stopped, seat.leave)
        finally:
            roster.rise(subject.uid, seat)

    @kopf.on.delete(*experiments, registry=registry, id="let-go", when=goes_unfinished)
    async def leave(body: kopf.Body, **_: object) -> None:
        await let_go(body, roster=roster, shared=shared)

    @kopf.on.event(*experiments, registry=registry, id="experiment-seen")
    async def experiment_seen(event: kopf.RawEvent, **_: object) -> None:
        body: Any = event["object"]
        uid = body["metadata"]["uid"]
        if event["type"] == "DELETED":
            roster.forget(uid)
            sweeper.forget(uid)
            return
        roster.note(uid)
        roster.wake(uid)
        sweeper.note(body)

    @kopf.on.event("", "v1", "pods", registry=registry, id="pod-seen", labels={names.EXPERIMENT_UID: kopf.PRESENT})
    async def pod_seen(event: kopf.RawEvent, **_: object) -> None:
        pod: Any = event["object"]
        uid = pod["metadata"]["labels"][names.EXPERIMENT_UID]
        if roster.wake(uid) or roster.knows(uid) or event["type"] == "DELETED":
            return
        try:
            await free_if_orphaned(shared.requests(pod["metadata"]["namespace"]), pod)
        except SubstrateUnavailableError as error:
            _log.warning("a pod may be an orphan, and nobody can say: %s", error)

    return registry


async def _until_stopped(task: asyncio.Task[None], stopped: kopf.DaemonStopped, leave: Callable[[], None]) -> None:
    """Wait for a daemon's task, and end it when kopf says so: by itself first, then by cancelling it."""
    waiting: asyncio.Future[Any] = asyncio.ensure_future(stopped.wait())
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            leave()
            await asyncio.wait({task}, timeout=LEAVE_SECONDS)
    finally:
        waiting.cancel()
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled():
        task.result()  # what nobody caught is kopf's to log, and to start again
