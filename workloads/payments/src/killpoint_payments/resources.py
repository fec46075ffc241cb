"""What the endpoints share: the kinds of effects, the service they work with, and how a problem is answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from killpoint_payments.ledger import Ledger
from killpoint_payments.payloads import Notification, Payment, read_notification, read_payment
from killpoint_payments.problems import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One kind of effect and how the API speaks of it."""

    kind: str
    path: str
    prefix: str
    """Of its ids: ``ch_…``."""
    read: Callable[[bytes], Payment | Notification]
    action_field: str
    action: str

    @property
    def plural(self) -> str:
        """The member of a list answer."""
        return self.path.rpartition("/")[2]


RESOURCES = (
    Resource(
        kind="charge",
        path="/v1/charges",
        prefix="ch",
        read=lambda body: read_payment(body, action="charge"),
        action_field="action",
        action="charge",
    ),
    Resource(
        kind="refund",
        path="/v1/refunds",
        prefix="re",
        read=lambda body: read_payment(body, action="refund"),
        action_field="action",
        action="refund",
    ),
    Resource(
        kind="notification",
        path="/v1/notifications",
        prefix="no",
        read=read_notification,
        action_field="kind",
        action="notification",
    ),
)


@dataclass(slots=True, kw_only=True)
class Readiness:
    """Whether this boot takes requests yet."""

    ready: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What the endpoints work with."""

    ledger: Ledger
    signing_key: bytes = field(repr=False)
    readiness: Readiness
    now_ms: Callable[[], int]


def respond(problem: Problem) -> Response:
    """``problem`` as an HTTP answer."""
    return Response(
        problem.body(),
        status_code=problem.status,
        media_type="application/problem+json",
        headers=dict(problem.headers),
    )


async def http_problem(_: Request, error: Exception) -> Response:
    """What the router refuses (404, 405), as a problem like any other."""
    if not isinstance(error, HTTPException):
        raise TypeError("registered for HTTPException alone") from error
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
    return respond(Problem(status=error.status_code, code=code, detail=error.detail, headers=dict(error.headers or {})))


def header_of(scope: Scope, name: bytes) -> bytes | None:
    """The first value of the header ``name``, which is given in lower case."""
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    for header, value in headers:
        if header == name:
            return value
    return None


def bearer_token(scope: Scope) -> bytes:
    """The credential of ``Authorization: Bearer …``; empty when there is none."""
    scheme, _, credential = (header_of(scope, b"authorization") or b"").partition(b" ")
    return credential.strip() if scheme.lower() == b"bearer" else b""
