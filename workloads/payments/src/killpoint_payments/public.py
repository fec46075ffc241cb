"""The public API: what a payments provider offers to programs that act for somebody."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import assert_never

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from killpoint_payments import problems
from killpoint_payments.lanes import NoSession, SessionLost, StatementFailed
from killpoint_payments.ledger import Answer, Intent, Ledger, Refusal
from killpoint_payments.metrics import render_metrics
from killpoint_payments.payloads import (
    BODY_BYTES_MAX,
    InvalidPayload,
    Notification,
    Payment,
    glimpse,
    read_key,
    read_notification,
    read_payment,
)
from killpoint_payments.problems import Problem
from killpoint_payments.tokens import Bearer, TokenRefused, verify_token

LOOK_UPS = ("order", "run", "key")

Endpoint = Callable[[Request], Awaitable[Response]]


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
    signing_key: bytes
    readiness: Readiness
    now_ms: Callable[[], int]


def public_app(service: Service) -> Starlette:
    """The application of the public port."""
    routes = []
    for resource in RESOURCES:
        routes.append(Route(resource.path, _commit_endpoint(service, resource), methods=["POST"]))
        routes.append(Route(resource.path, _look_up_endpoint(service, resource), methods=["GET"]))

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_: Request) -> Response:
        if service.readiness.ready and await service.ledger.alive():
            return PlainTextResponse("ready\n")
        return PlainTextResponse("not ready\n", status_code=503)

    async def metrics(_: Request) -> Response:
        return PlainTextResponse(render_metrics(service.ledger, ready=service.readiness.ready))

    routes += [Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", metrics)]
    return Starlette(routes=routes)


def respond(problem: Problem) -> Response:
    """``problem`` as an HTTP answer."""
    return Response(
        problem.body(),
        status_code=problem.status,
        media_type="application/problem+json",
        headers=dict(problem.headers),
    )


def bearer_token(request: Request) -> bytes:
    """The credential of ``Authorization: Bearer …``; empty when there is none."""
    scheme, _, credential = (_header(request, b"authorization") or b"").partition(b" ")
    return credential.strip() if scheme.lower() == b"bearer" else b""


def _commit_endpoint(service: Service, resource: Resource) -> Endpoint:
    async def commit(request: Request) -> Response:
        try:
            bearer = verify_token(service.signing_key, bearer_token(request))
        except TokenRefused as refused:
            return respond(problems.unauthorized(str(refused)))
        if not service.readiness.ready:
            return respond(problems.NOT_READY)
        body = await _read_body(request)
        if body is None:
            # It hung up in the middle of its body: nothing was asked for, and nobody is there for an answer.
            return Response(status_code=400)
        return await _commit(service, resource, bearer, _Sent(request, body, service.now_ms()))

    return commit


@dataclass(frozen=True, slots=True)
class _Sent:
    request: Request
    body: bytes
    """One byte more than allowed stands for a body that is too large."""
    received_ms: int


async def _read_body(request: Request) -> bytes | None:
    """The whole body; at most one byte over the limit of it; None when the client is gone before its end."""
    body = b""
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > BODY_BYTES_MAX or not message.get("more_body", False):
            return body[: BODY_BYTES_MAX + 1]


async def _commit(service: Service, resource: Resource, bearer: Bearer, sent: _Sent) -> Response:
    if len(sent.body) > BODY_BYTES_MAX:
        return await _refuse(service, resource, bearer, sent, problems.TOO_LARGE)
    try:
        intent = Intent(
            id=f"{resource.prefix}_{secrets.token_hex(12)}",
            kind=resource.kind,
            bearer=bearer,
            payload=resource.read(sent.body),
            key=read_key(_header(sent.request, b"idempotency-key")),
            received_ms=sent.received_ms,
        )
    except InvalidPayload as error:
        return await _refuse(service, resource, bearer, sent, problems.invalid(str(error)))
    try:
        answer = await service.ledger.commit(intent)
    except (NoSession, SessionLost, StatementFailed) as failure:
        return respond(_problem_of(failure))
    return _answered(answer)


async def _refuse(service: Service, resource: Resource, bearer: Bearer, sent: _Sent, problem: Problem) -> Response:
    action, order = glimpse(sent.body, action_field=resource.action_field, action=resource.action)
    try:
        key = read_key(_header(sent.request, b"idempotency-key"))
    except InvalidPayload:
        key = None  # the answer is about it; an unreadable key is not logged as one
    refusal = Refusal(
        bearer=bearer,
        kind=resource.kind,
        action=action,
        order=order,
        key=key,
        outcome="invalid",
        status=problem.status,
        received_ms=sent.received_ms,
    )
    try:
        await service.ledger.log(refusal)
    except (NoSession, SessionLost, StatementFailed) as failure:
        return respond(_problem_of(failure))
    return respond(problem)


def _answered(answer: Answer) -> Response:
    if answer.outcome == "conflict":
        return respond(problems.KEY_IN_FLIGHT)
    if answer.outcome == "mismatch":
        return respond(problems.KEY_REUSED)
    headers = {"Idempotent-Replayed": "true"} if answer.outcome == "replayed" else None
    return Response(answer.body, status_code=answer.status, media_type="application/json", headers=headers)


def _look_up_endpoint(service: Service, resource: Resource) -> Endpoint:
    async def look_up(request: Request) -> Response:
        try:
            bearer = verify_token(service.signing_key, bearer_token(request))
        except TokenRefused as refused:
            return respond(problems.unauthorized(str(refused)))
        if not service.readiness.ready:
            return respond(problems.NOT_READY)
        asked = request.query_params.multi_items()
        if len(asked) != 1 or asked[0][0] not in LOOK_UPS or not asked[0][1].isprintable():
            return respond(problems.invalid("ask by exactly one of order=, run= or key="))
        ((by, value),) = asked
        try:
            bodies = await service.ledger.look_up(tenant=bearer.tenant, kind=resource.kind, by=by, value=value)
        except (NoSession, SessionLost, StatementFailed):
            return respond(problems.UNREADABLE)
        listed = b'{"%s":[%s]}' % (resource.plural.encode(), b",".join(bodies))
        return Response(listed, media_type="application/json")

    return look_up


def _problem_of(failure: NoSession | SessionLost | StatementFailed) -> Problem:
    match failure:
        case NoSession():
            return problems.UNAVAILABLE
        case SessionLost():
            return problems.UNKNOWN
        case StatementFailed():
            return problems.FAILED
        case _:
            assert_never(failure)


def _header(request: Request, name: bytes) -> bytes | None:
    headers: list[tuple[bytes, bytes]] = request.scope["headers"]
    for header, value in headers:
        if header == name:
            return value
    return None
