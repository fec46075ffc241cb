"""Everything that an experiment needs on this machine, started in order and ended in reverse."""

from __future__ import annotations

import asyncio
import errno
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import killpoint
from killpoint.databases.administration import JOURNAL, PAYMENTS, Databases
from killpoint.databases.errors import PostgresUnreachable
from killpoint.databases.server import Server, given_postgres
from killpoint.local.attempts import RunFolder
from killpoint.local.embedded import embedded_postgres
from killpoint.local.environments import Environments
from killpoint.local.errors import DISK_FULL, LocalError, WorkloadsError
from killpoint.local.home import Home
from killpoint.local.payments_process import PROJECT as PAYMENTS_PROJECT
from killpoint.local.payments_process import PaymentsProcess, PaymentsSettings
from killpoint.local.progress import Report, silent
from killpoint.local.substrate import LocalSubstrate, SubstrateSettings
from killpoint.local.workers import Mode, Worker
from killpoint.local.workloads import Workloads
from killpoint.model.catalog import Catalog
from killpoint.payments import PaymentsLedger

END_SECONDS_MAX = 30.0
"""For each part of the stack, when it is ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackOptions:
    """What is to be started, and where."""

    home: Home
    workloads: Workloads
    journal: str
    """The id of the experiment run."""
    setups: frozenset[str]
    """Only what these need is made ready."""
    user: Mapping[str, str] = field(repr=False)
    """The environment of the harness (``os.environ``): for uv, and a few names of it for workers."""
    dsn: str | None = field(repr=False, default=None)
    """None: a Postgres of our own."""
    mode: Mode = Mode.AUTO
    parallelism: int = 4
    keep: bool = False
    catalog: Catalog | None = None
    """None: what the workloads have. Setups without a project are the user's own."""
    own_folder: Path = Path()
    """Where the commands of the user's own setups find their files."""
    report: Report = field(repr=False, default=silent)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalStack:
    """What is running."""

    catalog: Catalog
    journal: str
    journal_dsn: str = field(repr=False)
    signing_key: str = field(repr=False)
    """For ``killpoint.payments.mint_token``."""
    payments: PaymentsProcess
    ledger: PaymentsLedger
    substrate: LocalSubstrate
    server: Server
    workers: Mapping[str, Worker]
    run: RunFolder
    databases: Databases

    async def free(self) -> None:
        """Drop the run's database and volumes, once the run is over and nothing of it is to be looked at.

        What reports and judgements are made from stays: the journal, payments' ledger, and the attempts' logs.
        """
        await self.databases.drop_experiment(self.journal)
        await asyncio.to_thread(shutil.rmtree, self.run.folder / "volumes", ignore_errors=True)

    @property
    def wake(self) -> asyncio.Event:
        return self.substrate.wake

    def versions(self) -> Mapping[str, Mapping[str, str]]:
        """Setup → distribution → version, as installed."""
        return {
            name: worker.environment.versions(worker.setup.versions) for name, worker in sorted(self.workers.items())
        }


def installed_workloads() -> Workloads:
    """The workloads that come with this killpoint. Raises WorkloadsError."""
    return Workloads.find(Path(killpoint.__file__).parent)


@asynccontextmanager
async def local_postgres(home: Home, dsn: str | None, *, report: Report = silent) -> AsyncIterator[Databases]:
    """A server and killpoint's databases on it, for whoever needs no more than the journal."""
    async with AsyncExitStack() as stack:
        server = await _given(dsn) if dsn else await stack.enter_async_context(embedded_postgres(home, report=report))
        yield await stack.enter_async_context(Databases(server))


async def _given(dsn: str) -> Server:
    try:
        return await given_postgres(dsn)
    except PostgresUnreachable as error:
        raise PostgresUnreachable(
            error.what,
            detail=error.detail,
            remedy=f"{error.remedy} Without a DSN killpoint runs a Postgres of its own.",
        ) from error


@asynccontextmanager
async def local_journal(home: Home, dsn: str | None, *, report: Report = silent) -> AsyncIterator[str]:
    """The journal's DSN, with its server running: all that reports and judgements need."""
    async with local_postgres(home, dsn, report=report) as databases:
        yield await databases.ensure_service(JOURNAL)


@asynccontextmanager
async def local_stack(options: StackOptions) -> AsyncIterator[LocalStack]:
    """Start everything. Raises Impediment, before anything of the experiment has happened."""
    async with AsyncExitStack() as stack:
        try:
            running = await _compose(stack, options)
        except OSError as error:
            raise LocalError(
                f"{error.filename or options.home.state}: {error.strerror or error}",
                remedy=DISK_FULL if error.errno == errno.ENOSPC else f"State lies in {options.home.state}: look there.",
            ) from error
        yield running


async def _compose(stack: AsyncExitStack, options: StackOptions) -> LocalStack:
    """Start each part, and have the stack end what was started."""
    catalog = options.workloads.catalog() if options.catalog is None else options.catalog
    workers = await _workers(options, catalog)
    payments_environment = await _environments(options).ensure(PAYMENTS_PROJECT)
    run = RunFolder(folder=options.home.run(options.journal))
    databases = await stack.enter_async_context(local_postgres(options.home, options.dsn, report=options.report))
    payments = PaymentsProcess(
        PaymentsSettings(
            environment=payments_environment,
            database=await databases.ensure_service(PAYMENTS),
            folder=run.folder / "payments",
            user=options.user,
            connections=min(16, max(4, 2 * options.parallelism)),
        ),
        report=options.report,
    )
    await payments.start()
    _finally(stack, payments.stop)
    ledger = PaymentsLedger(url=payments.admin_url, token=payments.settings.admin_token)
    _finally(stack, ledger.close)
    substrate = LocalSubstrate(
        SubstrateSettings(
            run=run, workers=workers, mode=options.mode, databases=databases,
            database=await databases.ensure_experiment(options.journal), payments_url=payments.url,
            user=options.user, keep=options.keep, report=options.report,
        )
    )  # fmt: skip
    await stack.enter_async_context(substrate)
    await substrate.warm_up()
    return LocalStack(
        catalog=catalog, journal=options.journal, journal_dsn=await databases.ensure_service(JOURNAL),
        signing_key=payments.settings.signing_key, payments=payments, ledger=ledger, substrate=substrate,
        server=databases.server, workers=workers, run=run, databases=databases,
    )  # fmt: skip


async def _workers(options: StackOptions, catalog: Catalog) -> Mapping[str, Worker]:
    """The setups that are needed, each with its environment; those of one project share it."""
    known = {setup.name: setup for setup in catalog}
    missing = sorted(options.setups - set(known))
    if missing:
        raise WorkloadsError(
            f"no workload in {options.workloads.folder} has a setup {missing[0]!r}",
            remedy=f"There are: {', '.join(known)}.",
        )
    environments = _environments(options)
    workers = {}
    for name in sorted(options.setups):
        setup = known[name]
        workers[name] = Worker(
            setup=setup,
            environment=await environments.ensure(setup.project) if setup.project else environments.of_user(),
            project=options.workloads.project(setup.project) if setup.project else options.own_folder.absolute(),
        )
    return workers


def _environments(options: StackOptions) -> Environments:
    return Environments(home=options.home, workloads=options.workloads, user=options.user, report=options.report)


def _finally(stack: AsyncExitStack, end: Callable[[], Awaitable[None]]) -> None:
    """Have something ended with the stack, within a bounded time."""

    async def bounded() -> None:
        async with asyncio.timeout(END_SECONDS_MAX):
            await end()

    stack.push_async_callback(bounded)
