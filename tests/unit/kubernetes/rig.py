"""A substrate with everything around it in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from killpoint.control.parkings import Parked, ParkingsUnavailable
from killpoint.databases.errors import PostgresUnreachable
from killpoint.kubernetes.client import Cluster
from killpoint.kubernetes.substrate import KubernetesSubstrate, SubstrateSettings
from killpoint.model.cells import AttemptId
from killpoint.model.evidence import AttemptEnd
from killpoint.model.limits import Limits
from killpoint.model.observations import Observation
from tests.unit.kubernetes.api import FakeApi, FakeServer, Status, status
from tests.unit.kubernetes.pods import (
    ATTEMPT,
    NOW_MS,
    SCOPE,
    SERVICES,
    TEMPLATE,
    TRIAL,
)

POD = SCOPE.pod(ATTEMPT)
TOKENS = SCOPE.token_secret(TRIAL)
QUOTA = status(403, "Forbidden", 'pods "p" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2')
POLICY = status(403, "Forbidden", 'pods "p" is forbidden: violates PodSecurity "restricted:latest": root')
ENDING = status(403, "Forbidden", "is forbidden: because it is being terminated", cause="NamespaceTerminating")
LIMITS = Limits(
    attempts=8, attempt_seconds=60, startup_seconds=30, settle_seconds=5, inconclusive_retries=1,
    deadline_seconds=3600, cells=500, trials=10_000,
)  # fmt: skip


@dataclass
class FakeDatabases:
    held: dict[str, int] = field(default_factory=dict)
    away: bool = False

    async def sessions(self, database: str, wanted: Sequence[str]) -> Mapping[str, int]:
        assert database == "killpoint_run_1"
        if self.away:
            raise PostgresUnreachable("nobody", remedy="start it")
        return {name: self.held.get(name, 0) for name in wanted}


@dataclass
class FakeParkings:
    kept: dict[tuple[str, str], Parked] = field(default_factory=dict)
    away: bool = False
    asked: list[Sequence[str]] = field(default_factory=list)

    async def parked(self, runs: Sequence[str]) -> Mapping[tuple[str, str], Parked]:
        self.asked.append(runs)
        if self.away:
            raise ParkingsUnavailable("nobody")
        return {key: parked for key, parked in self.kept.items() if key[0] in runs}

    async def release(self, run: str, attempt: str) -> None:
        if self.away:
            raise ParkingsUnavailable("nobody")
        self.kept[run, attempt] = replace(self.kept[run, attempt], released=True)


@dataclass
class Rig:
    """A substrate with everything around it in memory."""

    server: FakeServer = field(default_factory=FakeServer)
    databases: FakeDatabases = field(default_factory=FakeDatabases)
    parkings: FakeParkings = field(default_factory=FakeParkings)
    now_ms: int = NOW_MS

    def substrate(self, *, retain_pods: bool = False) -> KubernetesSubstrate:
        settings = SubstrateSettings(
            scope=SCOPE,
            workers={"langgraph": TEMPLATE},
            services=SERVICES,
            limits=LIMITS,
            attempts_max=2,
            mint_token=lambda run, attempt: f"token-{run}-{attempt}",
            retain_pods=retain_pods,
        )
        return KubernetesSubstrate(
            settings,
            cluster=Cluster(FakeApi(self.server), SCOPE.namespace),
            databases=self.databases,
            database="killpoint_run_1",
            parkings=self.parkings,
            now_ms=lambda: self.now_ms,
        )

    def show(self, state: Mapping[str, object], attempt: AttemptId = ATTEMPT, *, phase: str = "Running") -> None:
        """Play the kubelet."""
        pod = self.server.pods[SCOPE.pod(attempt)]
        pod["spec"]["nodeName"] = "node-1"
        worker = {"name": "worker", "state": dict(state)}
        pod["status"] = {**pod["status"], "phase": phase, "containerStatuses": [worker]}

    def refuse_pods(self, answer: Status | None) -> None:
        self.server.refuse = lambda method, path: answer if (method, path) == ("POST", "pods") else None


async def seen(substrate: KubernetesSubstrate, attempt: AttemptId = ATTEMPT) -> Observation:
    return (await substrate.observe([attempt]))[attempt]


async def ended(substrate: KubernetesSubstrate) -> AttemptEnd:
    end = (await seen(substrate)).end
    assert end is not None
    return end
