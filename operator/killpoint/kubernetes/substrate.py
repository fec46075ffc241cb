"""The substrate of a cluster: attempts are pods.

What is known of an attempt is what its pod says, so another operator goes on where one was killed. Only refusals are
kept here, of pods that were never made: another operator asks for these anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar, assert_never

from killpoint.control.parkings import ParkingsUnavailable
from killpoint.core.contract import without_secrets
from killpoint.core.plan import run_of
from killpoint.databases import dsn as dsns
from killpoint.databases.errors import DatabaseError
from killpoint.kubernetes import names
from killpoint.kubernetes.client import ApiRefused, Cluster
from killpoint.kubernetes.manifests import Manifest
from killpoint.kubernetes.observe import (
    Ended,
    Pod,
    Running,
    Starting,
    annotation,
    asked_ms,
    belongs,
    is_ours,
    is_parking,
    observation_of,
    state_of,
    with_message,
)
from killpoint.kubernetes.parkings import Parkings
from killpoint.kubernetes.submit import Submissions, SubstrateSettings
from killpoint.model.cells import AttemptId, Method, TrialId
from killpoint.model.evidence import EndReason
from killpoint.model.observations import Observation
from killpoint.ports import Launch, SubstrateUnavailableError

__all__ = ("KubernetesSubstrate", "Sessions", "SubstrateSettings")

OUTPUT_LINES = 3
OUTPUT_BYTES_MAX = 2048
_T = TypeVar("_T")

_log = logging.getLogger(__name__)


class Sessions(Protocol):
    """Who can say what sessions a database server holds. ``killpoint.databases.administration`` can."""

    async def sessions(self, database: str, names: Sequence[str], /) -> Mapping[str, int]:
        """Application name → number of its sessions. Raises DatabaseError when nobody answers."""


class KubernetesSubstrate:
    """Implements ``ports.Substrate``."""

    def __init__(
        self,
        settings: SubstrateSettings,
        *,
        cluster: Cluster,
        databases: Sessions,
        database: str,
        parkings: Parkings,
        now_ms: Callable[[], int],
    ) -> None:
        """``databases`` and ``database``: the server, and the experiment's database there."""
        self._settings = settings
        self._cluster = cluster
        self._databases = databases
        self._database = database
        self._parkings = parkings
        self._now_ms = now_ms
        self._submissions = Submissions(settings, cluster=cluster, now_ms=now_ms)

    # --- starting ----------------------------------------------------------------------------------------------

    async def launch(self, launch: Launch) -> bool:
        """Start an attempt; see ``ports.Substrate``."""
        if self._submissions.held(launch.attempt) is None:
            await self._submissions.submit(launch)
        return self._submissions.held(launch.attempt) is None

    # --- seeing ------------------------------------------------------------------------------------------------

    async def observe(self, attempts: Sequence[AttemptId]) -> Mapping[AttemptId, Observation]:
        """What is known of these attempts; see ``ports.Substrate``. Pods that were held are asked for again."""
        await _all(self._submissions.submit(launch) for launch in self._submissions.due(attempts))
        refused = {attempt: self._submissions.held(attempt) for attempt in attempts}
        held = {attempt: one.observation for attempt, one in refused.items() if one is not None}
        pods = await self._pods([attempt for attempt in attempts if attempt not in held])
        now_ms = self._now_ms()
        observed = {attempt: observation_of(pod, attempt, now_ms=now_ms) for attempt, pod in pods.items()}
        observed |= await self._with_output(pods, observed)
        observed |= await self._with_parkings(pods, observed)
        return observed | held

    async def _pods(self, attempts: Sequence[AttemptId]) -> Mapping[AttemptId, Pod]:
        """The pods of these attempts. One that the cache does not show is asked for itself before it counts as gone."""
        if not attempts:
            return {}
        scope = self._settings.scope
        listed = await self._cluster.pods(scope.selector)
        known = {pod["metadata"]["name"]: pod for pod in listed}
        found = {attempt: known[name] for attempt in attempts if (name := scope.pod(attempt)) in known}
        missing = [attempt for attempt in attempts if attempt not in found]
        asked = await _all(self._cluster.pod(scope.pod(attempt)) for attempt in missing)
        found |= {attempt: pod for attempt, pod in zip(missing, asked, strict=True) if pod is not None}
        return {
            attempt: with_message(pod, self._without_password)
            for attempt, pod in found.items()
            if is_ours(pod, scope, attempt)
        }

    async def _with_output(
        self, pods: Mapping[AttemptId, Pod], observed: Mapping[AttemptId, Observation]
    ) -> Mapping[AttemptId, Observation]:
        """The observations of workers that ended without a word, with the last lines of what they printed."""
        silent = {
            attempt: seen.end
            for attempt, seen in observed.items()
            if seen.end is not None and seen.end.reason is EndReason.EXITED and seen.end.fault is not None
        }
        said = await _all(self._last_lines(pods[attempt]) for attempt in silent)
        return {
            attempt: replace(observed[attempt], end=replace(end, fault=f"{end.fault}; its output ends with:\n{lines}"))
            for (attempt, end), lines in zip(silent.items(), said, strict=True)
            if lines
        }

    async def _last_lines(self, pod: Pod) -> str:
        said = await self._cluster.last_lines(
            pod["metadata"]["name"], container=names.CONTAINER, count=OUTPUT_LINES, bytes_max=OUTPUT_BYTES_MAX
        )
        lines = without_secrets(self._without_password(said)).splitlines()
        return "\n".join(f"    {line.rstrip()}" for line in lines if line.strip())

    def _without_password(self, said: str) -> str:
        """A worker's own words without the password that it was given, however it writes it."""
        password = dsns.parse(self._settings.services.database_url).get("password")
        return said.replace(password, "…") if password else said

    async def _with_parkings(
        self, pods: Mapping[AttemptId, Pod], observed: Mapping[AttemptId, Observation]
    ) -> Mapping[AttemptId, Observation]:
        """The observations of living attempts that wait at their point."""
        living = [attempt for attempt, pod in pods.items() if is_parking(pod) and observed[attempt].end is None]
        if not living:
            return {}
        runs = {self._run(attempt.trial) for attempt in living}
        try:
            parked = await self._parkings.parked(sorted(runs))
        except ParkingsUnavailable as error:
            raise SubstrateUnavailableError(str(error)) from error
        found = {attempt: parked.get((self._run(attempt.trial), str(attempt))) for attempt in living}
        return {
            attempt: replace(observed[attempt], parked_at=parking.point)
            for attempt, parking in found.items()
            if parking is not None and not parking.released
        }

    def _run(self, trial: TrialId) -> str:
        return run_of(self._settings.scope.journal, trial)

    async def sessions(self, attempts: Sequence[AttemptId]) -> Mapping[AttemptId, int]:
        """Database sessions of these attempts; see ``ports.Substrate``."""
        by_name = {str(attempt): attempt for attempt in attempts}
        try:
            found = await self._databases.sessions(self._database, list(by_name))
        except DatabaseError:
            # Could not be asked for, which is not zero.
            return {}
        return {by_name[name]: number for name, number in found.items()}

    # --- ending ------------------------------------------------------------------------------------------------

    async def kill(self, attempt: AttemptId, method: Method) -> None:
        """End an attempt from outside; see ``ports.Substrate``.

        The pod is marked first: one that goes without our mark was ended by somebody else. One that has not started
        is marked with the reason, which is gone from its status once it is deleted.
        """
        if self._submissions.held(attempt) is not None:
            self._submissions.give_up(attempt)
            return
        pod = await self._own_pod(attempt)
        if pod is None:
            return
        match state_of(pod, attempt, now_ms=self._now_ms()):
            case Ended():
                return
            case Starting(why=why):
                marks = {names.KILLED_BY: method.value, names.NOT_STARTED: why}
                self._submissions.look_again()
            case Running():
                marks = {names.KILLED_BY: method.value}
            case unknown:
                assert_never(unknown)
        unmarked = any(annotation(pod, name) != value for name, value in marks.items())
        if asked_ms(pod) is None and unmarked:
            await self._cluster.patch_pod(pod["metadata"]["name"], {"metadata": {"annotations": marks}})
        await self._end(pod, method)

    async def _end(self, pod: Pod, method: Method) -> None:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        going = asked_ms(pod) is not None
        match method:
            case Method.EVICT:
                if not going:
                    # Refused by a disruption budget: asked for again in the next pass, until the attempt's deadline.
                    await self._cluster.evict_pod(name)
            case Method.DELETE_POD:
                if not going:
                    await self._cluster.delete_pod(name, uid=uid)
            case _:
                if not going or pod["metadata"].get("deletionGracePeriodSeconds"):
                    await self._cluster.delete_pod(name, uid=uid, grace_seconds=0)

    async def release(self, attempt: AttemptId) -> None:
        """Let a frozen attempt go on; see ``ports.Substrate``."""
        try:
            await self._parkings.release(self._run(attempt.trial), str(attempt))
        except ParkingsUnavailable as error:
            raise SubstrateUnavailableError(str(error)) from error

    # --- freeing -----------------------------------------------------------------------------------------------

    async def clean_up(self, attempts: Sequence[AttemptId]) -> None:
        """Free what finished attempts hold: their pods, unless those are retained, and their trials' tokens."""
        await _all(self._free(attempt) for attempt in attempts)
        for trial in {attempt.trial for attempt in attempts}:
            name = self._settings.scope.token_secret(trial)
            await self._cluster.delete_secret(name)
        self._submissions.forget(attempts)

    async def sweep(self, keep: Collection[AttemptId]) -> int:
        """Free every pod of the experiment but those of ``keep``, and the tokens of other trials. How many pods.

        For trials that were judged, and not freed: the operator was killed in between, or the API server away.
        """
        kept = {str(attempt) for attempt in keep}
        scope = self._settings.scope
        pods = [pod for pod in await self._cluster.pods(scope.selector) if belongs(pod, scope)]
        left = [pod for pod in pods if pod["metadata"]["labels"].get(names.ATTEMPT) not in kept]
        await _all(self._free_pod(pod, retain=self._settings.retain_pods and bool(keep)) for pod in left)
        try:
            await self._cluster.delete_secrets(scope.tokens_but({attempt.trial for attempt in keep}))
        except ApiRefused as refused:
            # They go with the object that owns them.
            _log.warning("tokens of trials that are over were not deleted: %s", refused)
        return len(left)

    async def _free(self, attempt: AttemptId) -> None:
        pod = await self._own_pod(attempt)
        if pod is not None:
            await self._free_pod(pod, retain=self._settings.retain_pods)

    async def _free_pod(self, pod: Pod, *, retain: bool) -> None:
        """Take the finalizer off first: the pod goes at once where somebody had deleted it."""
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        change: Manifest = {"$deleteFromPrimitiveList/finalizers": [names.EVIDENCE]}
        if retain:
            change["labels"] = {names.RETAINED: "true"}
        freed = await self._cluster.patch_pod(name, {"metadata": change}, strategic=True)
        if freed and not retain:
            await self._cluster.delete_pod(name, uid=uid, grace_seconds=0)

    async def _own_pod(self, attempt: AttemptId) -> Pod | None:
        pod = await self._cluster.pod(self._settings.scope.pod(attempt))
        return pod if pod is not None and is_ours(pod, self._settings.scope, attempt) else None


async def _all(requests: Iterable[Awaitable[_T]]) -> Sequence[_T]:
    """Every one is waited for before a fault of any is raised: nothing goes on behind the next pass."""
    results = await asyncio.gather(*requests, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]
