"""A substrate in a namespace of its own, and a worker of few words to run on it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from killpoint.control.parkings import Parked
from killpoint.core.contract import Assigned, assignment_of
from killpoint.core.plan import run_of
from killpoint.kubernetes.client import Cluster
from killpoint.kubernetes.manifests import Services, WorkerTemplate
from killpoint.kubernetes.names import Owner, Scope, journal_id
from killpoint.kubernetes.observe import Starting, state_of
from killpoint.kubernetes.substrate import KubernetesSubstrate, SubstrateSettings
from killpoint.model.cells import AttemptId, Coordinates, Kill, Method, TrialId
from killpoint.model.evidence import AttemptEnd, Ordered
from killpoint.model.limits import Limits
from killpoint.model.observations import Observation
from killpoint.ports import Launch
from tests.cluster.images.catalog import TAG
from tests.cluster.kubectl import Kubectl

SECONDS_MAX = 60.0
TRIAL = TrialId(cell="7f31e2c0", number=1)
ATTEMPT = AttemptId(trial=TRIAL, number=1)
LIMITS = Limits(
    attempts=8, attempt_seconds=60, startup_seconds=30, settle_seconds=5, inconclusive_retries=1,
    deadline_seconds=3600, cells=500, trials=10_000,
)  # fmt: skip

WORKER = """
import json, os, signal, sys, time
told = json.loads(os.environ["KILLPOINT_ASSIGNMENT"])
assert os.environ["KILLPOINT_TOKEN"] == "token-of-" + told["attempt"], "another attempt's token"
open(os.environ["KILLPOINT_VOLUME"] + "/state", "w").close()
log = open("/dev/termination-log", "a", buffering=1)
def say(**line):
    print(json.dumps(line, separators=(",", ":")), file=log, flush=True)
say(killpoint=1, attempt=told["attempt"], nonce=told["nonce"])
say(point="charge.after", n=1, t=time.time_ns() // 1000000)
match told["schedule"][0]["do"] if told["schedule"] else None:
    case "die":
        os.kill(os.getpid(), signal.SIGKILL)
        sys.exit(70)
    case "exit":
        os._exit(91)
    case "out-of-memory":
        kept = []
        while True:
            kept.append(bytearray(os.urandom(1)) * 2 ** 24)
    case "park":
        time.sleep(600)
if "fails" in sys.argv:
    print("this went wrong")
    sys.exit(1)
say(outcome="finished", claims=[])
"""
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WORKER
"""One that does not end when it is asked to."""


def worker(source: str = WORKER, *arguments: str) -> WorkerTemplate:
    """A Python program as the worker, in an image that the cluster has."""
    return WorkerTemplate(
        image=f"localhost/killpoint-langgraph:{TAG}",
        command=("python", "-c", source, *arguments),
        requests={"cpu": "10m", "memory": "32Mi"},
        limits={"memory": "128Mi"},
    )


@dataclass
class Waiting:
    """Parkings where every attempt that runs is at its point."""

    released: list[str] = field(default_factory=list)

    async def parked(self, runs: Sequence[str]) -> Mapping[tuple[str, str], Parked]:
        return {
            (run, str(ATTEMPT)): Parked(
                run=run, attempt=str(ATTEMPT), point="charge.after", parked_ms=1, released=str(ATTEMPT) in self.released
            )
            for run in runs
        }

    async def release(self, run: str, attempt: str) -> None:
        assert run
        self.released.append(attempt)


@dataclass
class Quiet:
    """A database server on which nobody holds a session."""

    async def sessions(self, database: str, names: Sequence[str], /) -> Mapping[str, int]:
        assert database
        return dict.fromkeys(names, 0)


@dataclass
class Rig:
    """A substrate, what it works in, and waiting for what it sees."""

    kubectl: Kubectl
    cluster: Cluster
    scope: Scope
    template: WorkerTemplate = field(default_factory=worker)
    waiting: Waiting = field(default_factory=Waiting)
    retain_pods: bool = False

    def substrate(self, template: WorkerTemplate | None = None) -> KubernetesSubstrate:
        """A new one each time, as after an operator's restart."""
        settings = SubstrateSettings(
            scope=self.scope,
            workers={"stub": template or self.template},
            services=Services(
                payments_url="http://payments.invalid", control_url="http://control.invalid",
                database_url="postgresql://user:word-of-this-user@db.invalid/d",
            ),
            limits=LIMITS,
            attempts_max=2,
            mint_token=lambda _, attempt: f"token-of-{attempt}",
            retain_pods=self.retain_pods,
        )  # fmt: skip
        return KubernetesSubstrate(
            settings,
            cluster=self.cluster,
            databases=Quiet(),
            database="d",
            parkings=self.waiting,
            now_ms=lambda: time.time_ns() // 1_000_000,
        )

    def launch(self, *, method: Method | None = None, attempt: AttemptId = ATTEMPT) -> Launch:
        """An attempt that is scheduled to end at charge.after, or to finish."""
        at = () if method is None else ("charge.after",)
        run = run_of(self.scope.journal, attempt.trial)
        assigned = Assigned(
            experiment="stub",
            workflow="charge",
            attempt=attempt,
            run=run,
            nonce="c2f5b1a09e7d4463",
            action="start",
            scheduled="charge.after" if method else None,
            method=method or Method.SIGKILL,
            coordinates=Coordinates(setup="stub", kill=Kill(at=at, method=method or Method.SIGKILL, name="k")),
            ordered=(Ordered(action="charge", order="order-1", amount=4900, currency="EUR"),),
        )
        return Launch(
            attempt=attempt, run=run, setup="stub", store="postgres", assignment=assignment_of(assigned),
            token=f"token-of-{attempt}",
        )  # fmt: skip

    async def until_running(self, substrate: KubernetesSubstrate, attempt: AttemptId = ATTEMPT) -> Observation:
        async with asyncio.timeout(SECONDS_MAX):
            while True:
                seen = (await substrate.observe([attempt]))[attempt]
                assert seen.end is None, seen.end
                if seen.lines:
                    return seen
                await asyncio.sleep(0.1)

    async def end(self, substrate: KubernetesSubstrate, attempt: AttemptId = ATTEMPT) -> AttemptEnd:
        async with asyncio.timeout(SECONDS_MAX):
            while True:
                seen = (await substrate.observe([attempt]))[attempt]
                if seen.end is not None:
                    return seen.end
                await asyncio.sleep(0.1)

    async def until_said(self, words: str, attempt: AttemptId = ATTEMPT) -> None:
        """Wait until the pod says what it waits for, or that it does so no more."""
        async with asyncio.timeout(SECONDS_MAX):
            while True:
                pod = await self.cluster.pod(self.scope.pod(attempt))
                assert pod is not None
                state = state_of(pod, attempt, now_ms=0)
                if not isinstance(state, Starting) or words in state.why:
                    return
                await asyncio.sleep(0.1)

    def pods(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.kubectl.get("pods")["items"]
        return found

    async def gone(self) -> None:
        """Wait until no pod is left."""
        async with asyncio.timeout(SECONDS_MAX):
            while await asyncio.to_thread(self.pods):  # noqa: ASYNC110 - nobody here knows when
                await asyncio.sleep(0.2)


def other(template: WorkerTemplate, **changes: Any) -> WorkerTemplate:  # noqa: ANN401 - any field of a template
    return replace(template, **changes)


def scope_of(kubectl: Kubectl) -> Scope:
    """A ConfigMap as the owner of it all: what has no owner is collected at once."""
    kubectl("create", "configmap", "experiment")
    uid = kubectl.get("configmap", "experiment")["metadata"]["uid"]
    owner = Owner(api_version="v1", kind="ConfigMap", name="experiment", uid=uid)
    return Scope(namespace=kubectl.namespace, owner=owner, journal=journal_id(uid))
