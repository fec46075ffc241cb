"""The public API: what a payments provider offers to programs that act for somebody."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from killpoint_payments import problems
from killpoint_payments.commits import commit
from killpoint_payments.lanes import NoSession, SessionLost, StatementFailed
from killpoint_payments.metrics import render_metrics
from killpoint_payments.resources import RESOURCES, Resource, Service, bearer_token, http_problem, respond
from killpoint_payments.tokens import TokenRefused, verify_token

LOOK_UPS = ("order", "run", "key")

Endpoint = Callable[[Request], Awaitable[Response]]


def public_app(service: Service) -> ASGIApp:
    """The application of the public port."""
    by_path = {resource.path: resource for resource in RESOURCES}
    everything = _routed(service)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        # A shortcut for what load goes through. The router knows these paths too, so it only saves time: a sixth of
        # what the service spends on a charge.
        resource = by_path.get(scope["path"]) if scope["method"] == "POST" else None
        if resource is None:
            await everything(scope, receive, send)
        else:
            response = await commit(service, resource, scope, receive)
            await response(scope, receive, send)

    return app


def _routed(service: Service) -> Starlette:
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
    return Starlette(routes=routes, exception_handlers={HTTPException: http_problem})


def _commit_endpoint(service: Service, resource: Resource) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return await commit(service, resource, request.scope, request.receive)

    return endpoint


def _look_up_endpoint(service: Service, resource: Resource) -> Endpoint:
    async def look_up(request: Request) -> Response:
        try:
            bearer = verify_token(service.signing_key, bearer_token(request.scope))
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
