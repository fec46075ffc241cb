"""Attempts as pods on a real kubelet: their ends, whose doing they are, and that nothing is left of them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from killpoint.core.points import landed
from killpoint.model.cells import Method
from killpoint.model.evidence import AttemptEnd, AttemptEvidence, EndReason, OutcomeWord
from tests.cluster.substrate.rig import ATTEMPT, DEAF, Rig, other, worker

pytestmark = [pytest.mark.cluster, pytest.mark.anyio]


def has_landed(end: AttemptEnd, method: Method) -> bool:
    evidence = AttemptEvidence(
        id=ATTEMPT, action="start", scheduled="charge.after", intended_ms=0, method=method,
        parked_ms=1 if method.parks else None, kill_requested=method.parks, end=end,
    )  # fmt: skip
    return landed(evidence)


# --- ends ------------------------------------------------------------------------------------------------------


async def test_a_worker_finishes_and_another_operator_reads_the_same(rig: Rig) -> None:
    await rig.substrate().launch(rig.launch())
    end = await rig.end(rig.substrate())
    assert (end.reason, end.exit_code, end.fault) == (EndReason.EXITED, 0, None)
    assert end.outcome is not None
    assert end.outcome.word is OutcomeWord.FINISHED
    assert end.started_ms is not None
    assert end.started_ms <= end.at_ms


async def test_launched_twice_it_runs_once(rig: Rig) -> None:
    launch = rig.launch(method=Method.SIGKILL)
    await asyncio.gather(*(rig.substrate().launch(launch) for _ in range(3)))
    await rig.end(rig.substrate())
    await rig.substrate().launch(launch)
    assert len(rig.pods()) == 1


@pytest.mark.parametrize(
    ("method", "reason", "code"),
    [
        (Method.SIGKILL, EndReason.SIGNALED, 137),
        (Method.EXIT, EndReason.EXITED, 91),
        (Method.OUT_OF_MEMORY, EndReason.OUT_OF_MEMORY, 137),
    ],
)
async def test_a_worker_that_ends_itself_at_its_point_has_landed(
    rig: Rig, method: Method, reason: EndReason, code: int
) -> None:
    substrate = rig.substrate()
    await substrate.launch(rig.launch(method=method))
    end = await rig.end(substrate)
    assert (end.reason, end.exit_code) == (reason, code)
    assert has_landed(end, method)


@pytest.mark.parametrize("source", [None, DEAF])
@pytest.mark.parametrize("method", [Method.DELETE_POD, Method.EVICT])
async def test_a_parked_worker_is_killed_from_outside(rig: Rig, method: Method, source: str | None) -> None:
    """Its evidence stays although the pod is deleted (k6-operator#796: it went too soon), and the kill is ours."""
    template = worker(source) if source else None
    substrate = rig.substrate(template)
    await substrate.launch(rig.launch(method=method))
    assert (await rig.until_running(substrate)).parked_at == "charge.after"
    await asyncio.sleep(1)  # what "parked" means here: it has written its line by now
    await substrate.kill(ATTEMPT, method)
    end = await rig.end(substrate)
    assert (end.reason, end.exit_code) == (EndReason.SIGNALED, 137 if source else 143)
    assert has_landed(end, method)


@pytest.mark.parametrize("source", [None, DEAF])
async def test_a_worker_past_its_deadline_is_dead_within_seconds(rig: Rig, source: str | None) -> None:
    template = worker(source) if source else None
    substrate = rig.substrate(template)
    await substrate.launch(rig.launch(method=Method.DELETE_POD))
    await rig.until_running(substrate)
    await substrate.kill(ATTEMPT, Method.SIGKILL)
    async with asyncio.timeout(10):
        end = await rig.end(substrate)
    assert end.reason is EndReason.SIGNALED
    assert end.exit_code in {137, 143}


async def test_a_worker_that_fails_without_a_word_has_the_end_of_its_output_in_the_fault(rig: Rig) -> None:
    substrate = rig.substrate(worker("import no_such_module"))
    await substrate.launch(rig.launch())
    fault = str((await rig.end(substrate)).fault)
    assert fault.startswith("it ended with exit 1 without a line in its termination log")
    assert "No module named 'no_such_module'" in fault


# --- whose doing -----------------------------------------------------------------------------------------------


async def test_a_pod_that_somebody_deletes_is_not_our_kill(rig: Rig) -> None:
    substrate = rig.substrate()
    await substrate.launch(rig.launch(method=Method.DELETE_POD))
    await rig.until_running(substrate)
    rig.kubectl("delete", "pod", rig.scope.pod(ATTEMPT), "--wait=false")
    end = await rig.end(substrate)
    assert end.reason is EndReason.VANISHED
    assert "somebody else deleted it" in str(end.fault)
    assert not has_landed(end, Method.DELETE_POD)


async def test_a_pod_that_is_gone_altogether_is_absent(rig: Rig) -> None:
    substrate = rig.substrate()
    await substrate.launch(rig.launch())
    await rig.end(substrate)
    no_finalizers = '{"metadata":{"finalizers":null}}'
    rig.kubectl("patch", "pod", rig.scope.pod(ATTEMPT), "--type=merge", f"--patch={no_finalizers}")
    rig.kubectl("delete", "pod", rig.scope.pod(ATTEMPT))
    async with asyncio.timeout(10):
        while await substrate.observe([ATTEMPT]):  # noqa: ASYNC110 - nobody here knows when
            await asyncio.sleep(0.1)
    assert await rig.substrate().observe([ATTEMPT]) == {}


# --- not started -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"image": "localhost/no-such-image:1", "pull_policy": "Never"}, "localhost/no-such-image:1 cannot be had"),
        ({"requests": {"cpu": "900"}}, "has no node"),
        ({"command": ("/no/such/program",)}, "its worker could not be started"),
        ({"pull_secrets": ("none",), "image": "registry.invalid/none:1"}, "registry.invalid/none:1 cannot be had"),
    ],
)
async def test_a_pod_that_does_not_start_ends_with_what_is_at_fault(
    rig: Rig, changes: dict[str, Any], words: str
) -> None:
    substrate = rig.substrate(other(worker(), **changes))
    await substrate.launch(rig.launch())
    await rig.until_said(words)
    await substrate.kill(ATTEMPT, Method.SIGKILL)
    end = await rig.end(rig.substrate())
    assert end.reason is EndReason.NOT_STARTED
    assert words in str(end.fault)


async def test_a_secret_that_lacks_the_token_is_named(rig: Rig) -> None:
    """Somebody else's of that name is not read, so it is the kubelet that finds it out."""
    name = rig.scope.token_secret(ATTEMPT.trial)
    rig.kubectl("create", "secret", "generic", name)
    substrate = rig.substrate()
    await substrate.launch(rig.launch())
    words = f"couldn't find key 1 in Secret {rig.kubectl.namespace}/{name}"
    await rig.until_said(words)
    await substrate.kill(ATTEMPT, Method.SIGKILL)
    end = await rig.end(substrate)
    assert end.reason is EndReason.NOT_STARTED
    assert words in str(end.fault)


async def test_a_full_quota_is_waited_for_and_then_lets_the_pod_in(rig: Rig) -> None:
    rig.kubectl("create", "quota", "none", "--hard=pods=0")
    substrate = rig.substrate()
    await substrate.launch(rig.launch())
    assert (await substrate.observe([ATTEMPT]))[ATTEMPT].end is None
    assert rig.pods() == []
    rig.kubectl("delete", "quota", "none")
    assert (await rig.end(substrate)).reason is EndReason.EXITED


async def test_a_full_quota_and_a_limit_range_are_reasons(rig: Rig) -> None:
    limits = [{"type": "Container", "max": {"memory": "64Mi"}}]
    rig.kubectl.apply(
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "low"}, "spec": {"limits": limits}}
    )
    substrate = rig.substrate()
    await substrate.launch(rig.launch())
    end = await rig.end(substrate)
    assert end.reason is EndReason.NOT_STARTED
    assert "does not keep to a LimitRange" in str(end.fault)
    rig.kubectl("delete", "limitrange", "low")
    rig.kubectl("create", "quota", "none", "--hard=pods=0")
    substrate = rig.substrate()
    await substrate.launch(rig.launch())
    await substrate.kill(ATTEMPT, Method.SIGKILL)
    assert "ResourceQuota is used up" in str((await rig.end(substrate)).fault)


# --- freeing ---------------------------------------------------------------------------------------------------


async def test_nothing_is_left_of_what_was_judged(rig: Rig) -> None:
    substrate = rig.substrate()
    await substrate.launch(rig.launch())
    await rig.end(substrate)
    for _ in range(2):
        await substrate.clean_up([ATTEMPT])
    await rig.gone()
    names = {secret["metadata"]["name"] for secret in rig.kubectl.get("secrets")["items"]}
    assert names == {rig.scope.database_secret}


async def test_retained_pods_stay_and_can_be_deleted_by_anybody(rig: Rig) -> None:
    rig.retain_pods = True
    substrate = rig.substrate()
    await substrate.launch(rig.launch())
    await rig.end(substrate)
    await substrate.clean_up([ATTEMPT])
    [pod] = rig.pods()
    assert "finalizers" not in pod["metadata"]
    rig.kubectl("delete", "pod", rig.scope.pod(ATTEMPT))
    assert rig.pods() == []


async def test_a_sweep_ends_what_runs_and_leaves_nothing(rig: Rig) -> None:
    substrate = rig.substrate(worker(DEAF))
    await substrate.launch(rig.launch(method=Method.DELETE_POD))
    await rig.until_running(substrate)
    assert await rig.substrate().sweep([ATTEMPT]) == 0
    assert await rig.substrate().sweep([]) == 1
    await rig.gone()
