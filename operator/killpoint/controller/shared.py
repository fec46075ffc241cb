"""What all experiments have in common: the API server, the catalog, the databases and the payments service."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from kubernetes.aio.client import ApiClient

import killpoint
from killpoint.control.parkings import Parkings, ParkingsUnavailable
from killpoint.controller.requests import Requests
from killpoint.controller.settings import Settings
from killpoint.databases.administration import JOURNAL, Databases
from killpoint.databases.server import Server, given_postgres
from killpoint.journal.postgres import migrate
from killpoint.kubernetes.manifests import WorkerTemplate
from killpoint.local.workloads import Workloads
from killpoint.model.catalog import Catalog, Setup
from killpoint.model.tokens import mint_token
from killpoint.payments import PaymentsLedger
from killpoint.ports import JournalUnavailableError


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def catalog_of(settings: Settings) -> Catalog:
    """The setups that there are images for."""
    known = Workloads.find(Path(killpoint.__file__).parent).catalog()
    return tuple(setup for setup in known if setup.project in settings.images)


class Shared:
    """Connects to the databases when they are first needed, and does so again where that failed."""

    def __init__(
        self, settings: Settings, *, catalog: Catalog, api: ApiClient, holds: Callable[[], bool] = lambda: True
    ) -> None:
        """``holds``: whether this is still the operator that may act."""
        self.settings = settings
        self.holds = holds
        self.catalog = catalog
        self.ledger = PaymentsLedger(url=settings.payments_admin_url, token=settings.payments_admin_token)
        self._api = api
        self._open = AsyncExitStack()
        self._lock = asyncio.Lock()
        self._databases: Databases | None = None
        self._journal: str | None = None
        self._parkings: Parkings | None = None
        self._version: str | None = None

    async def __aenter__(self) -> Self:
        self._open.push_async_callback(self.ledger.close)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection. Doing it again is harmless."""
        await self._open.aclose()

    def requests(self, namespace: str) -> Requests:
        return Requests(self._api, namespace, may_change=self.holds)

    async def databases(self) -> Databases:
        """The server's databases. Raises DatabaseError."""
        async with self._lock:
            if self._databases is None:
                server = await given_postgres(self.settings.database_url)
                self._databases = await self._open.enter_async_context(Databases(server))
            return self._databases

    async def server(self) -> Server:
        return (await self.databases()).server

    async def journal(self) -> str:
        """The journal's DSN, its tables up to date. Raises DatabaseError and JournalUnavailableError."""
        databases = await self.databases()
        async with self._lock:
            if self._journal is None:
                dsn = await databases.ensure_service(JOURNAL)
                await migrate(dsn)
                self._journal = dsn
            return self._journal

    async def parkings(self) -> Parkings:
        """Who is parked. Raises as ``journal`` does."""
        dsn = self.settings.control_database_url or await self.journal()
        async with self._lock:
            if self._parkings is None:
                parkings = await self._open.enter_async_context(Parkings(dsn))
                try:
                    await parkings.migrate()
                except ParkingsUnavailable as error:
                    raise JournalUnavailableError(str(error)) from error
                self._parkings = parkings
            return self._parkings

    async def cluster_version(self) -> str:
        if self._version is None:
            self._version = await self.requests(self.settings.namespace).version()
        return self._version

    def password(self, journal: str) -> str:
        """Of the role of a run's workers: the same for every operator, since pods outlive operators."""
        return hmac.digest(self.settings.signing_key.encode(), f"database of {journal}".encode(), "sha256").hex()

    @property
    def installation(self) -> str:
        """What tells our databases from those of others on the same server."""
        return hmac.digest(self.settings.signing_key.encode(), b"installation", "sha256").hex()[:16]

    def template(self, setup: Setup) -> WorkerTemplate:
        """The pods of a setup of the catalog."""
        image = self.settings.images[setup.project]
        return WorkerTemplate.of(setup, image=image, pull_policy=self.settings.pull_policy)

    def token(self, experiment: str, run: str, attempt: str) -> str:
        """The bearer token of an attempt. Runs are tenants of their own: no key of one is known to another."""
        return mint_token(self.settings.signing_key, experiment=experiment, tenant=run, run=run, attempt=attempt)
