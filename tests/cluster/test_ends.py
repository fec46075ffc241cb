"""Whatever keeps an experiment from running ends it within its time, with a reason; the others go on meanwhile.

All of them are applied at once, to one operator. Each is then looked at by itself.

What a worker is made of is an allowlist. Of Secrets it can name those to pull with, and no other: that its environment
lacks one of the user's cannot be (test_security.py has what is refused). Those that killpoint makes for its workers can
be deleted by somebody, and are here. Pods keep to Pod Security "restricted", the strictest there is, and every one of
these namespaces enforces it: it is never what refuses them.
"""

from __future__ import annotations

import faulthandler
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

import pytest

from tests.cluster.bad_ends import (
    BAD,
    GOOD,
    NO_IMAGE,
    PLACE_LABEL,
    REFUSAL,
    REFUSED_LABEL,
    SECRET_LABEL,
    SMALL,
    TURN_SECONDS,
    UNANSWERED_LABEL,
    End,
)
from tests.cluster.conftest import CRD
from tests.cluster.kubectl import Kubectl
from tests.cluster.namespaces import namespace
from tests.cluster.objects import GONE_SECONDS_MAX, Experiments
from tests.cluster.obstacles import WEBHOOK, limit_range, policy, quota, webhook_that_is_away
from tests.cluster.operator_process import Operator, experiment, operator_for, wait_for
from tests.cluster.pods import pod
from tests.cluster.providers import Node, Provider
from tests.cluster.survival import databases_left

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

ALL_SECONDS_MAX = 600.0
MORE_SECONDS_MAX = 100
"""What an end may take beyond its grace on a busy machine: until it begins, and its judgement."""
SECRET_DELETED = End(
    name="secret-deleted",
    says=("CreateContainerConfigError", 'secret "kp-', "not found", "run it again"),
    limits={"startupSeconds": 60},
)
"""It waits for a node, and gets one when its secrets are gone."""
MADE_AGAIN = replace(SECRET_DELETED, name="secret-made-again", limits={"startupSeconds": 60, "inconclusiveRetries": 1})
"""The same, but it is run again."""
ENDS = (*BAD, SECRET_DELETED)
TURNS = {"quota-full": "few-pods", "node-missing": "has no node", "webhook-away": WEBHOOK}
"""What goes away in time for one experiment, named as the one that it does not go away for → how it is told of."""

Places = Mapping[str, Kubectl]
Status = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How all of them ended, by name, and what was there afterwards."""

    statuses: Mapping[str, Status]
    meanwhile: Mapping[str, Status]
    """Before anything went away."""
    left: list[str]
    databases: list[str]
    said: str
    """By the operator."""


@pytest.fixture(scope="module")
def node(provider: Provider) -> Provider:
    if not isinstance(provider, Node):
        pytest.skip("the operator runs on this machine, which only the pods of the one-node cluster can reach")
    return provider


@pytest.fixture(scope="module")
def ended(node: Provider) -> Iterator[Ended]:
    """All experiments, run to their ends at once. Its bounds are its own, and later than the watchdog's."""
    faulthandler.cancel_dump_traceback_later()
    with places(node) as at, obstructed(at), served(at) as operator:
        plain = at["plain"]
        for end in BAD:
            at[end.where].apply(end.document())
        plain.apply(*(small(experiment(name), resources=resources) for name, resources in GOOD.items()))
        at["quota"].apply(turning("quota-full"))
        plain.apply(turning("node-missing", nodeSelector={PLACE_LABEL: plain.namespace}))
        plain.apply(turning("webhook-away", labels={UNANSWERED_LABEL: "for-now"}))
        delete_secrets_of(plain, SECRET_DELETED, MADE_AGAIN)
        wait_for(lambda: TURNS.keys() <= complete(at), f"{TURNS.keys()} to end", seconds=ALL_SECONDS_MAX)
        wait_for(lambda: told_of(at) == {*TURNS}, f"people to be told of {TURNS}: {told_of(at)}")
        before = statuses_of(at)
        at["quota"].apply(quota("few-pods", pods="50"))
        mark_node(plain, PLACE_LABEL, plain.namespace)
        plain("delete", "validatingwebhookconfiguration", f"{plain.namespace}-for-now")
        everything = {end.name for end in (*ENDS, MADE_AGAIN)} | {*GOOD} | {f"{name}-for-now" for name in TURNS}
        wait_for(lambda: everything <= complete(at), f"all of {everything} to end", seconds=ALL_SECONDS_MAX)
        wait_for(lambda: not left_in(at), "nothing to be left", seconds=GONE_SECONDS_MAX)
        assert operator.is_well()
        yield Ended(
            statuses=statuses_of(at),
            meanwhile=before,
            left=left_in(at),
            databases=databases_left(operator),
            said=operator.process.said(),
        )


@contextmanager
def places(provider: Provider) -> Iterator[Places]:
    """A namespace for each of the words of ``End.where``."""
    with ExitStack() as stack:
        words = dict.fromkeys(end.where for end in ENDS)
        made = {word: stack.enter_context(namespace(provider, f"test-{word}")) for word in words}
        try:
            yield made
        finally:
            for label in (PLACE_LABEL, SECRET_LABEL):
                mark_node(made["plain"], label, None)


@contextmanager
def obstructed(at: Places) -> Iterator[None]:
    """With everything in the way that is to be, and in force."""
    at["quota"].apply(quota("few-pods", pods="0"))
    at["quota-asks"].apply(quota("names-limits", limits_cpu="4"))
    at["quota-of-secrets"].apply(quota("no-secrets", count__secrets="0"))
    at["limit-range"].apply(limit_range("small", memory_max="32Mi"))
    plain = at["plain"]
    room = plain.namespace
    made = [
        *policy(room, namespace=room, label=REFUSED_LABEL, says=REFUSAL),
        webhook_that_is_away(f"{room}-for-ever", namespace=room, label=UNANSWERED_LABEL, value="for-ever"),
        webhook_that_is_away(f"{room}-for-now", namespace=room, label=UNANSWERED_LABEL, value="for-now"),
    ]
    plain.apply(*made)
    try:
        in_force(plain, REFUSAL, {REFUSED_LABEL: "yes"})
        in_force(plain, WEBHOOK, {UNANSWERED_LABEL: "for-ever"})
        in_force(plain, WEBHOOK, {UNANSWERED_LABEL: "for-now"})
        yield
    finally:
        for one in made:
            plain("delete", one["kind"], one["metadata"]["name"], "--ignore-not-found")


def in_force(kubectl: Kubectl, words: str, labels: Mapping[str, str]) -> None:
    """Wait until pods with these labels are refused in these words."""

    def refused() -> bool:
        try:
            kubectl("create", "--dry-run=server", "--filename=-", manifest=pod("probe", "langgraph", labels=labels))
        except AssertionError as error:
            return words in str(error)
        return False

    wait_for(refused, f"{words} to be in force")


@contextmanager
def served(at: Places) -> Iterator[Operator]:
    """An operator for all of these namespaces."""
    plain = at["plain"]
    plain("apply", "--server-side", "--force-conflicts", f"--filename={CRD}")
    rooms = ",".join(kubectl.namespace for kubectl in at.values())
    with operator_for(plain, KILLPOINT_NAMESPACES=rooms, KILLPOINT_EXPERIMENTS_MAX="64") as operator:
        operator.start()
        yield operator


def turning(name: str, **worker: Any) -> dict[str, Any]:  # noqa: ANN401 - any field of a worker
    """An experiment that has the time to wait for what goes away."""
    limits = {"startupSeconds": TURN_SECONDS, "inconclusiveRetries": 0}
    return small(experiment(f"{name}-for-now", limits=limits), **worker)


def small(document: dict[str, Any], **worker: Any) -> dict[str, Any]:  # noqa: ANN401 - any field of a worker
    document["spec"]["workers"][0] |= {"resources": SMALL, **worker}
    return document


def delete_secrets_of(kubectl: Kubectl, *ends: End) -> None:
    """Apply them, delete the secrets that their pods are going to need, and then let these have a node."""
    for end in ends:
        kubectl.apply(replace(end, worker={"nodeSelector": {SECRET_LABEL: kubectl.namespace}}).document())
    for end in ends:
        uid = kubectl.get("cexp", end.name)["metadata"]["uid"]
        its = f"--selector=killpoint.dev/experiment-uid={uid}"
        wait_for(partial(kubectl, "get", "pods", its, "--output=name"), f"the first pod of {end.name}")
        kubectl("delete", "secrets", its)
    mark_node(kubectl, SECRET_LABEL, kubectl.namespace)


def mark_node(kubectl: Kubectl, label: str, value: str | None) -> None:
    """Put a label on every node, or take it off."""
    kubectl("label", "nodes", "--all", f"{label}-" if value is None else f"{label}={value}")


def statuses_of(at: Places) -> dict[str, Status]:
    found = [item for kubectl in at.values() for item in kubectl.get("cexp")["items"]]
    return {item["metadata"]["name"]: item.get("status", {}) for item in found}


def complete(at: Places) -> set[str]:
    """The names of those that are at their end."""
    return {name for name, status in statuses_of(at).items() if status.get("phase") == "Complete"}


def told_of(at: Places) -> set[str]:
    """Which of TURNS the statuses say that one waits for."""
    statuses = statuses_of(at)
    return {name for name, words in TURNS.items() if words in waited_for(statuses[f"{name}-for-now"])}


def waited_for(status: Status) -> str:
    found = condition(status, "Reconciling")
    return str(found["message"]) if found["reason"] == "PodsWaiting" else ""


def left_in(at: Places) -> list[str]:
    return [item for kubectl in at.values() for item in Experiments(kubectl).left()]


def condition(status: Status, kind: str) -> dict[str, Any]:
    return next(one for one in status["conditions"] if one["type"] == kind)


def seconds_of(status: Status) -> float:
    began, over = (datetime.fromisoformat(status[name]) for name in ("startTime", "completionTime"))
    return (over - began).total_seconds()


@pytest.mark.parametrize("end", ENDS, ids=str)
def test_what_cannot_run_ends_inconclusive_in_time_and_says_why(ended: Ended, end: End) -> None:
    """litmus#1828, argo-workflows#4229, argo-rollouts#2520, k6-operator#251, #583: each hung, or ended in silence."""
    status = ended.statuses[end.name]
    told = [*status.get("reasons", ()), *(one["reason"] for one in status.get("failures", ()))]
    assert any(all(text in words for text in end.says) for words in told), json.dumps(told, indent=1)
    assert status["result"] == "Inconclusive"
    assert set(status["trials"]["verdicts"]) == {"inconclusive"}, "nothing was seen, so nothing is concluded"
    assert status["kills"]["confirmed"] == status["effects"]["witnessed"] == 0
    assert condition(status, "Complete")["status"] == "True"
    assert condition(status, "Passed")["status"] != "True"
    assert any(text in condition(status, "Passed")["message"] for text in end.says), "it is what an event says, too"
    limits = end.document()["spec"]["limits"]
    grace = limits["startupSeconds"] if end.grace is None else end.grace
    assert seconds_of(status) < grace + MORE_SECONDS_MAX


@pytest.mark.parametrize("name", GOOD, ids=lambda name: f"{name[:30]}-{len(name)}")
def test_others_go_on_meanwhile_whatever_the_length_of_their_name(ended: Ended, name: str) -> None:
    """litmus#3655: names that are made of a long name were too long."""
    status = ended.statuses[name]
    assert (status["result"], status["progress"]) == ("Pass", "2/2"), json.dumps(status["reasons"], indent=1)
    assert status["kills"] == {"planned": 1, "confirmed": 1}


@pytest.mark.parametrize("name", TURNS)
def test_what_goes_away_in_time_costs_nothing_but_time(ended: Ended, name: str) -> None:
    """It went when the other one had ended by it; until then, people are told what is waited for."""
    before, after = ended.meanwhile[f"{name}-for-now"], ended.statuses[f"{name}-for-now"]
    assert (before["phase"], before["progress"]) == ("Running", "0/2")
    assert TURNS[name] in waited_for(before)
    assert after["result"] == "Pass", json.dumps(after["reasons"], indent=1)
    assert after["trials"]["retries"] == 0


def test_a_secret_that_somebody_deleted_is_made_again_when_it_is_run_again(ended: Ended) -> None:
    status = ended.statuses[MADE_AGAIN.name]
    assert status["result"] == "Pass", json.dumps(status["reasons"], indent=1)
    assert status["trials"]["retries"] == 1


def test_nothing_is_left_of_any_of_them(ended: Ended) -> None:
    assert ended.left == []
    assert ended.databases == []
    # One of the operator's own stands at the start of a line; that of a worker is quoted within one.
    assert not re.search(r"^Traceback", ended.said, re.MULTILINE), ended.said


# --- deletion --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def room(node: Provider) -> Iterator[tuple[Experiments, Operator]]:
    """An operator for a namespace of its own."""
    with namespace(node, "test-deletion") as kubectl, served({"plain": kubectl}) as operator:
        yield Experiments(kubectl), operator
        assert "Traceback" not in operator.process.said(), operator.process.said()


def told(experiments: Experiments, name: str, words: str) -> bool:
    return words in json.dumps(experiments.status(name))


def test_deletion_in_whatever_phase_leaves_nothing(room: tuple[Experiments, Operator]) -> None:
    """Of one that is suspended, one that waits for its image, one that waits for a node, one that is refused."""
    experiments, operator = room
    limits = {"startupSeconds": 600}
    experiments.apply(
        small(experiment("suspended", suspend=True)),
        small(experiment("without-image", limits=limits), image=NO_IMAGE),
        small(experiment("without-node", limits=limits), nodeSelector={PLACE_LABEL: "nowhere"}),
        small(experiment("complete", abort=True)),
        small(experiment("invalid", matrix={"setup": ["no-such-setup"], "kill": [{"at": ["charge.after"]}]})),
    )
    wait_for(lambda: experiments.said("suspended").get("Reconciling") == ("True", "Suspended"), "one to be suspended")
    for name, words in (("without-image", NO_IMAGE), ("without-node", "has no node")):
        wait_for(partial(told, experiments, name, words), f"{name} to say {words}")
    for name in ("complete", "invalid"):
        experiments.complete(name)
    experiments.kubectl("delete", "crashexperiments", "--all", f"--timeout={GONE_SECONDS_MAX:.0f}s")
    experiments.nothing_left()
    assert databases_left(operator) == []
    assert operator.is_well()


def test_what_is_over_needs_no_operator_to_be_deleted(room: tuple[Experiments, Operator]) -> None:
    experiments, operator = room
    experiments.apply(small(experiment("tiny")))
    assert experiments.complete("tiny")["result"] == "Pass"
    wait_for(lambda: not experiments.get("tiny")["metadata"].get("finalizers"), "the finalizer to go", seconds=5)
    operator.process.stop()
    try:
        experiments.kubectl("delete", "crashexperiment", "tiny", "--timeout=10s")
        experiments.nothing_left(seconds=5)
        assert databases_left(operator) == []
    finally:
        operator.start()


def test_a_namespace_of_finished_experiments_needs_no_operator_to_be_deleted(
    room: tuple[Experiments, Operator],
) -> None:
    """kopf#75, zalando's: operator and objects went together, and finalizers were left that nobody took off."""
    experiments, operator = room
    experiments.apply(small(experiment("one")), small(experiment("another", abort=True)))
    for name in ("one", "another"):
        experiments.complete(name)
    experiments.nothing_left(seconds=5)
    operator.process.stop()
    experiments.kubectl("delete", "namespace", experiments.kubectl.namespace, "--timeout=60s")
    again = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": experiments.kubectl.namespace}}
    experiments.kubectl("create", "--filename=-", manifest=again)  # the fixtures delete it once more
    assert databases_left(operator) == []
