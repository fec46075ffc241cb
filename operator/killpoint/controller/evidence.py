"""Evidence: what is kept of an experiment at its end, and how people read it: over HTTP, through the API server.

One path, read only, with no secret in it: who may read is who may ``get services/proxy`` in the operator's namespace.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from killpoint.api.v1alpha1.spec import SUBDOMAIN
from killpoint.api.v1alpha1.status import Report
from killpoint.controller.settings import Settings
from killpoint.controller.shared import Shared
from killpoint.controller.site import Order, Session
from killpoint.controller.subjects import Subject, journal_of
from killpoint.controller.supervision import AWAY, in_words
from killpoint.journal.archive import archive_of, encoded
from killpoint.journal.archives import keep_archive, kept_archive

PATH = "/v1/experiments/{namespace}/{name}/evidence"
NAME_CHARACTERS_MAX = 253
CLOSE_SECONDS = 2
_NAME = re.compile(SUBDOMAIN)

Find = Callable[[str, str], Awaitable[Iterator[bytes]]]
"""(namespace, name) → the evidence, in parts. Raises NoEvidence, and as adapters do."""


class NoEvidence(Exception):
    """There is none; says why."""


async def keep_evidence(order: Order, opened: Session, subject: Subject, shared: Shared) -> Report | None:
    """Keep all the evidence of a run that is over; where it can be had. None: nobody was told under which name.

    Raises DatabaseError and JournalUnavailableError.
    """
    head = replace(opened.engine.run(thin=True), cells=())
    document = order.document.model_dump(mode="json", by_alias=True)
    archive = archive_of(head, document=document, provenance=opened.provenance_now())
    parts = encoded(archive, opened.engine.trials())
    digest = await keep_archive(await shared.journal(), head.journal, parts)
    location = location_of(subject, shared.settings)
    return None if location is None else Report(location=location, sha256=digest)


def location_of(subject: Subject, settings: Settings) -> str | None:
    """The path at the API server: ``kubectl get --raw PATH`` shows the evidence."""
    if settings.evidence_service is None:
        return None
    service = f"/api/v1/namespaces/{settings.namespace}/services/http:{settings.evidence_service}/proxy"
    return service + PATH.format(namespace=subject.namespace, name=subject.name)


def finder(shared: Shared) -> Find:
    """Looks evidence up by the object that it is about."""

    async def find(namespace: str, name: str) -> Iterator[bytes]:
        allowed = shared.settings.namespaces
        if allowed and namespace not in allowed:
            raise NoEvidence(f"this operator does not look after namespace {namespace}")
        body = await shared.requests(namespace).experiment(name)
        if body is None:
            raise NoEvidence(f"there is no experiment {namespace}/{name}")
        document = await kept_archive(await shared.journal(), journal_of(body))
        if document is None:
            raise NoEvidence(f"no evidence is kept of experiment {namespace}/{name}: it has not run to its end")
        return document

    return find


def application(find: Find) -> Starlette:
    """The app that shows what is found."""

    async def evidence(request: Request) -> Response:
        namespace, name = request.path_params["namespace"], request.path_params["name"]
        if not (_is_name(namespace) and _is_name(name)):
            return _problem(404, "no experiment can have such a name")
        try:
            return StreamingResponse(await find(namespace, name), media_type="application/json")
        except NoEvidence as error:
            return _problem(404, str(error))
        except AWAY as error:
            return _problem(503, in_words(error))

    return Starlette(routes=[Route(PATH, evidence, methods=["GET"])])


def _is_name(text: str) -> bool:
    return len(text) <= NAME_CHARACTERS_MAX and _NAME.fullmatch(text) is not None


def _problem(status: int, detail: str) -> Response:
    return JSONResponse({"detail": detail}, status_code=status)


class _Server(uvicorn.Server):
    """Leaves signals to the operator."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


@asynccontextmanager
async def served(app: Starlette, port: int | None) -> AsyncIterator[int | None]:
    """Serve it while the block runs; None: not at all. Yields the port. Raises OSError where it is taken."""
    if port is None:
        yield None
        return
    server = _Server(
        uvicorn.Config(app, access_log=False, log_config=None, lifespan="off", timeout_graceful_shutdown=CLOSE_SECONDS)
    )
    with socket.create_server(("0.0.0.0", port)) as listener:  # noqa: S104 - the API server asks, from elsewhere
        task = asyncio.create_task(server.serve([listener]))
        try:
            yield int(listener.getsockname()[1])
        finally:
            server.should_exit = True
            await asyncio.gather(task, return_exceptions=True)
