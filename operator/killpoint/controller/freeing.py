"""Freeing: what an experiment holds in the cluster and on the database server, and how it is let go."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from killpoint.controller.requests import Requests
from killpoint.controller.shared import Shared
from killpoint.controller.subjects import Subject
from killpoint.databases.errors import DatabaseError
from killpoint.kubernetes import names
from killpoint.kubernetes.client import ApiRefused
from killpoint.kubernetes.observe import is_owned
from killpoint.ports import JournalUnavailableError, SubstrateUnavailableError

AT_ONCE = 8
ROUNDS_MAX = 20
"""Lists of pods that are made until none is left; a list may be a moment old."""
PAUSE_SECONDS = 0.5

_log = logging.getLogger(__name__)


async def free_children(requests: Requests, uid: str) -> None:
    """Delete every pod and every secret of an experiment. Nothing to delete is a success.

    A pod that bears its labels and is not its own stays: labels anybody can set. Of secrets nothing can be read.

    Raises SubstrateUnavailableError when nobody answers, or pods come again and again.
    """
    selector = f"{names.EXPERIMENT_UID}={uid}"
    for _ in range(ROUNDS_MAX):
        pods = [pod for pod in await requests.pods(selector) if is_owned(pod, uid) and not _is_freed(pod)]
        if not pods:
            break
        room = asyncio.Semaphore(AT_ONCE)
        await asyncio.gather(*(_bounded(room, requests, pod) for pod in pods))
        await asyncio.sleep(PAUSE_SECONDS)
    else:
        raise SubstrateUnavailableError(f"experiment {uid} still has pods after {ROUNDS_MAX} rounds")
    try:
        await requests.delete_secrets(selector)
    except ApiRefused as refused:
        # They go with the object that owns them.
        _log.warning("secrets of experiment %s were not deleted: %s", uid, refused)


async def free_pod(requests: Requests, pod: Mapping[str, Any]) -> None:
    """Take our finalizer off a pod and delete it at once."""
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    change = {"metadata": {"uid": uid, "$deleteFromPrimitiveList/finalizers": [names.EVIDENCE]}}
    if await requests.patch_pod(name, change, strategic=True):
        await requests.delete_pod(name, uid=uid, grace_seconds=0)


async def drop_database(shared: Shared, subject: Subject, journal: str) -> None:
    """Drop the experiment's database and role. Where that fails, ``abandoned`` finds them later; the log says so."""
    try:
        databases = await shared.databases()
        await databases.drop_experiment(journal)
    except (DatabaseError, JournalUnavailableError) as error:
        _log.warning("experiment %s: its database (journal %s) was not dropped: %s", subject, journal, error)


async def _bounded(room: asyncio.Semaphore, requests: Requests, pod: Mapping[str, Any]) -> None:
    async with room:
        await free_pod(requests, pod)


def _is_freed(pod: Mapping[str, Any]) -> bool:
    """Whether the pod is on its way without us: its process is being ended, and nothing of ours holds it."""
    metadata = pod["metadata"]
    return (
        bool(metadata.get("deletionTimestamp"))
        and names.EVIDENCE not in (metadata.get("finalizers") or ())
        and not metadata.get("deletionGracePeriodSeconds")
    )
