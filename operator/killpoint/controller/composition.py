"""Composition: what the engine of one experiment is made of."""

from __future__ import annotations

import asyncio
import platform
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from killpoint import __version__
from killpoint.api.available import Where
from killpoint.api.convert import experiment_of
from killpoint.api.load import from_fields
from killpoint.api.problems import Problem, ProblemsError
from killpoint.api.replays import own_images_of
from killpoint.api.v1alpha1.status import Report
from killpoint.api.v1alpha1.workers import Worker
from killpoint.controller.abandoned import Tenant
from killpoint.controller.evidence import keep_evidence
from killpoint.controller.freeing import drop_database, free_children
from killpoint.controller.requests import Requests
from killpoint.controller.shared import Shared, now_ms
from killpoint.controller.site import Order, Session
from killpoint.controller.statuses import command_for, replay_for
from killpoint.controller.subjects import Body, Subject, journal_of, recorded_journal
from killpoint.core.plan import attempts_of
from killpoint.core.state import JournalLostError
from killpoint.databases import dsn as dsns
from killpoint.engine import Engine, World
from killpoint.journal.postgres import PostgresJournal, open_run
from killpoint.kubernetes.manifests import Services, WorkerTemplate
from killpoint.kubernetes.resources import completed
from killpoint.kubernetes.substrate import KubernetesSubstrate, SubstrateSettings
from killpoint.model.summary import Provenance
from killpoint.ports import SubstrateUnavailableError


class ClusterSite:
    """Implements ``site.Site`` for one object."""

    def __init__(self, subject: Subject, shared: Shared) -> None:
        self._subject = subject
        self._shared = shared
        self._requests = shared.requests(subject.namespace)

    @property
    def objects(self) -> Requests:
        return self._requests

    async def order(self, body: Body) -> Order:
        """See ``site.Site``. In a thread: thousands of cells take their time, and others shall not wait for them."""
        return await asyncio.to_thread(order_of, body, self._shared)

    def session(self, order: Order, body: Body) -> AbstractAsyncContextManager[Session]:
        return session(order, self._subject, body, self._shared)

    async def look_at_services(self) -> None:
        await self._shared.ledger.incarnation()

    async def keep_evidence(self, order: Order, opened: Session) -> Report | None:
        return await keep_evidence(order, opened, self._subject, self._shared)

    async def free_children(self) -> None:
        await free_children(self._requests, self._subject.uid)

    async def drop_database(self, journal: str) -> None:
        await drop_database(self._shared, self._subject, journal)


def order_of(body: Body, shared: Shared) -> Order:
    """The experiment that an object describes. Raises ProblemsError with everything that is wrong with it."""
    document = from_fields({name: body[name] for name in ("apiVersion", "kind", "metadata", "spec") if name in body})
    experiment = experiment_of(document, shared.catalog, Where.CLUSTER)
    if shared.settings.control_url is None and any(cell.coordinates.kill.method.parks for cell in experiment.cells):
        message = "Forbidden: delete-pod, evict and freeze need the app that workers park at"
        remedy = "give the operator KILLPOINT_CONTROL_URL, or use another method"
        raise ProblemsError([Problem(path="spec.matrix.kill", message=message, suggestion=remedy)])
    return Order(document=document, experiment=experiment)


@asynccontextmanager
async def session(order: Order, subject: Subject, body: Body, shared: Shared) -> AsyncIterator[Session]:
    """Take over the experiment's journal, and whatever of it there is. Raises JournalLostError and what adapters raise.

    Its database and its pods are made or found; pods of trials that a killed operator had judged are freed.
    """
    journal_id = journal_of(body)
    dsn = await shared.journal()
    opened = await open_run(dsn, journal_id, experiment=subject.name, digest=order.experiment.digest)
    if recorded_journal(body) is not None and not opened.resumed:
        raise JournalLostError(
            f"the status names journal {journal_id}, which held the run; now it is empty."
            " Make the object anew to run it from its beginning."
        )
    async with PostgresJournal(dsn, journal_id) as journal:
        if not shared.holds():
            raise SubstrateUnavailableError("another operator may hold the lease by now, and this journal")
        await journal.take_over()
        substrate = await _substrate(order, subject, journal_id, shared)
        world = World(
            journal=journal,
            substrate=substrate,
            ledger=shared.ledger,
            now_ms=now_ms,
            new_nonce=lambda: secrets.token_hex(8),
            mint_token=lambda run, attempt: shared.token(subject.name, run, attempt),
        )
        yield Session(
            engine=Engine(order.experiment, journal_id, world),
            journal=journal,
            substrate=substrate,
            provenance=await _provenance(order, subject, shared),
        )


async def _substrate(order: Order, subject: Subject, journal_id: str, shared: Shared) -> KubernetesSubstrate:
    settings = shared.settings
    databases = await shared.databases()
    tenant = Tenant.of(subject, journal=journal_id, installation=shared.installation)
    database = await databases.ensure_experiment(journal_id, password=shared.password(journal_id), note=tenant.note())
    place = settings.worker_database_host
    return KubernetesSubstrate(
        SubstrateSettings(
            scope=subject.scope(journal_id),
            workers=_templates(order, shared),
            services=Services(
                payments_url=settings.payments_url,
                control_url=settings.control_url,
                database_url=database.dsn if place is None else dsns.with_place(database.dsn, place),
            ),
            limits=order.experiment.limits,
            attempts_max=max(map(attempts_of, order.experiment.cells)),
            mint_token=lambda run, attempt: shared.token(subject.name, run, attempt),
        ),
        cluster=shared.requests(subject.namespace),
        databases=databases,
        database=database.name,
        parkings=await shared.parkings(),
        now_ms=now_ms,
    )


def _templates(order: Order, shared: Shared) -> Mapping[str, WorkerTemplate]:
    """How the pods of each setup are made: those of the catalog, and the experiment's own workers."""
    own = {worker.setup: template_of(worker, shared.settings.pull_policy) for worker in order.document.spec.workers}
    return {setup.name: shared.template(setup) for setup in shared.catalog} | own


def template_of(worker: Worker, pull_policy: str) -> WorkerTemplate:
    """The pods of a worker that the experiment brings."""
    requests, limits = completed(worker.resources.requests, worker.resources.limits)
    return WorkerTemplate(
        image=worker.image,
        command=worker.command,
        pull_policy=pull_policy,
        requests=requests,
        limits=limits,
        env=tuple((variable.name, variable.value) for variable in worker.env),
        node_selector=worker.node_selector,
        tolerations=tuple(_toleration(given.model_dump()) for given in worker.tolerations),
        pull_secrets=tuple(secret.name for secret in worker.image_pull_secrets),
        labels=worker.labels,
    )


def _toleration(fields: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in fields.items() if value}


async def _provenance(order: Order, subject: Subject, shared: Shared) -> Provenance:
    setups = sorted({cell.coordinates.setup for cell in order.experiment.cells})
    templates = _templates(order, shared)
    return Provenance(
        killpoint=__version__,
        substrate="kubernetes",
        seed=order.experiment.seed,
        started_ms=0,
        ended_ms=None,
        versions=tuple((setup, (("image", templates[setup].image),)) for setup in setups),
        platform=(
            ("Kubernetes", await shared.cluster_version()),
            ("Postgres", (await shared.server()).version),
            ("Python", platform.python_version()),
        ),
        command=command_for(subject),
        replay=replay_for(subject),
        own_images=own_images_of(order.document.spec),
    )
