"""The requests that may have an effect: read, checked, committed, answered.

This is the path that load goes through, so it works on ASGI's own messages and no more is made of them than is needed.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import assert_never

from starlette.responses import Response
from starlette.types import Receive, Scope

from killpoint_payments import problems
from killpoint_payments.lanes import Failure, NoSession, SessionLost, StatementFailed
from killpoint_payments.ledger import Answer, Intent, Refusal
from killpoint_payments.payloads import BODY_BYTES_MAX, InvalidPayload, glimpse, read_key
from killpoint_payments.problems import Problem
from killpoint_payments.resources import Resource, Service, bearer_token, header_of, respond
from killpoint_payments.tokens import Bearer, TokenRefused, verify_token


async def commit(service: Service, resource: Resource, scope: Scope, receive: Receive) -> Response:
    """Answer one POST to ``resource``."""
    try:
        bearer = verify_token(service.signing_key, bearer_token(scope))
    except TokenRefused as refused:
        return respond(problems.unauthorized(str(refused)))
    if not service.readiness.ready:
        return respond(problems.NOT_READY)
    body = await _read_body(receive)
    if body is None:
        # It hung up in the middle of its body: nothing was asked for, and nobody is there for an answer.
        return Response(status_code=400)
    sent = _Sent(scope=scope, bearer=bearer, body=body, received_ms=service.now_ms())
    return await _commit(service, resource, sent)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    scope: Scope
    bearer: Bearer
    body: bytes
    """One byte more than allowed stands for a body that is too large."""
    received_ms: int


async def _read_body(receive: Receive) -> bytes | None:
    """The whole body; at most one byte over the limit of it; None when the client is gone before its end."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part: bytes = message.get("body", b"")
        body += part
        if len(body) > BODY_BYTES_MAX or not message.get("more_body", False):
            return body[: BODY_BYTES_MAX + 1]


async def _commit(service: Service, resource: Resource, sent: _Sent) -> Response:
    if len(sent.body) > BODY_BYTES_MAX:
        return await _refuse(service, resource, sent, problems.TOO_LARGE)
    try:
        intent = Intent(
            id=f"{resource.prefix}_{secrets.token_hex(12)}",
            kind=resource.kind,
            bearer=sent.bearer,
            payload=resource.read(sent.body),
            key=read_key(header_of(sent.scope, b"idempotency-key")),
            received_ms=sent.received_ms,
        )
    except InvalidPayload as error:
        return await _refuse(service, resource, sent, problems.invalid(str(error)))
    try:
        answer = await service.ledger.commit(intent)
    except (NoSession, SessionLost, StatementFailed) as failure:
        return respond(_problem_of(failure))
    return _answered(answer)


async def _refuse(service: Service, resource: Resource, sent: _Sent, problem: Problem) -> Response:
    action, order = glimpse(sent.body, action_field=resource.action_field, action=resource.action)
    try:
        key = read_key(header_of(sent.scope, b"idempotency-key"))
    except InvalidPayload:
        key = None  # the answer is about it; an unreadable key is not logged as one
    refusal = Refusal(
        bearer=sent.bearer,
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


def _problem_of(failure: Failure) -> Problem:
    match failure:
        case NoSession():
            return problems.UNAVAILABLE
        case SessionLost():
            return problems.UNKNOWN
        case StatementFailed():
            return problems.FAILED
        case _:
            assert_never(failure)
