"""The app that workers park at. One endpoint, held open until there is an answer or it is time to ask again."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from killpoint.control.parkings import Parkings, ParkingsUnavailable
from killpoint.model.tokens import Bearer, TokenRefused, read_token

HELD_SECONDS = 20.0
"""How long a request is held: well below what proxies and workers wait for."""
LOOK_SECONDS = 0.25
BODY_BYTES_MAX = 4096
POINT_CHARACTERS_MAX = 63


class Refused(Exception):
    """A request that is not answered, with its status and the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def application(parkings: Parkings, signing_key: str, *, clock: Callable[[], float] = time.monotonic) -> Starlette:
    """The app, for parkings that are open and tokens that were signed with this key."""

    async def parked(request: Request) -> Response:
        try:
            bearer = _bearer(request, signing_key)
            point = _point(await _body(request))
            return JSONResponse({"do": await _answer(parkings, bearer, point, clock)})
        except Refused as refusal:
            return JSONResponse({"detail": str(refusal)}, status_code=refusal.status)
        except ParkingsUnavailable as error:
            return JSONResponse({"detail": str(error)}, status_code=503, headers={"Retry-After": "1"})

    async def alive(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def ready(_: Request) -> Response:
        try:
            await parkings.parked([])
        except ParkingsUnavailable as error:
            return PlainTextResponse(f"{error}\n", status_code=503)
        return PlainTextResponse("ok\n")

    return Starlette(
        routes=[
            Route("/v1/attempts/{attempt}/parked", parked, methods=["POST"]),
            Route("/healthz", alive),
            Route("/readyz", ready),
        ]
    )


async def _answer(parkings: Parkings, bearer: Bearer, point: str, clock: Callable[[], float]) -> str:
    deadline = clock() + HELD_SECONDS
    while not await parkings.park(bearer.run, bearer.attempt, point):
        if clock() > deadline:
            return "wait"
        await asyncio.sleep(LOOK_SECONDS)
    return "go"


def _bearer(request: Request, signing_key: str) -> Bearer:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        raise Refused(401, "a bearer token is needed: the attempt's KILLPOINT_TOKEN")
    try:
        bearer = read_token(signing_key, token)
    except TokenRefused as error:
        raise Refused(401, str(error)) from error
    if bearer.attempt != request.path_params["attempt"]:
        raise Refused(403, "the token is another attempt's")
    return bearer


async def _body(request: Request) -> object:
    raw = b""
    async for part in request.stream():
        raw += part
        if len(raw) > BODY_BYTES_MAX:
            raise Refused(413, f"the body is larger than {BODY_BYTES_MAX} bytes")
    try:
        return json.loads(raw)
    except ValueError as error:
        raise Refused(400, "the body is no JSON") from error


def _point(body: object) -> str:
    point = body.get("point") if isinstance(body, dict) else None
    if not isinstance(point, str) or not 0 < len(point) <= POINT_CHARACTERS_MAX:
        raise Refused(400, f"point must be a text of 1 to {POINT_CHARACTERS_MAX} characters")
    occurrence = body.get("occurrence", 1) if isinstance(body, dict) else 1
    return point if occurrence == 1 else f"{point}#{occurrence}"
