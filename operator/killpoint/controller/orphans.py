"""Orphans: pods whose experiment is gone. Our finalizer would keep them for ever, so they are freed."""

from __future__ import annotations

import logging

from killpoint.api.v1alpha1.spec import KIND
from killpoint.controller.freeing import free_pod
from killpoint.controller.requests import Requests
from killpoint.controller.subjects import Body

_log = logging.getLogger(__name__)


def owner_of(pod: Body) -> tuple[str, str] | None:
    """Name and UID of the experiment that a pod belongs to."""
    for reference in pod["metadata"].get("ownerReferences") or ():
        if reference.get("kind") == KIND and reference.get("controller"):
            return reference["name"], reference["uid"]
    return None


async def free_if_orphaned(requests: Requests, pod: Body) -> bool:
    """Free and delete a pod whose experiment is not there any more. Whether it was one."""
    owner = owner_of(pod)
    if owner is None:
        return False
    name, uid = owner
    found = await requests.experiment(name)
    if found is not None and found["metadata"]["uid"] == uid:
        return False
    _log.info("pod %s/%s is freed: experiment %s is gone", requests.namespace, pod["metadata"]["name"], name)
    await free_pod(requests, pod)
    return True
