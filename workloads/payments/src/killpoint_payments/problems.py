"""Errors as clients see them: ``application/problem+json`` (RFC 9457) with a stable ``code``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An answer that is not a success. ``detail`` is for people, ``code`` for programs."""

    status: int
    code: str
    detail: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self) -> bytes:
        """The JSON document."""
        return json.dumps(
            {
                "type": f"urn:killpoint:payments:{self.code}",
                "title": HTTPStatus(self.status).phrase,
                "status": self.status,
                "detail": self.detail,
                "code": self.code,
            }
        ).encode()


def unauthorized(detail: str) -> Problem:
    """No bearer token, or one that does not hold."""
    return Problem(
        status=401, code="unauthorized", detail=detail, headers={"WWW-Authenticate": 'Bearer realm="payments"'}
    )


def invalid(detail: str) -> Problem:
    """The request is not one of the API's. Its answer is not kept: the key can be used again."""
    return Problem(status=400, code="invalid-request", detail=detail)


TOO_LARGE = Problem(status=413, code="body-too-large", detail="the body is larger than 64 KiB")
KEY_IN_FLIGHT = Problem(
    status=409,
    code="idempotency-key-in-flight",
    detail="another request with this Idempotency-Key is being worked on: ask again in a second",
    headers={"Retry-After": "1"},
)
KEY_REUSED = Problem(
    status=422,
    code="idempotency-key-reused",
    detail="this Idempotency-Key was used before with another payload: take a new key for a new payment",
)
NOT_READY = Problem(
    status=503, code="not-ready", detail="the service is starting: ask again in a second", headers={"Retry-After": "1"}
)
UNAVAILABLE = Problem(
    status=503,
    code="database-unavailable",
    detail="nothing was committed, the database has no session for this request: ask again in a second",
    headers={"Retry-After": "1"},
)
FAILED = Problem(
    status=503,
    code="not-committed",
    detail="the database refused the transaction and nothing was committed: ask again in a second",
    headers={"Retry-After": "1"},
)
UNKNOWN = Problem(
    status=503,
    code="outcome-unknown",
    detail="the database session broke: whether this was committed shows when the same key is sent again",
    headers={"Retry-After": "1"},
)
UNREADABLE = Problem(
    status=503,
    code="database-unavailable",
    detail="the ledger cannot be read now: ask again in a second",
    headers={"Retry-After": "1"},
)
