"""The substrate of a cluster: attempts are pods.

What is known of an attempt is what its pod says, so another operator goes on where one was killed. Only refusals are
kept here, of pods that were never made: to another operator these attempts have vanished.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar, assert_never

from killpoint.control.parkings import ParkingsUnavailable
from killpoint.core.plan import run_of
from killpoint.databases.errors import DatabaseError
from killpoint.kubernetes import names
from killpoint.kubernetes.client import ApiRefused, Cluster
from killpoint.kubernetes.manifests import (
    Manifest,
    Services,
    WorkerTemplate,
    database_secret,
    freezes,
    token_secret,
    worker_pod,
)
from killpoint.kubernetes.names import Scope, digest_of, suffix_of
from killpoint.kubernetes.observe import (
    Ended,
    Pod,
    Running,
    Starting,
    annotation,
    asked_ms,
    is_ours,
    is_parking,
    observation_of,
    state_of,
)
from killpoint.kubernetes.parkings import Parkings
from killpoint.kubernetes.refusals import Refusal, refusal_of
from killpoint.model.cells import AttemptId, Method, Role, TrialId
from killpoint.model.evidence import AttemptEnd, EndReason
from killpoint.model.limits import Limits
from killpoint.model.observations import Observation
from killpoint.ports import Launch, SubstrateUnavailableError

AT_ONCE = 8
"""Requests to the API server that one experiment has under way."""
RETRY_MILLISECONDS = 2000
"""How often a pod is asked for again that a quota or the like did not let in."""
SLACK_SECONDS = 120
"""What the kubelet's own deadline has beyond the harness's."""
OUTPUT_LINES = 3
_T = TypeVar("_T")


class Sessions(Protocol):
    """Who can say what sessions a database server holds. ``killpoint.databases.administration`` can."""

    async def sessions(self, database: str, names: Sequence[str], /) -> Mapping[str, int]:
        """Application name → number of its sessions. Raises DatabaseError when nobody answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubstrateSettings:
    """What the pods of an experiment are made from."""

    scope: Scope
    workers: Mapping[str, WorkerTemplate]
    """By the setup's name."""
    services: Services
    limits: Limits
    attempts_max: int
    """How many executors a trial can have: one more than its cell has kills."""
    mint_token: Callable[[str, str], str] = field(repr=False)
    """(run, attempt) → its bearer token. The same each time it is asked for."""
    retain_pods: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """An attempt whose pod was refused."""

    launch: Launch
    refusal: Refusal
    tried_ms: int


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
        self._held: dict[AttemptId, _Held] = {}
        self._made: set[str] = set()
        """Secrets that are there."""
        self._room = asyncio.Semaphore(AT_ONCE)

    # --- starting ----------------------------------------------------------------------------------------------

    async def launch(self, launch: Launch) -> None:
        """Start an attempt; see ``ports.Substrate``."""
        if launch.attempt not in self._held:
            await self._submit(launch)

    async def _submit(self, launch: Launch) -> None:
        """Make what the attempt needs and then its pod, or hold it with the reason why not."""
        refusal = await self._refused(launch)
        if refusal is None:
            self._held.pop(launch.attempt, None)
        else:
            self._held[launch.attempt] = _Held(launch=launch, refusal=refusal, tried_ms=self._now_ms())

    async def _refused(self, launch: Launch) -> Refusal | None:
        settings = self._settings
        template = settings.workers.get(launch.setup)
        if template is None:
            return Refusal(
                words=f"no image is known for setup {launch.setup}. Name one in the operator's images, or in"
                " spec.workers[].image.",
                passing=False,
            )
        for secret in self._secrets(launch):
            if (refusal := await self._make_secret(secret)) is not None:
                return refusal
        pod = worker_pod(
            settings.scope,
            launch,
            template=template,
            services=settings.services,
            active_seconds=self._active_seconds(launch),
        )
        return await self._make_pod(pod, launch)

    def _secrets(self, launch: Launch) -> Iterable[Manifest]:
        settings = self._settings
        trial = launch.attempt.trial
        yield database_secret(settings.scope, database_url=settings.services.database_url)
        attempts = [
            AttemptId(trial=trial, number=number + 1, role=role)
            for number in range(settings.attempts_max)
            for role in Role
        ]
        tokens = {suffix_of(attempt): settings.mint_token(launch.run, str(attempt)) for attempt in attempts}
        yield token_secret(settings.scope, trial=trial, tokens={**tokens, suffix_of(launch.attempt): launch.token})

    async def _make_secret(self, secret: Manifest) -> Refusal | None:
        """One that is there already is ours: nobody else has names from this UID, and none can be read to see."""
        name = secret["metadata"]["name"]
        if name in self._made:
            return None
        try:
            await self._bounded(self._cluster.create(secret))
        except ApiRefused as refused:
            return refusal_of(refused.answer, kind="secret", name=name, namespace=self._cluster.namespace)
        self._made.add(name)
        return None

    async def _make_pod(self, pod: Manifest, launch: Launch) -> Refusal | None:
        name = pod["metadata"]["name"]
        try:
            if await self._bounded(self._cluster.create(pod)):
                return None
        except ApiRefused as refused:
            return refusal_of(refused.answer, kind="pod", name=name, namespace=self._cluster.namespace)
        there = await self._bounded(self._cluster.pod(name))
        digest = digest_of(launch.assignment)
        if there is not None and is_ours(there, self._settings.scope, launch.attempt, digest=digest):
            return None
        words = f"pod {self._cluster.namespace}/{name} is there already and is not this attempt's. Delete it."
        return Refusal(words=words, passing=there is None)

    def _active_seconds(self, launch: Launch) -> int:
        """When the kubelet ends the pod if no harness does. A frozen attempt outlives those that follow it."""
        limits = self._settings.limits
        one = limits.startup_seconds + limits.attempt_seconds
        following = self._settings.attempts_max * (one + limits.settle_seconds) if freezes(launch) else 0
        return one + following + SLACK_SECONDS

    # --- seeing ------------------------------------------------------------------------------------------------

    async def observe(self, attempts: Sequence[AttemptId]) -> Mapping[AttemptId, Observation]:
        """What is known of these attempts; see ``ports.Substrate``. Pods that were held are asked for again."""
        await self._try_again(attempts)
        held = [attempt for attempt in attempts if attempt in self._held]
        pods = await self._pods([attempt for attempt in attempts if attempt not in self._held])
        now_ms = self._now_ms()
        observed = {attempt: observation_of(pod, attempt, now_ms=now_ms) for attempt, pod in pods.items()}
        observed |= await self._with_output(pods, observed)
        observed |= await self._with_parkings(pods, observed)
        return observed | {attempt: self._of_held(attempt) for attempt in held}

    async def _try_again(self, attempts: Sequence[AttemptId]) -> None:
        due_ms = self._now_ms() - RETRY_MILLISECONDS
        held = [self._held[attempt] for attempt in attempts if attempt in self._held]
        await _all(self._submit(one.launch) for one in held if one.refusal.passing and one.tried_ms <= due_ms)

    def _of_held(self, attempt: AttemptId) -> Observation:
        held = self._held[attempt]
        if held.refusal.passing:
            return Observation(attempt=attempt)
        end = AttemptEnd(reason=EndReason.NOT_STARTED, at_ms=held.tried_ms, fault=held.refusal.words)
        return Observation(attempt=attempt, end=end)

    async def _pods(self, attempts: Sequence[AttemptId]) -> Mapping[AttemptId, Pod]:
        """The pods of these attempts. One that the cache does not show is asked for itself before it counts as gone."""
        if not attempts:
            return {}
        scope = self._settings.scope
        listed = await self._bounded(self._cluster.pods(scope.selector))
        known = {str(pod["metadata"].get("labels", {}).get(names.ATTEMPT)): pod for pod in listed}
        found = {attempt: known[str(attempt)] for attempt in attempts if str(attempt) in known}
        missing = [attempt for attempt in attempts if attempt not in found]
        asked = await _all(self._bounded(self._cluster.pod(scope.pod(attempt))) for attempt in missing)
        found |= {attempt: pod for attempt, pod in zip(missing, asked, strict=True) if pod is not None}
        return {attempt: pod for attempt, pod in found.items() if is_ours(pod, scope, attempt)}

    async def _with_output(
        self, pods: Mapping[AttemptId, Pod], observed: Mapping[AttemptId, Observation]
    ) -> Mapping[AttemptId, Observation]:
        """The observations of workers that ended without a word, with the last lines of what they printed."""
        silent = {
            attempt: seen.end
            for attempt, seen in observed.items()
            if seen.end is not None and seen.end.reason is EndReason.EXITED and seen.end.fault is not None
        }
        said = await _all(self._bounded(self._last_lines(pods[attempt])) for attempt in silent)
        return {
            attempt: replace(observed[attempt], end=replace(end, fault=f"{end.fault}; its output ends with\n{lines}"))
            for (attempt, end), lines in zip(silent.items(), said, strict=True)
            if lines
        }

    async def _last_lines(self, pod: Pod) -> str:
        said = await self._cluster.last_lines(
            pod["metadata"]["name"], container=names.CONTAINER, count=OUTPUT_LINES, bytes_max=2048
        )
        return "\n".join(f"    {line.rstrip()}" for line in said.splitlines() if line.strip())

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
        held = self._held.get(attempt)
        if held is not None:
            self._held[attempt] = replace(held, refusal=replace(held.refusal, passing=False))
            return
        pod = await self._own_pod(attempt)
        if pod is None:
            return
        match state_of(pod, attempt, now_ms=self._now_ms()):
            case Ended():
                return
            case Starting(why=why):
                marks = {names.KILLED_BY: method.value, names.NOT_STARTED: why}
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
        await _all(self._bounded(self._free(attempt)) for attempt in attempts)
        for trial in {attempt.trial for attempt in attempts}:
            name = self._settings.scope.token_secret(trial)
            await self._cluster.delete_secret(name)
            self._made.discard(name)
        for attempt in attempts:
            self._held.pop(attempt, None)

    async def sweep(self, keep: Collection[AttemptId]) -> int:
        """Free every pod of the experiment but those of ``keep``; how many there were.

        For what a killed operator had judged and not freed, and for all of it when the experiment is deleted.
        """
        kept = {str(attempt) for attempt in keep}
        pods = await self._cluster.pods(self._settings.scope.selector)
        left = [pod for pod in pods if pod["metadata"]["labels"].get(names.ATTEMPT) not in kept]
        await _all(self._bounded(self._free_pod(pod, retain=self._settings.retain_pods and bool(keep))) for pod in left)
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

    async def _bounded(self, request: Awaitable[_T]) -> _T:
        async with self._room:
            return await request


async def _all(requests: Iterable[Awaitable[_T]]) -> Sequence[_T]:
    """Every one is waited for before a fault of any is raised: nothing goes on behind the next pass."""
    results = await asyncio.gather(*requests, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]
