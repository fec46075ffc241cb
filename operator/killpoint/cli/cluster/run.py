"""Run an experiment in a cluster: apply it, follow it, and abort it when the command is interrupted."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from killpoint.api.changes import change_problems
from killpoint.api.load import from_fields
from killpoint.api.problems import ProblemsError
from killpoint.api.v1alpha1.spec import CrashExperiment
from killpoint.cli.cluster.evidence import archive_of
from killpoint.cli.cluster.experiments import Document, Experiments, is_leaving, is_over, uid_of
from killpoint.cli.cluster.follow import POLL_SECONDS, Time, follow, gone
from killpoint.cli.exits import Exit, Stop
from killpoint.cli.progress import Show
from killpoint.journal.archive import Archive
from killpoint.ports import SubstrateUnavailableError

GONE_SECONDS_MAX = 120.0
ABORT_SECONDS_MAX = 60.0
"""How long an interrupted command waits for the end of what it has aborted."""
NOT_INSTALLED = (
    "this cluster knows no CrashExperiment: killpoint is not installed in it.\n"
    "Install it, operator included: helm install killpoint charts/killpoint --namespace killpoint --create-namespace"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRun:
    """What is to be run, and how."""

    document: CrashExperiment
    fresh: bool = False
    """Delete what is there under its name, with all that it showed, and start anew."""
    detach: bool = False
    """When the command is interrupted, leave the experiment running."""

    @property
    def name(self) -> str:
        return self.document.metadata.name


async def run_in_cluster(
    request: ClusterRun, experiments: Experiments, show: Show, passing: Time | None = None
) -> Archive:
    """Run an experiment, or go on waiting for the same one. Its evidence, at its end. Raises Stop."""
    passing = passing or Time()
    await _ready(request, experiments, show, passing)
    # Not to be torn in the midst: what was applied is to be known, so that it can be aborted.
    applying = asyncio.ensure_future(experiments.apply(_manifest(request.document, experiments.namespace)))
    try:
        applied = await asyncio.shield(applying)
        show.prepare(f"experiment {experiments.namespace}/{request.name}: waiting for its end")
        over = await follow(experiments, applied, show, passing)
    except asyncio.CancelledError:
        raise await _interrupted(request, experiments, await applying, show) from None
    return await archive_of(experiments, over)


async def _ready(request: ClusterRun, experiments: Experiments, show: Show, passing: Time) -> None:
    """See to it that the experiment can be applied. Raises Stop where it cannot."""
    if not await experiments.is_known():
        raise Stop(Exit.NOT_EXECUTED, NOT_INSTALLED)
    there = await experiments.get(request.name)
    if there is None:
        return
    if request.fresh and not is_leaving(there):
        await experiments.delete(request.name, uid_of(there))
    if request.fresh or is_leaving(there):
        show.prepare(f"experiment {experiments.namespace}/{request.name} is being deleted")
        if not await gone(experiments, there, passing, seconds_max=GONE_SECONDS_MAX):
            raise _stays(request, experiments)
        return
    aborted = _is_the_same(request, experiments, there)
    called = f"experiment {experiments.namespace}/{request.name}"
    if aborted and not is_over(there):
        shown = f"`{experiments.command('status', request.name)}` shows whether it has ended"
        raise Stop(Exit.INVALID, f"{called} was aborted.\n{shown}; --fresh deletes it and runs it anew.")
    if is_over(there):
        told = "was aborted, and is over" if aborted else "has been run already"
        raise Stop(
            Exit.INVALID,
            f"{called} {told}.\n`{experiments.command('report', request.name)}` shows its results;"
            " --fresh deletes them and runs it anew.",
        )


def _is_the_same(request: ClusterRun, experiments: Experiments, there: Document) -> bool:
    """Whether it was aborted, which no file says. Raises Stop where another experiment has the name."""
    called = f"experiment {experiments.namespace}/{request.name}"
    try:
        stored, wanted = from_fields(there).spec, request.document.spec
        aborted = stored.abort and not wanted.abort
        changes = tuple(change_problems(stored.model_copy(update={"abort": False}) if aborted else stored, wanted))
    except ProblemsError as error:
        raise Stop(Exit.INVALID, f"{called} is there already, of another version: {error}") from error
    if changes:
        raise Stop(
            Exit.INVALID,
            f"{called} is there already, and is another one:\n{ProblemsError(changes)}\n"
            "Give this one another name, or delete that one and what it showed with --fresh.",
        )
    return aborted


def _manifest(document: CrashExperiment, namespace: str) -> Document:
    """The experiment as it was written: what is left out is for the API server to fill in."""
    fields = document.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return {**fields, "metadata": {**fields["metadata"], "namespace": namespace}}


def _stays(request: ClusterRun, experiments: Experiments) -> Stop:
    return Stop(
        Exit.NOT_EXECUTED,
        f"experiment {experiments.namespace}/{request.name} is deleted, and is still there after"
        f" {GONE_SECONDS_MAX:.0f} s: an operator has to let it go. See whether one runs.",
    )


async def _interrupted(request: ClusterRun, experiments: Experiments, applied: Document, show: Show) -> Stop:
    """What an interrupted command does last: abort the experiment, unless it is to go on, and wait for its end."""
    name, called = request.name, f"experiment {experiments.namespace}/{request.name}"
    by_hand = f"kubectl --namespace={experiments.namespace} patch crashexperiment {name} --type=merge"
    by_hand += """ --patch='{"spec":{"abort":true}}'"""
    if request.detach:
        message = f"interrupted: {called} goes on. The same command waits for it again; to abort it: {by_hand}"
        return Stop(Exit.INTERRUPTED, message)
    show.prepare(f"{called} is being aborted; once more, and this command does not wait for it")
    try:
        await experiments.abort(name, uid_of(applied))
        ended = await _ended(experiments, applied)
    except (SubstrateUnavailableError, Stop) as error:
        return Stop(Exit.INTERRUPTED, f"interrupted, and {called} was not aborted: {error}\nTo abort it: {by_hand}")
    if ended:
        return Stop(
            Exit.INTERRUPTED,
            f"interrupted: {called} is aborted, and nothing of it is left running.\n--fresh runs it anew.",
        )
    message = f"interrupted: {called} is told to abort, and no operator has done so within {ABORT_SECONDS_MAX:.0f} s."
    return Stop(Exit.INTERRUPTED, message)


async def _ended(experiments: Experiments, applied: Document) -> bool:
    """Whether it ends in time. In real time: the command has been told to end."""
    deadline = asyncio.get_running_loop().time() + ABORT_SECONDS_MAX
    while asyncio.get_running_loop().time() < deadline:
        body = await experiments.get(str(applied["metadata"]["name"]))
        if body is None or uid_of(body) != uid_of(applied) or is_over(body):
            return True
        await asyncio.sleep(POLL_SECONDS)
    return False
