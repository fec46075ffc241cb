"""Abandoned: databases of experiments that are gone or over, and that nobody could drop when they ended.

The server was away then, or the operator was killed in between. Each database says whose it is.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Protocol, Self

from killpoint.controller.requests import Document
from killpoint.controller.shared import Shared
from killpoint.controller.subjects import Subject, is_finished
from killpoint.databases.errors import DatabaseError
from killpoint.ports import SubstrateUnavailableError

ROUND_SECONDS = 60.0

_log = logging.getLogger(__name__)


class Finder(Protocol):
    """Who finds objects of a namespace."""

    async def experiment(self, name: str) -> Document | None: ...


class Server(Protocol):
    """The part of ``databases.administration.Databases`` that is needed here."""

    async def notes(self) -> Sequence[str]: ...

    async def drop_experiment(self, journal: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """Whose a database is."""

    installation: str
    namespace: str
    name: str
    uid: str
    journal: str

    @classmethod
    def of(cls, subject: Subject, *, journal: str, installation: str) -> Self:
        return cls(
            installation=installation,
            namespace=subject.namespace,
            name=subject.name,
            uid=subject.uid,
            journal=journal,
        )

    def note(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, note: str) -> Self | None:
        """None: somebody else wrote it, or another version of this."""
        try:
            fields = json.loads(note)
            return cls(**{name: str(value) for name, value in fields.items()})
        except (ValueError, TypeError, AttributeError):
            return None


async def drop_abandoned(
    server: Server,
    finder: Callable[[str], Finder],
    *,
    installation: str,
    namespaces: Sequence[str],
    is_attended: Callable[[str], bool],
) -> int:
    """Drop what nobody needs any more; how many. ``namespaces``: those that are ours; none: all of them.

    Raises DatabaseError and SubstrateUnavailableError.
    """
    tenants = [tenant for note in await server.notes() if (tenant := Tenant.read(note)) is not None]
    dropped = 0
    for tenant in tenants:
        ours = tenant.installation == installation and (not namespaces or tenant.namespace in namespaces)
        if not ours or is_attended(tenant.uid):
            continue
        found = await finder(tenant.namespace).experiment(tenant.name)
        if found is not None and found["metadata"]["uid"] == tenant.uid and not is_finished(found):
            continue
        _log.info("experiment %s/%s is gone or over: its database is dropped", tenant.namespace, tenant.name)
        await server.drop_experiment(tenant.journal)
        dropped += 1
    return dropped


async def drop_abandoned_for_ever(shared: Shared, *, is_attended: Callable[[str], bool]) -> None:
    """Look for them now and then."""
    while True:
        try:
            await drop_abandoned(
                await shared.databases(),
                shared.requests,
                installation=shared.installation,
                namespaces=shared.settings.namespaces,
                is_attended=is_attended,
            )
        except (DatabaseError, SubstrateUnavailableError) as error:
            _log.warning("databases that nobody needs are looked for again later: %s", error)
        except Exception:  # noqa: BLE001 - a supervision point: no leftover may stop the operator
            _log.exception("databases that nobody needs could not be dropped")
        await asyncio.sleep(ROUND_SECONDS)
