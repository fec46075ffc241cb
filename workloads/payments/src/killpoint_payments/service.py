"""One process, two ports: the public API and the admin API on one event loop, ready once the past is over."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator

import psycopg
import uvicorn
from starlette.types import ASGIApp
from uvicorn.loops.auto import auto_loop_factory

from killpoint_payments.admin import Admin, admin_app, fence_through
from killpoint_payments.ledger import Ledger
from killpoint_payments.migrate import migrate, unreachable
from killpoint_payments.public import public_app
from killpoint_payments.resources import Readiness, Service
from killpoint_payments.settings import CannotServe, Settings
from killpoint_payments.transport import GatheringProtocol

APPLICATION = "killpoint-payments"
STOP_SECONDS_MAX = 35
"""A stop waits for the requests in flight, which a statement's own timeout bounds."""
ORPHAN_POLL_SECONDS = 0.05
BACKLOG = 2048

_ORPHANS = """
SELECT pid FROM pg_stat_activity
 WHERE datname = current_database() AND starts_with(application_name, %s) AND application_name <> %s
"""


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; raises :class:`CannotServe` with what is missing."""
    public = _listen(settings.host, settings.port)
    admin = _listen(settings.host, settings.admin_port)
    with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
        runner.run(_serve(settings, public, admin))


class _Server(uvicorn.Server):
    """A server that leaves signals alone: two of them share this process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _serve(settings: Settings, public: socket.socket, admin: socket.socket) -> None:
    name = f"{APPLICATION}/{settings.boot}"
    ledger = Ledger(database_url=settings.database_url, application_name=name, connections=settings.connections)
    readiness = Readiness()
    servers = _servers(settings, ledger, readiness, public=public)
    running = [
        asyncio.ensure_future(server.serve(sockets=[listener]))
        for server, listener in zip(servers, (public, admin), strict=True)
    ]
    starting = asyncio.ensure_future(_start(settings, ledger, name))
    told_to_stop = asyncio.ensure_future(_signal())
    try:
        await asyncio.wait([starting, told_to_stop, *running], return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            readiness.ready = True
            _announce(settings, public, admin)
            await asyncio.wait([told_to_stop, *running], return_when=asyncio.FIRST_COMPLETED)
    finally:
        starting.cancel()
        told_to_stop.cancel()
        for server in servers:
            server.should_exit = True
        await asyncio.gather(*running)
        await asyncio.gather(starting, told_to_stop, return_exceptions=True)
        await ledger.close()


async def _signal() -> None:
    """Return once the process is told to stop."""
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    await told.wait()


def _servers(
    settings: Settings, ledger: Ledger, readiness: Readiness, *, public: socket.socket
) -> tuple[_Server, _Server]:
    service = Service(
        ledger=ledger, signing_key=settings.signing_key, readiness=readiness, now_ms=lambda: time.time_ns() // 1_000_000
    )
    host, port = public.getsockname()[:2]
    admin = Admin(
        ledger=ledger,
        readiness=readiness,
        admin_token=settings.admin_token,
        boot=settings.boot,
        fence=fence_through(_reachable(host), port),
    )
    return _server(public_app(service)), _server(admin_app(admin))


def _server(app: ASGIApp) -> _Server:
    return _Server(
        uvicorn.Config(
            app,
            http=GatheringProtocol,
            lifespan="off",
            ws="none",
            access_log=False,
            log_level="warning",
            server_header=False,
            date_header=False,
            proxy_headers=False,
            backlog=BACKLOG,
            timeout_graceful_shutdown=STOP_SECONDS_MAX,
        )
    )


async def _start(settings: Settings, ledger: Ledger, name: str) -> None:
    """Bring the database up to date, outlive the sessions of earlier boots, open this one's."""
    await asyncio.to_thread(migrate, settings.database_url, application_name=name)
    await _outlive_orphans(settings, name)
    try:
        await ledger.open()
    except psycopg.Error as error:
        raise CannotServe(unreachable(error)) from error


async def _outlive_orphans(settings: Settings, name: str) -> None:
    """Wait until no session of an earlier boot is left: one that was killed may still be committing.

    A session that idles ends by itself as soon as its client is gone, one that works when its statement is over.
    """
    deadline = time.monotonic() + settings.orphans_seconds_max
    try:
        async with await psycopg.AsyncConnection.connect(
            settings.database_url, autocommit=True, application_name=name, connect_timeout=5
        ) as connection:
            while orphans := await (await connection.execute(_ORPHANS, (f"{APPLICATION}/", name))).fetchall():
                if time.monotonic() > deadline:
                    raise CannotServe(
                        f"{len(orphans)} sessions of another killpoint-payments are in the payments database after "
                        f"{settings.orphans_seconds_max:g} s: stop that service, or give this one a database of its own"
                    )
                await asyncio.sleep(ORPHAN_POLL_SECONDS)
    except psycopg.Error as error:
        raise CannotServe(unreachable(error)) from error


def _announce(settings: Settings, public: socket.socket, admin: socket.socket) -> None:
    """Write the ready file, whole or not at all."""
    told = {
        "port": public.getsockname()[1],
        "admin_port": admin.getsockname()[1],
        "pid": os.getpid(),
        "boot": settings.boot,
    }
    print(
        f"killpoint-payments listens on {settings.host}, port {told['port']}, admin port {told['admin_port']}",
        file=sys.stderr,
        flush=True,
    )
    if settings.ready_file is not None:
        partial = settings.ready_file.with_name(f"{settings.ready_file.name}.{os.getpid()}")
        try:
            partial.write_text(json.dumps(told), "utf-8")
            partial.replace(settings.ready_file)
        except OSError as error:
            raise CannotServe(f"the ready file {settings.ready_file} cannot be written: {error.strerror}") from error


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        raise CannotServe(
            f"port {port} of {host} cannot be had: {error.strerror}; choose another one, or 0 for any that is free"
        ) from error
    listener.setblocking(False)  # noqa: FBT003 - the only way to say it
    return listener


def _reachable(host: str) -> str:
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound
