"""The payments service as a worker sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from killpoint_worker.http import Answer, Endpoint, NoAnswerError

TIMEOUT_SECONDS = 10.0

_SERVER_ERROR = 500
_CLIENT_ERROR = 400


class PaymentsError(Exception):
    """Payments did not do what it was asked for, or did not say so."""


class PaymentsRefused(PaymentsError):
    """Payments answered that it did not do it, and why: ``code`` is the machine-readable reason."""

    def __init__(self, status: int, code: str, detail: str = "") -> None:
        # All three go to the base class, so that frameworks can copy the error between processes.
        super().__init__(status, code, detail)
        self.status = status
        self.code = code
        self.detail = detail

    def __str__(self) -> str:
        return f"payments refused with {self.status} {self.code}: {self.detail}"


class PaymentsUnavailable(PaymentsError):
    """No usable answer. Whether the request took effect is not known."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """A charge that payments committed, now or (``replayed``) at an earlier request with the same key."""

    id: str
    replayed: bool = False

    def state(self) -> dict[str, Any]:
        """The receipt as plain values, for a framework's state."""
        return {"id": self.id, "replayed": self.replayed}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Receipt:
        """The receipt that ``state()`` was made of."""
        return cls(str(state["id"]), bool(state["replayed"]))


class PaymentsClient:
    """Makes charges and notifications. Holds no connection: each request opens its own and closes it.

    Nothing is retried here: whether a request may be repeated is the application's decision, and the experiment.
    """

    def __init__(self, url: str, token: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._endpoint = Endpoint(url=url, token=token, timeout_seconds=timeout_seconds)

    def charge(
        self,
        *,
        order: str,
        amount: int,
        currency: str,
        key: str | None,
        on_sent: Callable[[], None] | None = None,
    ) -> Receipt:
        """Charge ``amount`` minor units. Raises PaymentsRefused or PaymentsUnavailable.

        ``on_sent`` is called after the request was written and before the answer is read.
        """
        headers = {} if key is None else {"Idempotency-Key": key}
        body = {"order": order, "amount": amount, "currency": currency}
        answer = self._post("/v1/charges", body, headers=headers, on_sent=on_sent)
        identity = answer.document.get("id")
        if not isinstance(identity, str):
            raise PaymentsUnavailable(f"payments answered {answer.status} without the charge's id")
        return Receipt(identity, answer.headers.get("idempotent-replayed", "").lower() == "true")

    def notify(self, *, order: str, kind: str) -> None:
        """Notify of ``order``; a second notification of the same kind has no effect. Raises as ``charge`` does."""
        self._post("/v1/notifications", {"order": order, "kind": kind})

    def _post(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        headers: Mapping[str, str] | None = None,
        on_sent: Callable[[], None] | None = None,
    ) -> Answer:
        try:
            answer = self._endpoint.post(path, body, headers=headers, on_sent=on_sent)
        except NoAnswerError as error:
            raise PaymentsUnavailable(str(error)) from error
        code, detail = str(answer.document.get("code", "")), str(answer.document.get("detail", ""))
        if answer.status >= _SERVER_ERROR:
            raise PaymentsUnavailable(f"payments answered {answer.status} {code}: {detail}")
        if answer.status >= _CLIENT_ERROR:
            raise PaymentsRefused(answer.status, code, detail)
        return answer
