"""What tests of whole runs work with: the real command as a process, a Postgres that can be hurt, and experiments."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import psycopg
import yaml

from killpoint.databases.administration import JOURNAL
from killpoint.journal.codec import decode
from killpoint.local.home import Home
from killpoint.local.postgres_place import Place, find_place
from killpoint.local.processes import Process, at_home_below, command_of, identify
from killpoint.model.events import Event, TrialJudged

__all__ = ["command_of", "identify"]

ROOT = Path(__file__).parents[3]
EXPERIMENTS = ROOT / "experiments"
KILLPOINT = Path(sys.executable).with_name("killpoint")
SECONDS_MAX = 280.0
"""Of one command. Below the suite's own limit, so that its words are seen."""
GONE_SECONDS_MAX = 5.0
"""Within which nothing of a killed command acts any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def status(self) -> dict[str, Any]:
        """What ``-o json`` wrote."""
        assert self.out.startswith("{"), f"exit {self.code}\n{self.out[-2000:]}\n{self.err[-4000:]}"
        found: dict[str, Any] = json.loads(self.out)
        return found

    def cells(self) -> dict[tuple[str, ...], dict[str, Any]]:
        """Coordinates, as words without their axes → the cell. A control's last word is ``none``."""
        return {tuple(cell["coordinates"].values()): cell for cell in self.status["cells"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A command that goes on while its test does something to it."""

    process: subprocess.Popen[str]
    folder: Path
    """Where its output goes: a file, which nobody has to read meanwhile."""

    @property
    def err(self) -> str:
        return (self.folder / "err").read_text()

    def ended(self) -> Ended:
        """Wait for its end."""
        try:
            code = self.process.wait(SECONDS_MAX)
        except subprocess.TimeoutExpired as error:
            self.process.kill()
            raise AssertionError(f"not at its end after {SECONDS_MAX:.0f} s:\n{self.err[-3000:]}") from error
        return Ended(code=code, out=(self.folder / "out").read_text(), err=self.err)

    def until(self, claim: Callable[[], object], *, what: str, seconds: float = 90.0) -> None:
        """Wait until something holds while the command runs."""

        def claimed() -> object:
            if (found := claim()) or self.process.poll() is None:
                return found
            raise AssertionError(f"the command ended ({self.process.returncode}) before {what}:\n{self.err[-3000:]}")

        eventually(claimed, what=what, seconds=seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The real ``killpoint``, with a home of its own."""

    home: Path
    cache: Path
    scratch: Path
    further: Mapping[str, str] = field(default_factory=dict)
    """Environment variables."""
    started: list[Running] = field(default_factory=list)

    @property
    def runs(self) -> Path:
        return self.home / "runs"

    def with_variables(self, **variables: str) -> Command:
        return Command(home=self.home, cache=self.cache, scratch=self.scratch, further={**self.further, **variables})

    def start(self, *arguments: str | Path, under: Sequence[str] = ()) -> Running:
        """Start it, under a program that ends up as it (``nice`` and the like)."""
        folder = Path(tempfile.mkdtemp(prefix="command-", dir=self.scratch))
        with (folder / "out").open("w") as out, (folder / "err").open("w") as err, _interruptible():
            process = subprocess.Popen(
                [*under, str(KILLPOINT), *map(str, arguments)],
                stdin=subprocess.DEVNULL, stdout=out, stderr=err, text=True, env=self._environment(),
            )  # fmt: skip
        running = Running(process=process, folder=folder)
        self.started.append(running)
        return running

    def end(self) -> None:
        """End what a failed test has left running."""
        for running in self.started:
            if running.process.poll() is None:
                running.process.terminate()
                running.process.wait(60)

    def __call__(self, *arguments: str | Path, under: Sequence[str] = ()) -> Ended:
        """Run it to its end."""
        return self.start(*arguments, under=under).ended()

    def newest_run(self) -> Path:
        """The folder of the run that was begun last."""
        cards = sorted(self.runs.glob("*/run.json"), key=lambda card: json.loads(card.read_text())["started_ms"])
        return cards[-1].parent

    def processes(self, word: str = "") -> tuple[Process, ...]:
        """Every process of the runs of this home: payments, launchers, workers; those with a word in their command."""
        return tuple(one for one in at_home_below(self.runs) if word in command_of(one.pid))

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("KILLPOINT_")}
        return {**kept, "KILLPOINT_HOME": str(self.home), "KILLPOINT_CACHE": str(self.cache), **self.further}


@contextmanager
def _interruptible() -> Iterator[None]:
    """Whoever runs the tests in the background has SIGINT ignored, which a new program would inherit."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def new_home() -> Iterator[Path]:
    """A folder that every user can enter, as the embedded Postgres needs it when root runs the tests."""
    folder = Path(tempfile.mkdtemp(prefix="killpoint-runs-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, kw_only=True)
class Postgres:
    """A server with a password and a fixed port, which a test stops, starts and breaks."""

    folder: Path
    password: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    port: int = field(default_factory=lambda: free_port())  # noqa: PLW0108 - it is defined below

    @cached_property
    def place(self) -> Place:
        return find_place(Home(state=self.folder, cache=self.folder))

    @property
    def dsn(self) -> str:
        return self.of("postgres")

    def of(self, database: str, *, password: str | None = None) -> str:
        return f"postgresql://postgres:{password or self.password}@127.0.0.1:{self.port}/{database}"

    def make(self) -> None:
        with self.place.scratch() as scratch:
            given = scratch / "password"
            given.write_text(self.password)
            self.place.give(given)
            made = scratch / "data"
            self._run(
                "initdb", "-D", str(made), "-U", "postgres", "--auth=scram-sha-256",
                f"--pwfile={given}", "--encoding=UTF8", "--no-locale", "--no-sync",
            )  # fmt: skip
            made.rename(self.place.data)

    def start(self) -> None:
        settings = {"port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off"}
        options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        self._run("pg_ctl", "start", "-D", str(self.place.data), "-w", "-l", str(self.place.server_log), "-o", options)

    def stop(self, mode: str) -> None:
        self._run("pg_ctl", "stop", "-D", str(self.place.data), "-w", "-m", mode)

    def events(self, run: str) -> list[Event]:
        """Everything that the journal on this server holds of a run, in order."""
        statement = "SELECT kind, document::text FROM events WHERE run = %s ORDER BY sequence"
        try:
            with psycopg.connect(self.of(JOURNAL)) as connection:
                rows = connection.execute(statement, (run,)).fetchall()
        except (psycopg.errors.UndefinedTable, psycopg.OperationalError):
            return []  # it is not there yet
        return [decode(kind, document) for kind, document in rows]

    def _run(self, program: str, *arguments: str) -> None:
        with (self.place.folder / "test.log").open("wb") as log:
            subprocess.run(
                [self.place.binaries / program, *arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.place.folder, check=True, timeout=60,
                env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"}, start_new_session=True, **self.place.login(),
            )  # fmt: skip


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def eventually(claim: Callable[[], object], *, what: str, seconds: float = 30.0) -> None:
    """Wait until a claim about the machine holds."""
    deadline = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.02)


def judged(command: Command, server: Postgres) -> int:
    """How many trials of the newest run of a home are judged."""
    if not list(command.runs.glob("*/run.json")):
        return 0
    return sum(isinstance(event, TrialJudged) for event in server.events(command.newest_run().name))


def kill(process: Process) -> None:
    """SIGKILL, and no more: to no group."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)


# --- experiments -----------------------------------------------------------------------------------------------


def fewer(name: str, folder: Path, *, trials: int, **fields: object) -> Path:
    """A copy of one of the experiments with fewer trials, where what it names beside itself is found."""
    document = yaml.safe_load((EXPERIMENTS / f"{name}.yaml").read_text())
    document["spec"] |= {"trials": trials, **fields}
    beside = folder / "workloads"
    if not beside.exists():
        beside.symlink_to(ROOT / "workloads")
    return written(folder / "experiments", document)


def experiment(name: str, folder: Path, **spec: object) -> Path:
    """A file with one experiment."""
    return written(
        folder,
        {
            "apiVersion": "killpoint.dev/v1alpha1",
            "kind": "CrashExperiment",
            "metadata": {"name": name},
            "spec": spec,
        },
    )


def written(folder: Path, document: Mapping[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{document['metadata']['name']}.yaml"
    file.write_text(yaml.safe_dump(dict(document), sort_keys=False))
    return file


def shell(
    folder: Path, name: str, *, trials: int = 1, keys: Sequence[str] = ("none", "stable"), **spec: object
) -> Path:
    """An experiment with the shell worker: a trial is a few hundred milliseconds, and needs no environment."""
    return experiment(
        name,
        folder,
        matrix={
            "setup": ["shell"],
            "store": ["volume"],
            "key": list(keys),
            "kill": [{"at": ["charge.before"]}, {"at": ["charge.after"]}, {"at": ["charge.recorded"]}],
        },
        trials=trials,
        expect=DUPLICATES,
        **spec,
    )


DUPLICATES = [
    {"where": {"key": ["none"], "kill": ["charge.after"]}, "verdict": ["duplicate"], "effects": {"charge": 2}},
]
"""What every framework shows: charged, and killed before anything recorded it."""
