"""The operator and what it needs as processes of this machine, with the cluster's pods reaching them over the link."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from killpoint.databases import dsn as dsns
from killpoint.databases.administration import JOURNAL, PAYMENTS, Databases
from killpoint.local.embedded import embedded_postgres
from killpoint.local.home import Home
from tests.cluster.kubectl import Kubectl
from tests.cluster.node.layout import MACHINE_ADDRESS

START_SECONDS_MAX = 60.0
LOOPBACK = "127.0.0.1"
OPERATOR = "killpoint.controller"
WORKER_IMAGE = "localhost/killpoint-langgraph:dev"
"""Any image that has Python, for a program that needs no more."""
PROGRAM = """
import json,os,time,urllib.request as U
E=os.environ;A=json.loads(E["KILLPOINT_ASSIGNMENT"]);L=os.open("/dev/termination-log",os.O_WRONLY|os.O_APPEND)
K={k["point"] for k in A["schedule"]};o=A["job"]["orders"][0]
def say(**l):os.write(L,json.dumps(l).encode()+b"\\n")
def at(p):
 say(point=p)
 if p in K:os.kill(os.getpid(),9)
def post(path,**b):
 h={"Authorization":"Bearer "+E["KILLPOINT_TOKEN"],"Content-Type":"application/json"}
 return json.load(U.urlopen(U.Request(E["KILLPOINT_PAYMENTS_URL"]+path,json.dumps(b).encode(),h),timeout=9))
say(killpoint=1,attempt=A["attempt"],nonce=A["nonce"])
time.sleep(int(A["coordinates"]["parameters"]["pause"]))
at("charge.before")
c=post("/v1/charges",order=o["id"],amount=o["amount"],currency=o["currency"])
at("charge.after")
post("/v1/notifications",order=o["id"],kind="finalize")
say(outcome="finished",claims=[{"action":"charge","order":o["id"],"effect":c["id"]}])
"""
"""A worker without a framework, in the 1,024 characters that a word of a command may have."""


def experiment(name: str, *, pause: int = 0, **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - any field of the spec
    """An experiment of one killed cell, in which each resume charges again: as expected. ``pause``: seconds, first."""
    default = {
        "workers": [
            {
                "setup": "tiny",
                "image": WORKER_IMAGE,
                "command": ["python", "-c", PROGRAM],
                "stores": ["postgres"],
                "keys": ["none"],
                "points": ["charge.before", "charge.after"],
                "parameters": {"pause": [str(pause)]},
            }
        ],
        "matrix": {
            "setup": ["tiny"],
            "key": ["none"],
            "kill": [{"at": ["charge.after"]}],
            "parameters": {"pause": [str(pause)]},
        },
        "trials": 1,
        "expect": [{"where": {"kill": ["charge.after"]}, "verdict": ["duplicate"], "effects": {"charge": 2}}],
    }
    return {
        "apiVersion": "killpoint.dev/v1alpha1",
        "kind": "CrashExperiment",
        "metadata": {"name": name},
        "spec": {**default, **spec},
    }


@dataclass(kw_only=True)
class Relay:
    """A port of this machine's link that leads to a port of its own: what pods reach, and what a test can cut."""

    target: int
    near: str = MACHINE_ADDRESS
    """Where it listens."""
    far: str = LOOPBACK
    """Where it leads to."""
    _listener: socket.socket = field(init=False)
    _open: set[socket.socket] = field(default_factory=set)
    _cut: bool = False

    def __post_init__(self) -> None:
        self._listener = socket.create_server((self.near, 0))
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def place(self) -> str:
        return f"{self.near}:{self._listener.getsockname()[1]}"

    def cut(self) -> None:
        """Break every connection, and let no new one through."""
        self._cut = True
        for end in tuple(self._open):
            with suppress(OSError):  # the other side was faster
                end.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        self._cut = False

    def close(self) -> None:
        self._listener.close()
        self.cut()

    def _serve(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return  # it was closed
            try:
                if self._cut:
                    raise ConnectionRefusedError
                far = socket.create_connection((self.far, self.target), timeout=5)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        self._open.add(source)
        try:
            while data := source.recv(65_536):
                sink.sendall(data)
        except OSError:
            return  # one of the two is gone; so is the other, below
        finally:
            self._open.discard(source)
            with suppress(OSError):
                sink.shutdown(socket.SHUT_RDWR)
            source.close()


@dataclass(kw_only=True)
class Process:
    """A program of ours that runs beside the test, with its output in a file."""

    module: str
    arguments: Sequence[str] = ()
    environment: Mapping[str, str]
    log: Path
    _running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as out:
            self._running = subprocess.Popen(
                [sys.executable, "-m", self.module, *self.arguments],
                env={"PATH": os.environ["PATH"], "HOME": str(self.log.parent), **self.environment},
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
            )

    def kill(self) -> None:
        """SIGKILL: it has no time for anything."""
        self._end(signal.SIGKILL)

    def send(self, number: int) -> None:
        """A signal that does not end it."""
        assert self._running is not None, "it does not run"
        self._running.send_signal(number)

    @property
    def pid(self) -> int:
        assert self._running is not None, "it does not run"
        return self._running.pid

    def ended(self) -> int | None:
        """The exit code of one that has ended by itself; None: it runs, or was never started."""
        return None if self._running is None else self._running.poll()

    def stop(self) -> int:
        """SIGTERM. The exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, number: int) -> int:
        running, self._running = self._running, None
        if running is None:
            return 0
        running.send_signal(number)
        try:
            return running.wait(30)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait(10)
            raise

    def said(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""


@dataclass(frozen=True, kw_only=True)
class Operator:
    """An operator that can be ended and started again, and what it needs."""

    process: Process
    payments: Process
    database: Relay
    probes: int
    journal: str = field(repr=False)
    """DSN of the journal, for looking into it."""
    ledger: str = field(repr=False)
    """DSN of what payments holds."""
    server: str = field(repr=False)
    """DSN of the whole server's administrator."""

    def beside(self, name: str, **environment: str) -> Operator:
        """Another one for the same namespace, on the same services. Whoever asks for it ends it."""
        probes = _free()
        process = Process(
            module=self.process.module,
            environment={**self.process.environment, "KILLPOINT_PROBES_PORT": str(probes), **environment},
            log=self.process.log.with_name(f"{name}.log"),
        )
        return replace(self, process=process, probes=probes)

    def start(self) -> None:
        self.process.start()
        wait_for(lambda: self._answers("/readyz"), f"the operator: {self.process.said()[-2000:]}")

    def is_well(self) -> bool:
        return self._answers("/healthz")

    def _answers(self, path: str) -> bool:
        try:
            with _direct().open(f"http://{LOOPBACK}:{self.probes}{path}", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


def wait_for(condition: Callable[[], object], what: str, *, seconds: float = START_SECONDS_MAX) -> None:
    """Wait until something holds; fails the test with what it waited for."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"after {seconds:.0f} s still waiting for {what}"
        time.sleep(0.2)


@contextmanager
def operator_for(kubectl: Kubectl, *, module: str = OPERATOR, **environment: str) -> Iterator[Operator]:
    """An operator for one namespace, not started yet, with a Postgres, payments and control of its own.

    ``module`` and ``environment``: for an operator that is another program, or is told more than usual.
    """
    with tempfile.TemporaryDirectory(prefix="killpoint-operator-") as name, asyncio.Runner() as runner:
        folder = Path(name)
        folder.chmod(0o755)
        home = Home(state=folder / "state", cache=folder / "cache")
        postgres = embedded_postgres(home, durable=False)
        server = runner.run(postgres.__aenter__())
        try:
            databases = Databases(server)
            payments_dsn = runner.run(databases.ensure_service(PAYMENTS))
            journal_dsn = runner.run(databases.ensure_service(JOURNAL))
            runner.run(databases.close())
            with _processes(
                kubectl, folder, admin=server.admin, payments=payments_dsn, journal=journal_dsn
            ) as operator:
                process = operator.process
                process.module, process.environment = module, {**process.environment, **environment}
                yield operator
        finally:
            runner.run(postgres.__aexit__(None, None, None))


@contextmanager
def _processes(kubectl: Kubectl, folder: Path, *, admin: str, payments: str, journal: str) -> Iterator[Operator]:
    key, token = secrets.token_hex(16), secrets.token_hex(16)
    ready = folder / "payments.json"
    service = Process(
        module="killpoint_payments",
        arguments=["serve", "--host", MACHINE_ADDRESS, "--port", str(_free()), "--admin-port", str(_free()),
                   "--ready-file", str(ready)],
        environment={
            "KILLPOINT_PAYMENTS_DATABASE_URL": payments,
            "KILLPOINT_PAYMENTS_SIGNING_KEY": key,
            "KILLPOINT_PAYMENTS_ADMIN_TOKEN": token,
        },
        log=folder / "payments.log",
    )  # fmt: skip
    parking = _free()
    control = Process(
        module="killpoint.control",
        environment={
            "KILLPOINT_CONTROL_DATABASE_URL": journal,
            "KILLPOINT_SIGNING_KEY": key,
            "KILLPOINT_CONTROL_HOST": MACHINE_ADDRESS,
            "KILLPOINT_CONTROL_PORT": str(parking),
        },
        log=folder / "control.log",
    )
    relay = Relay(target=int(dsns.parse(admin)["port"]))
    migrate = [sys.executable, "-m", service.module, "migrate"]
    subprocess.run(migrate, env={"PATH": os.environ["PATH"], **service.environment}, check=True, capture_output=True)
    service.start()
    control.start()
    try:
        wait_for(ready.exists, f"payments: {service.said()}")
        ports = json.loads(ready.read_text())
        probes = _free()
        process = Process(
            module=OPERATOR,
            environment={
                "KUBECONFIG": str(kubectl.kubeconfig),
                "KILLPOINT_DATABASE_URL": dsns.with_place(admin, relay.place),
                "KILLPOINT_SIGNING_KEY": key,
                "KILLPOINT_PAYMENTS_URL": f"http://{MACHINE_ADDRESS}:{ports['port']}",
                "KILLPOINT_PAYMENTS_ADMIN_URL": f"http://{MACHINE_ADDRESS}:{ports['admin_port']}",
                "KILLPOINT_PAYMENTS_ADMIN_TOKEN": token,
                "KILLPOINT_CONTROL_URL": f"http://{MACHINE_ADDRESS}:{parking}",
                "KILLPOINT_IMAGES": json.dumps({"langgraph": WORKER_IMAGE}),
                "KILLPOINT_NAMESPACES": kubectl.namespace,
                "KILLPOINT_POD_NAMESPACE": kubectl.namespace,
                "KILLPOINT_PROBES_PORT": str(probes),
            },
            log=folder / "operator.log",
        )
        yield Operator(
            process=process,
            payments=service,
            database=relay,
            probes=probes,
            journal=dsns.with_database(admin, JOURNAL),
            ledger=dsns.with_database(admin, PAYMENTS),
            server=admin,
        )
    finally:
        process.stop()
        service.stop()
        control.stop()
        relay.close()


def _direct() -> urllib.request.OpenerDirector:
    """Past any proxy: what is asked is on this machine."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))


def _free() -> int:
    with socket.socket() as probe:
        probe.bind((MACHINE_ADDRESS, 0))
        port: int = probe.getsockname()[1]
        return port
