"""Kubernetes Events at the changes of an experiment: what ``kubectl describe`` shows."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping
from typing import Any

from killpoint.api.status import time_of
from killpoint.api.v1alpha1.spec import API_VERSION, KIND
from killpoint.controller.site import Objects
from killpoint.controller.statuses import told
from killpoint.controller.subjects import Subject
from killpoint.kubernetes.client import ApiRefused
from killpoint.model.lines import one_line
from killpoint.ports import SubstrateUnavailableError

NAME_CHARACTERS_MAX = 200
MESSAGE_CHARACTERS_MAX = 1024
COMPONENT = "killpoint"
NORMAL = frozenset({"AsExpected", "Queued", "Running", "Suspended", "Aborted"})
"""Reasons that nobody has to do anything about."""

_log = logging.getLogger(__name__)


def event_of(subject: Subject, *, reason: str, message: str, now_ms: int) -> dict[str, Any]:
    """An Event about an experiment."""
    time = time_of(now_ms)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{subject.name[:NAME_CHARACTERS_MAX].rstrip('.-')}.{secrets.token_hex(8)}",
            "namespace": subject.namespace,
        },
        "involvedObject": {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "name": subject.name,
            "namespace": subject.namespace,
            "uid": subject.uid,
        },
        "type": "Normal" if reason in NORMAL else "Warning",
        "reason": reason,
        "message": one_line(message)[:MESSAGE_CHARACTERS_MAX],
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    }


def message_of(status: Mapping[str, Any]) -> str:
    """What an Event says of the status that it is about."""
    conditions = {found["type"]: found for found in status["conditions"]}
    result = status.get("result")
    if conditions["Stalled"]["status"] == "True":
        said = conditions["Stalled"]["message"]
    else:
        said = conditions["Passed" if result else "Reconciling"]["message"]
    return f"{result}: {said}" if result else str(said)


async def tell_change(
    objects: Objects, subject: Subject, *, before: Mapping[str, Any] | None, now: Mapping[str, Any], now_ms: int
) -> None:
    """Log it and post an Event where two statuses differ in where the experiment stands. Nothing depends on it."""
    (reason, _), phase, message = told(now), now["phase"], message_of(now)
    same = reason == told(before)[0]
    if not same or phase != (before or {}).get("phase"):
        _log.info("experiment %s: %s, %s: %s", subject, phase, reason, one_line(message))
    if same:
        return
    event = event_of(subject, reason=reason, message=message, now_ms=now_ms)
    try:
        await objects.create_event(event)
    except (ApiRefused, SubstrateUnavailableError) as error:
        _log.warning("experiment %s: an Event was not posted: %s", subject, error)
