"""The payments service as the harness sees it: its admin API as a ledger.

Responsible for reading, and for never taking what was not read for nothing. Must not judge, and writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import httpx

from killpoint.model.evidence import Effect, LedgerView, Request, RequestOutcome
from killpoint.ports import LedgerUnavailableError

RUNS_IN_A_REQUEST_MAX = 100
ANSWER_SECONDS_MAX = 20.0
NO_RUN = "-"
"""The service wants to be asked for a run; no run has this name."""


class PaymentsLedger:
    """Implements ``ports.Ledger`` with the admin API of the payments service."""

    def __init__(self, *, url: str, token: str, transport: httpx.AsyncBaseTransport | None = None) -> None:
        """``url`` and ``token`` of the admin port."""
        self._url = url
        self._client = httpx.AsyncClient(
            base_url=url,
            headers={"authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(ANSWER_SECONDS_MAX),
            # The service is ours: neither a proxy nor a .netrc of the user's has anything to do with it.
            trust_env=False,
            transport=transport,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._client.aclose()

    async def view(self, runs: Sequence[str]) -> Mapping[str, LedgerView]:
        """What the ledger shows of each run; see ``ports.Ledger``."""
        asked = list(dict.fromkeys(runs))
        views: dict[str, LedgerView] = {}
        for start in range(0, len(asked), RUNS_IN_A_REQUEST_MAX):
            views |= await self._read(asked[start : start + RUNS_IN_A_REQUEST_MAX])
        return views

    async def incarnation(self) -> str:
        """The service's boot id; see ``ports.Ledger``."""
        document = await self._ask([NO_RUN])
        try:
            return str(document["boot"])
        except KeyError as error:
            raise LedgerUnavailableError(f"payments at {self._url} does not say which start of it answers") from error

    async def _ask(self, runs: Sequence[str]) -> Mapping[str, Any]:
        try:
            response = await self._client.get("/admin/v1/runs", params=[("run", run) for run in runs])
        except httpx.HTTPError as error:
            raise LedgerUnavailableError(
                f"payments at {self._url} does not answer: {type(error).__name__}: {error}"
            ) from error
        if response.status_code != httpx.codes.OK:
            raise LedgerUnavailableError(
                f"payments at {self._url} answers {response.status_code}: {response.text[:300]}"
            )
        try:
            document = response.json()
        except ValueError as error:
            raise LedgerUnavailableError(f"payments at {self._url} answers what is no JSON") from error
        if not isinstance(document, dict):
            raise LedgerUnavailableError(f"payments at {self._url} answers what is no JSON object")
        return document

    async def _read(self, runs: Sequence[str]) -> Mapping[str, LedgerView]:
        document = await self._ask(runs)
        try:
            return {run: _view(document["runs"][run], run=run, boot=document["boot"]) for run in runs}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise LedgerUnavailableError(
                f"payments at {self._url} answers what cannot be read: {type(error).__name__}: {error}"
            ) from error


def _view(document: Mapping[str, Any], *, run: str, boot: str) -> LedgerView:
    effects = tuple(_effect(effect) for effect in document["effects"])
    foreign = [effect.id for effect in effects if effect.run != run]
    if foreign:
        raise ValueError(f"{foreign[0]} is another run's, not {run}'s")
    return LedgerView(
        effects=effects,
        requests=tuple(_request(request) for request in document["requests"]),
        in_flight=int(document["inFlight"]),
        boot=boot,
    )


def _effect(document: Mapping[str, Any]) -> Effect:
    return Effect(
        id=document["id"],
        action=document["action"],
        order=document["order"],
        item=document["item"] or "",
        amount=int(document["amount"]),
        currency=document["currency"] or "",
        key=document["key"],
        run=document["run"],
        attempt=document["attempt"],
        at_ms=int(document["at"]),
    )


def _request(document: Mapping[str, Any]) -> Request:
    answered = document["answered"]
    return Request(
        attempt=document["attempt"],
        action=document["action"],
        # A request that was refused as invalid need not have named an order.
        order=document["order"] or "",
        key=document["key"],
        outcome=RequestOutcome(document["outcome"]),
        status=int(document["status"]),
        effect=document["effect"],
        received_ms=int(document["received"]),
        answered_ms=None if answered is None else int(answered),
    )
