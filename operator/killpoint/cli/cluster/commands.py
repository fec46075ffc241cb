"""What the commands do where a cluster is meant: connect, do it, and let an interrupt end it in order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from rich.console import Console

from killpoint.api.v1alpha1.spec import CrashExperiment
from killpoint.cli.cluster.evidence import archive_of
from killpoint.cli.cluster.experiments import Document, Experiments
from killpoint.cli.cluster.run import NOT_INSTALLED, ClusterRun, run_in_cluster
from killpoint.cli.cluster.target import Target, connected
from killpoint.cli.cluster.text import list_text, one_text
from killpoint.cli.exits import Exit, Stop
from killpoint.cli.interrupts import interruptible
from killpoint.cli.progress import shown
from killpoint.journal.archive import Archive
from killpoint.ports import SubstrateUnavailableError

T = TypeVar("T")


def run(document: CrashExperiment, target: Target, *, fresh: bool, detach: bool) -> Archive:
    """Run an experiment to its end. Raises Stop."""
    request = ClusterRun(document=document, fresh=fresh, detach=detach)
    with shown(Console(stderr=True)) as show:
        return _with(
            target.within(document.metadata.namespace),
            lambda experiments: run_in_cluster(request, experiments, show),
        )


def evidence(name: str, target: Target) -> Archive:
    """All that is known of an experiment that is over. Raises Stop."""

    async def fetched(experiments: Experiments) -> Archive:
        return await archive_of(experiments, await _existing(experiments, name))

    return _with(target, fetched)


def status(name: str | None, target: Target) -> str:
    """Where the experiments of a namespace stand, or one of them, as text. Raises Stop."""

    async def told(experiments: Experiments) -> str:
        if name is not None:
            return one_text(
                await _existing(experiments, name), namespace=experiments.namespace, command=experiments.command
            )
        await _installed(experiments)
        return list_text(await experiments.list(), namespace=experiments.namespace, command=experiments.command)

    return _with(target, told)


async def _existing(experiments: Experiments, name: str) -> Document:
    await _installed(experiments)
    body = await experiments.get(name)
    if body is None:
        message = (
            f"there is no experiment {experiments.namespace}/{name};"
            f" `{experiments.command('status')}` lists those there are"
        )
        raise Stop(Exit.INVALID, message)
    return body


async def _installed(experiments: Experiments) -> None:
    if not await experiments.is_known():
        raise Stop(Exit.NOT_EXECUTED, NOT_INSTALLED)


def _with(target: Target, work: Callable[[Experiments], Awaitable[T]]) -> T:
    async def connected_first() -> T:
        async with connected(target) as experiments:
            try:
                return await work(experiments)
            except SubstrateUnavailableError as error:
                remedy = "Does `kubectl get namespaces` work with the same kubeconfig and context?"
                raise Stop(Exit.NOT_EXECUTED, f"{error}\n{remedy}") from error

    message = f"interrupted: what was applied may still run. `{target.command('status')}` shows it."
    return interruptible(connected_first(), message)
