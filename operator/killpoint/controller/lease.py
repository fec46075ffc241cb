"""The lease: one operator at a time. Others wait until it is given back, or has not been renewed for long enough.

A holder that cannot renew it stops before others may take it. One that was paused meanwhile, and does not know it yet,
changes nothing in the cluster: each change asks ``holds`` first. For what it may still journal, there is the epoch.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from killpoint.controller.requests import Document, Requests
from killpoint.controller.supervision import in_words
from killpoint.kubernetes.client import ApiRefused
from killpoint.ports import SubstrateUnavailableError

NAME = "killpoint-operator"
SECONDS = 15
"""How long a lease holds without being renewed."""
RENEW_SECONDS = 4.0
GIVE_UP_SECONDS = 10.0
"""A holder that could not renew for so long has lost it: others take it no earlier than after ``SECONDS``."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """A lease as it was found, and when that was first seen by our own clock: clocks of machines differ."""

    version: str
    since: float


class Lease:
    """A ``coordination.k8s.io`` Lease that is held, or waited for."""

    def __init__(
        self,
        requests: Requests,
        *,
        identity: str,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        name: str = NAME,
    ) -> None:
        self._requests = requests
        self._sleep = sleep
        self._identity = identity
        self._clock = clock
        self._name = name
        self._seen: _Seen | None = None
        self._renewed: float | None = None
        """When it was last known to be ours, by our own clock; None: it is not."""

    def holds(self) -> bool:
        """Whether nobody else can have it by now."""
        return self._renewed is not None and self._clock() - self._renewed < GIVE_UP_SECONDS

    async def acquire(self) -> None:
        """Return when it is ours."""
        told = False
        while not await self.attempt():
            if not told:
                _log.info("another operator holds the lease %s/%s; waiting", self._requests.namespace, self._name)
                told = True
            await self._sleep(RENEW_SECONDS / 2)

    async def keep(self) -> None:
        """Renew it. Returns when it is lost."""
        while self.holds():
            await self._sleep(RENEW_SECONDS)
            try:
                async with asyncio.timeout(GIVE_UP_SECONDS - RENEW_SECONDS):
                    found = await self._requests.lease(self._name)
                    if found is not None and _holder(found) != self._identity:
                        _log.error("the lease %s is held by %s now", self._name, _holder(found))
                        self._renewed = None
                        return
                    await self._write(found)
            except (SubstrateUnavailableError, ApiRefused, TimeoutError) as error:
                _log.warning("the lease %s was not renewed: %s", self._name, in_words(error))
        _log.error("the lease %s is lost: it could not be renewed for %.0f s", self._name, GIVE_UP_SECONDS)

    async def give_back(self) -> None:
        """Let others have it at once. That it fails matters to nobody but those who then wait for longer."""
        self._renewed = None
        try:
            async with asyncio.timeout(GIVE_UP_SECONDS):
                found = await self._requests.lease(self._name)
                if found is not None and _holder(found) == self._identity:
                    spec = {**found["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
                    await self._requests.update_lease(self._name, {**found, "spec": spec})
        except (SubstrateUnavailableError, ApiRefused, TimeoutError) as error:
            _log.warning("the lease %s was not given back: %s", self._name, in_words(error))

    async def attempt(self) -> bool:
        """Take it, or renew it. Whether it is ours now."""
        try:
            found = await self._requests.lease(self._name)
            return self._is_free(found) and await self._write(found)
        except (SubstrateUnavailableError, ApiRefused) as error:
            _log.warning("the lease %s cannot be had: %s", self._name, error)
            return False

    def _is_free(self, found: Document | None) -> bool:
        if found is None or _holder(found) in {"", self._identity}:
            return True
        version = found["metadata"]["resourceVersion"]
        if self._seen is None or self._seen.version != version:
            self._seen = _Seen(version=version, since=self._clock())
        seconds = found["spec"].get("leaseDurationSeconds") or SECONDS
        return self._clock() - self._seen.since > seconds

    async def _write(self, found: Document | None) -> bool:
        """Put our name into it. Whether it is ours now: since the moment of asking, as answers take their time."""
        asked = self._clock()
        written = await self._written(found)
        if written:
            self._renewed = asked
        return written

    async def _written(self, found: Document | None) -> bool:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec: dict[str, Any] = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": SECONDS,
            "renewTime": now,
            "acquireTime": now,
            "leaseTransitions": 0,
        }
        if found is None:
            lease = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": self._name, "namespace": self._requests.namespace},
                "spec": spec,
            }
            return await self._requests.create_lease(lease)
        former = found.get("spec") or {}
        if _holder(found) == self._identity:
            spec |= {name: former[name] for name in ("acquireTime", "leaseTransitions") if name in former}
        else:
            spec["leaseTransitions"] = int(former.get("leaseTransitions") or 0) + 1
        return await self._requests.update_lease(self._name, {**found, "spec": spec})


def _holder(lease: Document) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or "")
