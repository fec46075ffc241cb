"""What the tests of the local room work with: a home, a workloads folder, and substrates on a real Postgres."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from killpoint.databases.administration import Databases
from killpoint.databases.server import Server
from killpoint.local.attempts import RunFolder
from killpoint.local.environments import Environments
from killpoint.local.home import Home
from killpoint.local.substrate import LocalSubstrate, SubstrateSettings
from killpoint.local.workers import Mode, Worker
from killpoint.local.workloads import Workloads
from killpoint.model.catalog import Catalog
from killpoint.model.cells import AttemptId, TrialId
from killpoint.model.observations import Observation
from killpoint.ports import Launch

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent
DEADLINE_SECONDS = 60.0


@contextmanager
def new_home() -> Iterator[Home]:
    """A home that every user of the system can enter, as the embedded Postgres needs it when root runs the tests."""
    folder = Path(tempfile.mkdtemp(prefix="killpoint-test-"))
    folder.chmod(0o755)
    try:
        yield Home(state=folder / "state", cache=folder / "cache")
    finally:
        shutil.rmtree(folder)


def fake_workloads(folder: Path) -> Workloads:
    """A workloads folder with the real shared projects and the fake worker."""
    folder.mkdir()
    for name in ("worker", "steps", "payments"):
        (folder / name).symlink_to(ROOT / "workloads" / name)
    (folder / "fake").symlink_to(HERE / "workloads" / "fake")
    return Workloads(folder=folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """A server, a home and fake workers, for one experiment run."""

    server: Server
    home: Home
    workloads: Workloads
    journal: str

    @property
    def run_folder(self) -> Path:
        return self.home.run(self.journal)

    def volume(self, attempt: AttemptId) -> Path:
        return self.run_folder / "volumes" / str(attempt.trial)

    def launcher_pid(self) -> int:
        """As the harness wrote it down."""
        file = self.run_folder / "launchers" / "fake" / "process.json"
        return int(json.loads(file.read_text())["pid"])

    @asynccontextmanager
    async def substrate(
        self,
        mode: Mode = Mode.COLD,
        *,
        setup: str = "fake",
        user: Mapping[str, str] | None = None,
        keep: bool = False,
        catalog: Catalog | None = None,
    ) -> AsyncIterator[LocalSubstrate]:
        """The running substrate, with one setup."""
        environments = Environments(home=self.home, workloads=self.workloads, user=os.environ)
        async with Databases(self.server) as databases:
            (entry,) = (one for one in catalog or self.workloads.catalog() if one.name == setup)
            worker = Worker(
                setup=entry,
                environment=await environments.ensure(entry.project),
                project=self.workloads.project(entry.project),
            )
            settings = SubstrateSettings(
                run=RunFolder(folder=self.run_folder),
                workers={setup: worker},
                mode=mode,
                databases=databases,
                database=await databases.ensure_experiment(self.journal),
                payments_url="http://127.0.0.1:9",
                user=user if user is not None else os.environ,
                keep=keep,
            )
            async with LocalSubstrate(settings) as running:
                yield running


def forkable(workloads: Workloads, setup: str) -> Catalog:
    """The catalog, with a setup that says it can be forked."""
    return tuple(replace(entry, forkable=True) if entry.name == setup else entry for entry in workloads.catalog())


def attempt_id(number: int = 1, *, trial: int = 1) -> AttemptId:
    return AttemptId(trial=TrialId(cell="7f31e2c0", number=trial), number=number)


def launch_of(
    attempt: AttemptId,
    *,
    behaviour: str = "finish",
    die_at: str | None = None,
    setup: str = "fake",
    store: str = "volume",
    nonce: str | None = None,
) -> Launch:
    """An attempt of the fake worker."""
    assignment = {
        "contract": 1,
        "experiment": "test",
        "trial": str(attempt.trial),
        "run": "run-1",
        "tenant": "tenant-1",
        "attempt": str(attempt),
        "number": attempt.number,
        "nonce": nonce or secrets.token_hex(8),
        "action": "start",
        "workflow": {"name": "charge", "versions": {}},
        "coordinates": {
            "setup": setup,
            "store": store,
            "key": "none",
            "resume": "continue",
            "parameters": {"behaviour": behaviour},
        },
        "job": {"orders": [{"id": "order-1", "amount": 4900, "currency": "EUR"}]},
        "schedule": [{"point": die_at, "occurrence": 1, "do": "die"}] if die_at else [],
    }
    return Launch(attempt=attempt, run="run-1", setup=setup, store=store, assignment=assignment, token="a token")


async def seen(running: LocalSubstrate, attempt: AttemptId, until: Callable[[Observation], object]) -> Observation:
    """Watch an attempt, woken as the driver is, until something is true of it."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        running.wake.clear()
        found = (await running.observe([attempt])).get(attempt)
        if found is not None and until(found):
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(f"not seen in {DEADLINE_SECONDS:.0f} s; last: {found}")
        try:
            async with asyncio.timeout(0.05):
                await running.wake.wait()
        except TimeoutError:
            # Lines of a log wake nobody.
            continue


async def ended(running: LocalSubstrate, attempt: AttemptId) -> Observation:
    return await seen(running, attempt, lambda found: found.end)


async def eventually(claim: Callable[[], object], *, what: str) -> None:
    """Wait until a claim about the machine holds."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not claim():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {DEADLINE_SECONDS:.0f} s: {what}")
        await asyncio.sleep(0.02)
