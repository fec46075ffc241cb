"""Submit: make an attempt's objects, and hold it with the reason where the API server refuses them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

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
from killpoint.kubernetes.observe import is_ours
from killpoint.kubernetes.refusals import Refusal, refusal_of
from killpoint.model.cells import AttemptId, Role, TrialId
from killpoint.model.evidence import AttemptEnd, EndReason
from killpoint.model.limits import Limits
from killpoint.model.observations import Observation
from killpoint.ports import Launch

RETRY_MILLISECONDS = 2000
"""How often a pod is asked for again that a quota or the like did not let in."""
SLACK_SECONDS = 120
"""What the kubelet's own deadline has beyond the harness's."""


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
class Held:
    """An attempt whose pod was refused, and is not there."""

    launch: Launch
    refusal: Refusal
    tried_ms: int

    @property
    def observation(self) -> Observation:
        """Still starting, where the refusal may pass; else ended with the reason."""
        attempt = self.launch.attempt
        if self.refusal.passing:
            return Observation(attempt=attempt, waits=self.refusal.words, made=False)
        end = AttemptEnd(reason=EndReason.NOT_STARTED, at_ms=self.tried_ms, fault=self.refusal.words)
        return Observation(attempt=attempt, end=end, made=False)

    @property
    def given_up(self) -> Held:
        return replace(self, refusal=replace(self.refusal, passing=False))


class Submissions:
    """Pods and secrets that are asked for. A second submission of the same attempt is a success that starts nothing."""

    def __init__(self, settings: SubstrateSettings, *, cluster: Cluster, now_ms: Callable[[], int]) -> None:
        self._settings = settings
        self._cluster = cluster
        self._now_ms = now_ms
        self._held: dict[AttemptId, Held] = {}
        self._made: set[str] = set()
        """Secrets that are there."""

    def held(self, attempt: AttemptId) -> Held | None:
        """What is known of an attempt that was refused; None where it was not."""
        return self._held.get(attempt)

    def due(self, attempts: Iterable[AttemptId]) -> list[Launch]:
        """Those of these attempts whose refusal may have passed by now."""
        due_ms = self._now_ms() - RETRY_MILLISECONDS
        held = [self._held[attempt] for attempt in attempts if attempt in self._held]
        return [one.launch for one in held if one.refusal.passing and one.tried_ms <= due_ms]

    def give_up(self, attempt: AttemptId) -> None:
        """Ask for the pod of a held attempt no more."""
        if attempt in self._held:
            self._held[attempt] = self._held[attempt].given_up

    def look_again(self) -> None:
        """Make secrets again before the next pod: one did not start, and somebody may have deleted what it needs."""
        self._made.clear()

    def forget(self, attempts: Iterable[AttemptId]) -> None:
        """Their trials are over."""
        for attempt in attempts:
            self._held.pop(attempt, None)
            self._made.discard(self._settings.scope.token_secret(attempt.trial))

    async def submit(self, launch: Launch) -> None:
        """Make what the attempt needs and then its pod, or hold it with the reason why not."""
        refusal = await self._refused(launch)
        if refusal is None:
            self._held.pop(launch.attempt, None)
        else:
            self._held[launch.attempt] = Held(launch=launch, refusal=refusal, tried_ms=self._now_ms())

    async def _refused(self, launch: Launch) -> Refusal | None:
        settings = self._settings
        template = settings.workers.get(launch.setup)
        if template is None:
            words = f"no image is known for setup {launch.setup}. Name one: the operator's images, or spec.workers."
            return Refusal(words=words, passing=False)
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
        tokens = {
            suffix_of(attempt): settings.mint_token(launch.run, str(attempt)) for attempt in self._possible(trial)
        }
        yield token_secret(settings.scope, trial=trial, tokens={**tokens, suffix_of(launch.attempt): launch.token})

    def _possible(self, trial: TrialId) -> Iterable[AttemptId]:
        """Every attempt that a trial can come to: the secret of their tokens is made once."""
        for number in range(1, self._settings.attempts_max + 1):
            yield from (AttemptId(trial=trial, number=number, role=role) for role in Role)

    async def _make_secret(self, secret: Manifest) -> Refusal | None:
        """One that is there already is ours: nobody else has names from this UID, and none can be read to see."""
        name = secret["metadata"]["name"]
        if name in self._made:
            return None
        try:
            await self._cluster.create(secret)
        except ApiRefused as refused:
            return refusal_of(refused.answer, kind="secret", name=name, namespace=self._cluster.namespace)
        self._made.add(name)
        return None

    async def _make_pod(self, pod: Manifest, launch: Launch) -> Refusal | None:
        name = pod["metadata"]["name"]
        try:
            if await self._cluster.create(pod):
                return None
        except ApiRefused as refused:
            return refusal_of(refused.answer, kind="pod", name=name, namespace=self._cluster.namespace)
        there = await self._cluster.pod(name)
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
