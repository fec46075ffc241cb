"""Run an experiment on this machine: the local stack, an engine, a journal and the files that the run leaves."""

from __future__ import annotations

import os
import platform
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from killpoint import __version__
from killpoint.api.v1alpha1.spec import CrashExperiment
from killpoint.cli.archive import EVIDENCE_FILE, RunCard, cards, write_archive, write_card
from killpoint.cli.drive import drive
from killpoint.cli.fingerprint import fingerprint
from killpoint.cli.progress import Count, Show
from killpoint.core.summarize import summarize
from killpoint.databases.dsn import masked
from killpoint.engine import Engine, Step, World
from killpoint.journal.archive import archive_of
from killpoint.journal.postgres import PostgresJournal, migrate, open_run
from killpoint.local.attempts import RunFolder
from killpoint.local.errors import LocalError, RunInUse, last_lines
from killpoint.local.home import Home
from killpoint.local.locks import FileLock
from killpoint.local.payments_process import PaymentsProcess
from killpoint.local.progress import Progress
from killpoint.local.stack import LocalStack, StackOptions, local_stack
from killpoint.local.substrate import is_executed
from killpoint.local.workers import Mode
from killpoint.local.workloads import Workloads
from killpoint.model.catalog import Catalog
from killpoint.model.experiment import Experiment
from killpoint.model.summary import ExperimentSummary, Provenance
from killpoint.model.tokens import mint_token

CARD_SECONDS = 1.0
"""How often the run's card is written while trials go on."""
SHOW_SECONDS = 0.1
"""How often progress is counted: passes come faster than anybody reads."""
COMMAND_LOCK = "command.lock"
"""In a run's folder: held by the command that works at it, from before anything is prepared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalRun:
    """What is to be run, and how."""

    experiment: Experiment
    document: CrashExperiment
    catalog: Catalog
    """With the file's own workers."""
    file: Path
    command: str
    home: Home
    workloads: Workloads
    dsn: str | None = field(repr=False, default=None)
    mode: Mode = Mode.AUTO
    keep: bool = False
    fresh: bool = False
    """Leave an unfinished run of the same specification alone and start a new one."""
    narrowed: bool = False
    """Whether it is a part of the file's experiment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a run came to, and where its files are."""

    summary: ExperimentSummary
    folder: Path


async def run_locally(request: LocalRun, show: Show) -> Ran:
    """Run an experiment, or go on with the same one where it was broken off."""
    card = _card(request, show)
    folder = request.home.run(card.run)
    show.prepare(f"{'going on with' if folder.exists() else 'run'} {card.run} of {card.experiment}")
    with _alone(folder):
        return await _run(request, card, folder, show)


def is_running(folder: Path) -> bool:
    """Whether a command works at a run now: it prepares it, or it executes it."""
    if is_executed(RunFolder(folder=folder)):
        return True
    if not (folder / COMMAND_LOCK).exists():
        return False
    lock = FileLock(folder / COMMAND_LOCK)
    try:
        return not lock.try_exclusive()
    finally:
        lock.close()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Before anything is started: another command's payments and passwords are not to be replaced. Raises RunInUse."""
    try:
        lock = FileLock(folder / COMMAND_LOCK)
    except OSError as error:
        message = f"{folder} cannot be written: {error.strerror or error}"
        raise LocalError(message, remedy="Set KILLPOINT_HOME to a folder that you may write to.") from error
    try:
        if not lock.try_exclusive():
            raise RunInUse(
                f"another killpoint is executing this run ({folder})",
                remedy="Wait for it, or end it; what it has done so far is kept. With --fresh a new run is started.",
            )
        yield
    finally:
        lock.close()


async def _run(request: LocalRun, card: RunCard, folder: Path, show: Show) -> Ran:
    options = StackOptions(
        home=request.home,
        workloads=request.workloads,
        journal=card.run,
        setups=frozenset(cell.coordinates.setup for cell in request.experiment.cells),
        user=os.environ,
        dsn=request.dsn,
        mode=request.mode,
        parallelism=request.experiment.parallelism,
        keep=request.keep,
        catalog=request.catalog,
        own_folder=request.file.parent,
        report=lambda progress: _prepared(show, progress),
    )
    write_card(folder, card)  # first of all: the same command is to find what is being prepared
    async with local_stack(options) as stack:
        engine = await _engine(request, stack, card)
        async with engine.journal:
            await drive(
                engine.engine,
                waker=stack.wake,
                on_step=_on_step(show, folder, card),
                given_up=lambda: _given_up(stack.payments),
            )
            summary = _stored(request, engine.engine, _provenance(request, stack, engine.engine), folder)
            await engine.journal.end()
        result = None if summary.result is None else summary.result.value
        write_card(
            folder,
            replace(card, state="ended", result=result, judged=summary.totals.judged, trials=summary.totals.trials),
        )
        if not request.keep:
            with suppress(LocalError):  # the run is over and stored; what is left of it takes up space, no more
                await stack.free()
    return Ran(summary=summary, folder=folder)


def _given_up(payments: PaymentsProcess) -> str | None:
    if payments.fault is None:
        return None
    log = payments.settings.folder / "payments.log"
    return f"the payments service {payments.fault}\n{last_lines(log, 3)}\nIts whole log: {log}"


def _stored(request: LocalRun, engine: Engine, provenance: Provenance, folder: Path) -> ExperimentSummary:
    """Write all the evidence of a run that is over, and sum it up."""
    run = engine.run()
    document = request.document.model_dump(mode="json", by_alias=True)
    write_archive(folder / EVIDENCE_FILE, archive_of(run, document=document, provenance=provenance))
    return summarize(run, provenance)


def _card(request: LocalRun, show: Show) -> RunCard:
    """The card of the unfinished run of this very specification and programs on this server, or a new one."""
    setups = {cell.coordinates.setup for cell in request.experiment.cells}
    programs = fingerprint(request.workloads, request.catalog, setups, request.file.parent.absolute())
    server = "embedded" if request.dsn is None else masked(request.dsn)
    if not request.fresh:
        for card in cards(request.home.state / "runs"):
            same = (card.experiment, card.digest, card.server) == (
                request.experiment.name,
                request.experiment.digest,
                server,
            )
            if same and card.state == "running" and card.programs == programs:
                return card
            if same and card.state == "running":
                show.prepare(f"run {card.run} was broken off with other worker programs than these: starting anew")
    return RunCard(
        run=secrets.token_hex(4),
        experiment=request.experiment.name,
        digest=request.experiment.digest,
        server=server,
        file=str(request.file.absolute()),
        started_ms=_now_ms(),
        programs=programs,
        narrowed=request.narrowed,
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Engine:
    engine: Engine
    journal: PostgresJournal


async def _engine(request: LocalRun, stack: LocalStack, card: RunCard) -> _Engine:
    await migrate(stack.journal_dsn)
    await open_run(stack.journal_dsn, card.run, experiment=card.experiment, digest=card.digest)
    journal = PostgresJournal(stack.journal_dsn, card.run)
    await journal.take_over()

    def mint(run: str, attempt: str) -> str:
        return mint_token(stack.signing_key, experiment=card.experiment, tenant=run, run=run, attempt=attempt)

    world = World(
        journal=journal,
        substrate=stack.substrate,
        ledger=stack.ledger,
        now_ms=_now_ms,
        new_nonce=lambda: secrets.token_hex(8),
        incarnation=secrets.token_hex(4),
        mint_token=mint,
    )
    return _Engine(engine=Engine(request.experiment, card.run, world), journal=journal)


def _on_step(show: Show, folder: Path, card: RunCard) -> Callable[[Step], None]:
    shown = written = 0.0

    def on_step(step: Step) -> None:
        nonlocal shown, written
        over = step.wake_after_seconds is None
        if time.monotonic() - shown < SHOW_SECONDS and not over:
            return
        shown = time.monotonic()
        count = Count.of(step)
        show.trials(count)
        if shown - written > CARD_SECONDS:
            written = shown
            write_card(folder, replace(card, judged=count.judged, trials=count.trials))

    return on_step


def _prepared(show: Show, progress: Progress) -> None:
    show.prepare(f"{progress.subject}: {progress.text}")


def _provenance(request: LocalRun, stack: LocalStack, engine: Engine) -> Provenance:
    state = engine.state
    return Provenance(
        killpoint=__version__,
        substrate="local",
        seed=request.experiment.seed,
        started_ms=state.opened_ms or 0,
        ended_ms=state.ended_ms,
        versions=_sorted(stack.versions()),
        platform=(
            ("Postgres", stack.server.version),
            ("Python", platform.python_version()),
            ("Machine", f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"),
        ),
        command=request.command,
        replay=f"killpoint replay {request.experiment.name}",
    )


def _sorted(versions: Mapping[str, Mapping[str, str]]) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    return tuple((setup, tuple(sorted(of.items()))) for setup, of in sorted(versions.items()))
