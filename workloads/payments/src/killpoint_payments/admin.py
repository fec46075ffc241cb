"""The admin port: what the service saw, for whoever judges. Workers have neither its address nor its token."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from killpoint_payments import problems
from killpoint_payments.lanes import NoSession, SessionLost, StatementFailed
from killpoint_payments.ledger import Ledger
from killpoint_payments.resources import Readiness, bearer_token, http_problem, respond

RUNS_MAX = 500
FENCE_SECONDS_MAX = 5.0

Fence = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Admin:
    """What the admin endpoints work with."""

    ledger: Ledger
    readiness: Readiness
    admin_token: bytes = field(repr=False)
    boot: str
    fence: Fence
    """Returns once every request that reached the public port before the call has been read."""


def admin_app(admin: Admin) -> Starlette:
    """The application of the admin port."""

    async def runs(request: Request) -> Response:
        if not hmac.compare_digest(bearer_token(request.scope), admin.admin_token):
            return respond(problems.unauthorized("the admin port wants its own bearer token"))
        if not admin.readiness.ready:
            return respond(problems.NOT_READY)
        asked = list(dict.fromkeys(request.query_params.getlist("run")))
        if not 0 < len(asked) <= RUNS_MAX or not all(run.isprintable() for run in asked):
            return respond(problems.invalid(f"ask for 1 to {RUNS_MAX} runs: ?run=A&run=B"))
        try:
            await admin.fence()
            found = await admin.ledger.evidence(asked)
        except (NoSession, SessionLost, StatementFailed, OSError, TimeoutError):
            return respond(problems.UNREADABLE)
        return Response(
            json.dumps({"boot": admin.boot, "runs": found}, separators=(",", ":")), media_type="application/json"
        )

    return Starlette(routes=[Route("/admin/v1/runs", runs)], exception_handlers={HTTPException: http_problem})


def fence_through(host: str, port: int) -> Fence:
    """A fence that asks the public port itself for something that needs no database.

    A worker that was killed right after it had written a request leaves that request in the kernel's hands: accepted
    or not, read or not. Connections are accepted in their order, and what was there before is read no later than what
    comes after, so when this connection has its answer, the requests from before are counted.
    """

    async def fence() -> None:
        async with asyncio.timeout(FENCE_SECONDS_MAX):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: fence\r\nConnection: close\r\n\r\n")
                await reader.read()
            finally:
                writer.close()

    return fence
