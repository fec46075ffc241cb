"""What the commands need of a cluster: experiments as objects, and what is read out of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from killpoint.cli.progress import Count

Document = Mapping[str, Any]


class Experiments(Protocol):
    """The experiments of one namespace.

    Every method raises SubstrateUnavailableError when the API server does not answer, and Stop with what to do about it
    when it refuses.
    """

    @property
    def namespace(self) -> str: ...

    def command(self, *words: str) -> str:
        """A command of ours that leads here again: ``status``, and what follows it."""

    async def is_known(self) -> bool:
        """Whether the API server knows experiments at all."""

    async def get(self, name: str) -> Document | None: ...

    async def list(self) -> Sequence[Document]: ...

    async def apply(self, document: Document) -> Document:
        """Make it, or change what may change. The object as it is stored then."""

    async def abort(self, name: str, uid: str) -> None:
        """Ask for the end of this very experiment. One that is gone is as good."""

    async def delete(self, name: str, uid: str) -> None:
        """Delete this very experiment. Nothing to delete is a success."""

    async def read(self, location: str) -> bytes:
        """What a path at the API server holds."""


def uid_of(body: Document) -> str:
    return str(body["metadata"]["uid"])


def name_of(body: Document) -> str:
    return str(body["metadata"]["name"])


def is_leaving(body: Document) -> bool:
    """Whether its deletion was asked for."""
    return bool(body["metadata"].get("deletionTimestamp"))


def status_of(body: Document) -> Document:
    """Its status; empty as long as nobody has written one."""
    status: Document = body.get("status") or {}
    return status


def condition(body: Document, kind: str) -> Document:
    """The condition of this type; empty where there is none."""
    found = (one for one in status_of(body).get("conditions") or () if one.get("type") == kind)
    return next(found, {})


def is_over(body: Document) -> bool:
    return condition(body, "Complete").get("status") == "True"


def is_accepted(body: Document) -> bool | None:
    """None: nobody has said yet."""
    return {"True": True, "False": False}.get(str(condition(body, "Accepted").get("status")))


def standing_of(body: Document) -> tuple[str, str]:
    """Where it stands while it is not over: a word, and its meaning."""
    told = condition(body, "Stalled"), condition(body, "Reconciling")
    message = next((str(one["message"]) for one in told if one.get("status") == "True" and one.get("message")), "")
    return str(condition(body, "Complete").get("reason", "")), message


def count_of(body: Document) -> Count | None:
    """How far it is; None as long as nobody knows how much there is."""
    status = status_of(body)
    trials, kills = status.get("trials") or {}, status.get("kills") or {}
    if not trials.get("planned"):
        return None
    return Count(
        judged=int(trials.get("judged", 0)),
        trials=int(trials["planned"]),
        kills=int(kills.get("confirmed", 0)),
        retries=int(trials.get("retries", 0)),
    )
