"""What killpoint adds to trials in a real cluster: wall time beside bare pods, and writes at the API server.

Each round runs the same number of pods twice, at the same parallelism, in the same namespace: bare ones that import the
framework and end, two for each trial, the second after the first has ended; and those of an experiment in which each
trial is killed once, so that it has two attempts. Both are timed in the same way, from the watch of the pods: from the
first that is made until the last has ended. The operator runs on this machine, from the sources of this checkout.

    python -m bench.cluster [--trials 12] [--rounds 3] [--parallelism 4] [--json]

Needs a cluster that is up (`make cluster images`), with nobody else at work in it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from kubernetes import client, config, watch

from killpoint.kubernetes import names
from killpoint.kubernetes.manifests import LIMITS, REQUESTS
from tests.cluster import providers
from tests.cluster.conftest import RESTRICTED
from tests.cluster.kubectl import Kubectl
from tests.cluster.node.commands import ClusterError
from tests.cluster.node.layout import ROOT, Layout
from tests.cluster.operator_process import operator_for
from tests.cluster.pods import pod
from tests.cluster.providers import Node, Provider

AIM_RATIO = 1.10
"""The wall time of trials, as a part of that of bare pods."""
AIM_WRITES = 10.0
SECONDS_MAX = 1800.0
POLL_SECONDS = 2.0
IMPORT = ("python", "-c", "import langgraph.graph, langgraph.checkpoint.postgres")
CHANGES = frozenset({"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"})
OURS = frozenset({"pods", "pods/eviction", "secrets", "crashexperiments", "crashexperiments/status"})
"""What only the operator writes in a namespace of its own: kubelets write pods/status, the scheduler pods/binding."""
_REQUESTS = re.compile(r"^apiserver_request_total\{(?P<labels>.*)\} (?P<count>[0-9.e+]+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Seconds of wall time, and writes, of the same number of trials."""

    bare_seconds: float
    killpoint_seconds: float
    bare_pod_seconds: float
    """A bare pod, until it is known to have ended; the median."""
    killpoint_pod_seconds: float
    bare_gap_seconds: float
    """Between the end of a trial's first pod and the making of its second; the median."""
    killpoint_gap_seconds: float
    writes: dict[str, int]
    """Verb and resource → requests at the API server while the experiment ran."""

    @property
    def ratio(self) -> float:
        return self.killpoint_seconds / self.bare_seconds


@dataclass(kw_only=True)
class Pods:
    """The pods of a namespace that are made from now on, as a watch of them shows them."""

    core: Any
    """The client library's CoreV1Api, in whose objects any field may be absent."""
    namespace: str
    since: str
    """The resource version from which on they are watched."""
    made: dict[str, float] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    trials: dict[str, str] = field(default_factory=dict)
    """Pod → its trial."""
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _stop: bool = False

    def follow(self) -> None:
        watching: Any = watch.Watch()  # type: ignore[no-untyped-call]
        while not self._stop:
            for event in watching.stream(
                self.core.list_namespaced_pod,
                self.namespace,
                resource_version=self.since,
                timeout_seconds=60,
                _request_timeout=90,
            ):
                if self._stop:
                    return
                self.since = event["object"].metadata.resource_version
                self._note(event["object"], new=event["type"] == "ADDED")

    def _note(self, seen: Any, *, new: bool) -> None:  # noqa: ANN401 - a pod of the client library
        name, now = seen.metadata.name, time.monotonic()
        if not new and name not in self.made:
            return  # it was there before, and is going
        with self._changed:
            self.made.setdefault(name, now)
            self.trials[name] = (seen.metadata.labels or {}).get(names.TRIAL, name)
            for container in seen.status.container_statuses or ():
                if container.state.terminated is not None:
                    self.ended.setdefault(name, now)
            self._changed.notify_all()

    def wait_for(self, name: str) -> None:
        deadline = time.monotonic() + SECONDS_MAX
        with self._changed:
            while name not in self.ended:
                if not self._changed.wait(max(0.0, deadline - time.monotonic())):
                    raise SystemExit(f"pod {name} did not end")

    def stop(self) -> None:
        self._stop = True


@contextmanager
def followed(core: client.CoreV1Api, namespace: str) -> Iterator[Pods]:
    there: Any = core.list_namespaced_pod(namespace)
    pods = Pods(core=core, namespace=namespace, since=there.metadata.resource_version)
    thread = threading.Thread(target=pods.follow, daemon=True)
    thread.start()
    try:
        yield pods
    finally:
        pods.stop()


def bare(core: client.CoreV1Api, namespace: str, *, trials: int, parallelism: int) -> Pods:
    """Two bare pods for each trial, one after the other."""
    with followed(core, namespace) as pods, ThreadPoolExecutor(parallelism) as slots:
        mark = secrets.token_hex(3)
        for done in [slots.submit(_bare_trial, core, pods, f"bare-{mark}-{number}") for number in range(trials)]:
            done.result()
        return pods


def _bare_trial(core: client.CoreV1Api, pods: Pods, name: str) -> None:
    for number in (1, 2):
        manifest: Any = pod(f"{name}-{number}", "langgraph", command=IMPORT, labels={names.TRIAL: name})
        manifest["spec"]["containers"][0]["resources"] = {"requests": dict(REQUESTS), "limits": dict(LIMITS)}
        core.create_namespaced_pod(pods.namespace, manifest)
        pods.wait_for(f"{name}-{number}")
    for number in (1, 2):
        core.delete_namespaced_pod(f"{name}-{number}", pods.namespace, grace_period_seconds=0)


def killed(
    core: client.CoreV1Api, kubectl: Kubectl, *, trials: int, parallelism: int
) -> tuple[Pods, Mapping[str, int], frozenset[str]]:
    """An experiment; its pods, what was written meanwhile, and the trials that no kill was planned for."""
    name = f"bench-{secrets.token_hex(3)}"
    with followed(core, kubectl.namespace) as pods:
        before = requests(kubectl)
        kubectl.apply(_experiment(name, trials=trials, parallelism=parallelism))
        status = _completed(kubectl, name)
        writes = requests(kubectl)
        writes.subtract(before)
    if status["result"] != "Pass" or status["kills"]["confirmed"] != trials:
        raise SystemExit(f"the experiment did not pass: {json.dumps(status)[:3000]}")
    controls = {cell["id"] for cell in status["cells"] if cell["control"]}
    unkilled = frozenset(trial for trial in pods.trials.values() if trial.split(".")[0] in controls)
    kubectl("delete", "cexp", name)
    return pods, {what: count for what, count in writes.items() if count}, unkilled


def _completed(kubectl: Kubectl, name: str) -> dict[str, Any]:
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        status: dict[str, Any] = kubectl.get("cexp", name).get("status", {})
        if status.get("phase") == "Complete":
            return status
        time.sleep(POLL_SECONDS)
    raise SystemExit(f"the experiment {name} did not end")


def _experiment(name: str, *, trials: int, parallelism: int) -> dict[str, Any]:
    return {
        "apiVersion": "killpoint.dev/v1alpha1",
        "kind": "CrashExperiment",
        "metadata": {"name": name},
        "spec": {
            "matrix": {"setup": ["langgraph"], "key": ["none"], "kill": [{"at": ["charge.after"]}]},
            "trials": trials,
            "parallelism": parallelism,
            "expect": [{"where": {"kill": ["charge.after"]}, "verdict": ["duplicate"], "effects": {"charge": 2}}],
        },
    }


def requests(kubectl: Kubectl) -> Counter[str]:
    """What the API server has counted: verb and resource → requests that were to change something."""
    counted: Counter[str] = Counter()
    for found in _REQUESTS.finditer(kubectl("get", "--raw", "/metrics")):
        labels = dict(_LABEL.findall(found["labels"]))
        resource = "/".join(filter(None, (labels["resource"], labels["subresource"])))
        if labels["verb"] in CHANGES and resource in OURS:
            counted[f"{labels['verb']} {resource}"] += int(float(found["count"]))
    return counted


def _wall(pods: Pods, without: frozenset[str] = frozenset()) -> float:
    counted = [name for name, trial in pods.trials.items() if trial not in without]
    return max(pods.ended[name] for name in counted) - min(pods.made[name] for name in counted)


def _gaps(pods: Pods, without: frozenset[str] = frozenset()) -> float:
    """How long a trial waits for its second pod."""
    by_trial: dict[str, list[str]] = {}
    for name in sorted(pods.made, key=lambda name: pods.made[name]):
        if pods.trials[name] not in without:
            by_trial.setdefault(pods.trials[name], []).append(name)
    return statistics.median(
        pods.made[second] - pods.ended[first] for first, second in (attempts[:2] for attempts in by_trial.values())
    )


def _lived(pods: Pods, without: frozenset[str] = frozenset()) -> float:
    """How long a pod is there until it is known to have ended: a kubelet looks once a second."""
    return statistics.median(
        ended - pods.made[name] for name, ended in pods.ended.items() if pods.trials[name] not in without
    )


def measure(provider: Provider, *, trials: int, rounds: int, parallelism: int) -> list[Round]:
    """Run everything in a namespace of its own."""
    kubectl = _namespace(provider)
    try:
        kubectl(
            "apply", "--server-side", "--force-conflicts", f"--filename={ROOT}/crds/crashexperiments.killpoint.dev.yaml"
        )
        core = client.CoreV1Api(
            config.new_client_from_config(str(provider.kubeconfig))  # type: ignore[no-untyped-call]
        )
        with operator_for(kubectl) as operator:
            operator.start()
            killed(core, kubectl, trials=1, parallelism=1)  # warm: images, databases, byte code
            bare(core, kubectl.namespace, trials=1, parallelism=1)
            return [_round(core, kubectl, trials=trials, parallelism=parallelism) for _ in range(rounds)]
    finally:
        kubectl("delete", "namespace", kubectl.namespace, "--wait=false")


def _namespace(provider: Provider) -> Kubectl:
    name = f"bench-{secrets.token_hex(3)}"
    program = providers.find_kubectl(Layout.from_environment())
    kubectl = Kubectl(program=program, kubeconfig=provider.kubeconfig, namespace=name)
    metadata = {"name": name, "labels": RESTRICTED}
    kubectl("create", "--filename=-", manifest={"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    return kubectl


def _round(core: client.CoreV1Api, kubectl: Kubectl, *, trials: int, parallelism: int) -> Round:
    plain = bare(core, kubectl.namespace, trials=trials, parallelism=parallelism)
    pods, writes, unkilled = killed(core, kubectl, trials=trials, parallelism=parallelism)
    return Round(
        bare_seconds=_wall(plain),
        killpoint_seconds=_wall(pods, unkilled),
        bare_pod_seconds=_lived(plain),
        killpoint_pod_seconds=_lived(pods, unkilled),
        bare_gap_seconds=_gaps(plain),
        killpoint_gap_seconds=_gaps(pods, unkilled),
        writes=dict(writes),
    )


def _table(rounds: Sequence[Round], *, trials: int, parallelism: int) -> Iterator[str]:
    yield f"{trials} trials of two pods each, {parallelism} at once, {os.cpu_count()} processors"
    yield f"{'':<42}{'bare pods':>12}{'killpoint':>12}"
    for words, left, right in (
        ("wall time of a trial, seconds", "bare_seconds", "killpoint_seconds"),
        ("a pod, until its end is known, seconds", "bare_pod_seconds", "killpoint_pod_seconds"),
        ("until a trial's next pod, seconds", "bare_gap_seconds", "killpoint_gap_seconds"),
    ):
        parts = trials if left == "bare_seconds" else 1
        values = (statistics.median(getattr(one, name) for one in rounds) / parts for name in (left, right))
        yield f"{words:<42}" + "".join(f"{value:>12.2f}" for value in values)
    ratio = statistics.median(one.ratio for one in rounds)
    met = "met" if ratio <= AIM_RATIO else "MISSED"
    yield f"ratio of wall times: {ratio:.2f}; aim: at most {AIM_RATIO:.2f}: {met}"
    total = trials + 1  # the control is a trial, too
    writes = {what: statistics.median(one.writes.get(what, 0) / total for one in rounds) for what in _kinds(rounds)}
    yield "requests that change something, as the API server counts them, for each trial (the control is one):"
    yield from (f"    {what:<40}{count:>8.2f}" for what, count in sorted(writes.items()))
    met = "met" if sum(writes.values()) <= AIM_WRITES else "MISSED"
    yield f"    {'all':<40}{sum(writes.values()):>8.2f}; aim: at most {AIM_WRITES:g}: {met}"


def _kinds(rounds: Sequence[Round]) -> set[str]:
    return {what for one in rounds for what in one.writes}


def _provider() -> Provider | None:
    """The one-node cluster, if it is up: an operator on this machine is reached by the pods of no other."""
    try:
        chosen = providers.choose(Layout.from_environment())
    except ClusterError:
        return None
    return chosen if isinstance(chosen, Node) and chosen.is_up() else None


def main() -> None:
    parser = argparse.ArgumentParser(description="What killpoint adds to trials in a cluster.")
    parser.add_argument("--trials", type=int, default=12, choices=range(2, 1001), metavar="2-1000")
    parser.add_argument("--rounds", type=int, default=3, choices=range(1, 21), metavar="1-20")
    parser.add_argument("--parallelism", type=int, default=4, choices=range(1, 65), metavar="1-64")
    parser.add_argument("--json", action="store_true", help="the result as JSON")
    options = parser.parse_args()
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]  # the cluster is on this machine, or reached without one
    provider = _provider()
    if provider is None:
        print("NOT MEASURED: no one-node cluster is up. `make cluster images`, and again.")
        return
    rounds = measure(provider, trials=options.trials, rounds=options.rounds, parallelism=options.parallelism)
    if options.json:
        print(json.dumps([asdict(one) for one in rounds], indent=2))
        return
    print("\n".join(_table(rounds, trials=options.trials, parallelism=options.parallelism)))


if __name__ == "__main__":
    main()
