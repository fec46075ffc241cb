"""Subjects: CrashExperiment objects as the operator reads them. Pure, and never surprised by what an object holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from killpoint.api.v1alpha1.spec import API_VERSION, KIND
from killpoint.kubernetes.names import Owner, Scope, journal_id

Body = Mapping[str, Any]

GROUP, VERSION = API_VERSION.split("/")
PLURAL = "crashexperiments"
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One object, whatever becomes of it."""

    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, body: Body) -> Subject:
        metadata = body["metadata"]
        return cls(namespace=metadata["namespace"], name=metadata["name"], uid=metadata["uid"])

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def scope(self, journal: str) -> Scope:
        """What tells its children from others."""
        owner = Owner(api_version=API_VERSION, kind=KIND, name=self.name, uid=self.uid)
        return Scope(namespace=self.namespace, owner=owner, journal=journal)


def is_finished(body: Body) -> bool:
    """Whether the object is at its end: nothing is to be done any more."""
    return condition(body, "Complete").get("status") == "True"


def is_leaving(body: Body) -> bool:
    """Whether the object's deletion was asked for."""
    return bool(_map(body.get("metadata")).get("deletionTimestamp"))


def generation(body: Body) -> int:
    value = _map(body.get("metadata")).get("generation")
    return value if isinstance(value, int) else 0


def journal_of(body: Body) -> str:
    """The journal that the status names, or the one that the object is going to have."""
    named = recorded_journal(body)
    return named or journal_id(str(_map(body.get("metadata")).get("uid", "")))


def recorded_journal(body: Body) -> str | None:
    """The journal that the status names: it held events when that was written."""
    named = _map(body.get("status")).get("journalID")
    return named if isinstance(named, str) and named else None


def condition(body: Body, kind: str) -> Mapping[str, Any]:
    """The condition of this type; empty where there is none."""
    conditions = _map(body.get("status")).get("conditions")
    for found in conditions if isinstance(conditions, list) else ():
        if isinstance(found, Mapping) and found.get("type") == kind:
            return found
    return {}


def is_stale(body: Body) -> bool:
    """Whether a finished object was edited after its end: its conditions are about an earlier generation."""
    observed = _map(body.get("status")).get("observedGeneration")
    return is_finished(body) and not is_leaving(body) and observed != generation(body)


def stamped(body: Body) -> dict[str, Any]:
    """The status of a finished object, with the generation of now in it and nothing else changed."""
    status = dict(_map(body.get("status")))
    conditions = [dict(found, observedGeneration=generation(body)) for found in status.get("conditions", [])]
    return status | {"observedGeneration": generation(body), "conditions": conditions}


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """When what a finished experiment left is to go, in epoch seconds; None: never, or at its end."""

    children: float | None = None
    experiment: float | None = None


def due(body: Body) -> Due:
    """From ``spec.retention`` and the time of the end."""
    ended = seconds_of(_map(body.get("status")).get("completionTime"))
    retention = _map(_map(body.get("spec")).get("retention"))
    if ended is None or not is_finished(body) or is_leaving(body):
        return Due()
    children, experiment = (duration(retention.get(name)) for name in ("childrenAfter", "experimentAfter"))
    return Due(
        children=None if children is None else ended + children,
        experiment=None if experiment is None else ended + experiment,
    )


def keeps_children(body: Body) -> bool:
    """Whether what is left of an experiment at its end stays for a while."""
    return duration(_map(_map(body.get("spec")).get("retention")).get("childrenAfter")) is not None


def duration(text: object) -> int | None:
    """``90s``, ``15m``, ``2h``, ``7d`` in seconds; None for anything else."""
    if not isinstance(text, str) or text[-1:] not in _SECONDS or not text[:-1].isdecimal():
        return None
    return int(text[:-1]) * _SECONDS[text[-1]]


def seconds_of(text: object) -> float | None:
    """A time as Kubernetes writes it, in epoch seconds."""
    try:
        return datetime.fromisoformat(str(text)).timestamp() if text else None
    except ValueError:
        return None


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
