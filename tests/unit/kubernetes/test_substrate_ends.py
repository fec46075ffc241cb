"""The substrate against an API server in memory: how attempts are ended and freed, and that nobody may be there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from killpoint.kubernetes import names
from killpoint.model.cells import Method
from killpoint.model.evidence import EndReason
from killpoint.ports import SubstrateUnavailableError
from tests.unit.kubernetes.api import status
from tests.unit.kubernetes.pods import (
    ATTEMPT,
    SCOPE,
    STARTED,
    TRIAL,
    deleted,
    launch,
    log,
    terminated,
)
from tests.unit.kubernetes.rig import POD, TOKENS, Rig, ended

pytestmark = pytest.mark.anyio


# --- ending ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "requests", "grace"),
    [
        (Method.SIGKILL, [f"GET pods/{POD}", f"PATCH pods/{POD}", f"DELETE pods/{POD}"], 0),
        (Method.DELETE_POD, [f"GET pods/{POD}", f"PATCH pods/{POD}", f"DELETE pods/{POD}"], 5),
        (Method.EVICT, [f"GET pods/{POD}", f"PATCH pods/{POD}", f"POST pods/{POD}/eviction"], 5),
    ],
)
async def test_each_method_ends_a_pod_in_its_way_once_and_marks_it_first(
    rig: Rig, method: Method, requests: list[str], grace: int
) -> None:
    substrate = rig.substrate()
    await substrate.launch(launch(method=method))
    rig.show({"running": {"startedAt": STARTED}})
    rig.server.requests.clear()
    await substrate.kill(ATTEMPT, method)
    assert rig.server.requests == requests
    metadata = rig.server.pods[POD]["metadata"]
    assert metadata["annotations"][names.KILLED_BY] == method.value
    assert metadata["deletionGracePeriodSeconds"] == grace
    rig.server.requests.clear()
    await substrate.kill(ATTEMPT, method)
    assert rig.server.requests == [f"GET pods/{POD}"]
    rig.show(terminated(143, message=log("charge.after")), phase="Failed")
    assert (await ended(substrate)).reason is EndReason.SIGNALED


async def test_nothing_to_kill_is_a_success(rig: Rig) -> None:
    substrate = rig.substrate()
    await substrate.kill(ATTEMPT, Method.SIGKILL)
    await substrate.launch(launch())
    rig.show(terminated(0, reason="Completed", message=log()), phase="Succeeded")
    rig.server.requests.clear()
    await substrate.kill(ATTEMPT, Method.SIGKILL)
    assert rig.server.requests == [f"GET pods/{POD}"]


async def test_a_pod_that_somebody_deletes_slowly_is_ended_at_the_deadline_and_stays_theirs(rig: Rig) -> None:
    substrate = rig.substrate()
    await substrate.launch(launch())
    rig.show({"running": {"startedAt": STARTED}})
    rig.server.pods[POD]["metadata"] |= deleted(grace=30)
    await substrate.kill(ATTEMPT, Method.SIGKILL)
    metadata = rig.server.pods[POD]["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 0
    assert names.KILLED_BY not in metadata["annotations"]


async def test_a_pod_that_never_started_ends_with_what_kept_it_from_starting(rig: Rig) -> None:
    """Once it is deleted, its status says nothing of that any more."""
    substrate = rig.substrate()
    await substrate.launch(launch())
    rig.show({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}, phase="Pending")
    await substrate.kill(ATTEMPT, Method.SIGKILL)
    rig.show(terminated(137, reason="ContainerStatusUnknown"), phase="Failed")
    end = await ended(rig.substrate())
    assert end.reason is EndReason.NOT_STARTED
    assert "image killpoint-langgraph:0.1.0 cannot be had (ImagePullBackOff)" in str(end.fault)


async def test_secrets_that_somebody_deleted_are_made_again_for_what_comes_after_a_pod_that_lacked_them(
    rig: Rig,
) -> None:
    substrate = rig.substrate()
    await substrate.launch(launch())
    rig.server.secrets.clear()
    rig.show({"waiting": {"reason": "CreateContainerConfigError", "message": f'secret "{TOKENS}" not found'}})
    await substrate.kill(ATTEMPT, Method.SIGKILL)
    another = replace(ATTEMPT, trial=replace(TRIAL, number=4))
    await substrate.launch(launch(another))
    assert set(rig.server.secrets) == {SCOPE.database_secret, SCOPE.token_secret(another.trial)}


async def test_an_eviction_that_a_budget_refuses_is_asked_for_again(rig: Rig) -> None:
    substrate = rig.substrate()
    await substrate.launch(launch(method=Method.EVICT))
    rig.show({"running": {"startedAt": STARTED}})
    refused = status(429, "TooManyRequests", "Cannot evict pod: budget", cause="DisruptionBudget")
    rig.server.refuse = lambda _, path: refused if path.endswith("/eviction") else None
    await substrate.kill(ATTEMPT, Method.EVICT)
    assert "deletionTimestamp" not in rig.server.pods[POD]["metadata"]
    rig.server.refuse = lambda _method, _path: None
    await substrate.kill(ATTEMPT, Method.EVICT)
    assert "deletionTimestamp" in rig.server.pods[POD]["metadata"]


# --- freeing ---------------------------------------------------------------------------------------------------


async def test_what_was_judged_goes_and_doing_it_again_is_harmless(rig: Rig) -> None:
    substrate = rig.substrate()
    await substrate.launch(launch())
    rig.show(terminated(0, reason="Completed", message=log()), phase="Succeeded")
    for _ in range(2):
        await substrate.clean_up([ATTEMPT])
        assert rig.server.pods == {}
        assert list(rig.server.secrets) == [SCOPE.database_secret]


async def test_a_pod_that_somebody_had_deleted_goes_with_its_finalizer(rig: Rig) -> None:
    substrate = rig.substrate()
    await substrate.launch(launch())
    rig.server.pods[POD]["metadata"] |= deleted()
    await substrate.clean_up([ATTEMPT])
    assert rig.server.pods == {}


async def test_retained_pods_stay_without_a_finalizer_and_are_not_looked_at_again(rig: Rig) -> None:
    substrate = rig.substrate(retain_pods=True)
    await substrate.launch(launch())
    await substrate.clean_up([ATTEMPT])
    assert rig.server.pods[POD]["metadata"]["finalizers"] == []
    assert await substrate.sweep([]) == 0
    assert list(rig.server.secrets) == [SCOPE.database_secret]


async def test_a_sweep_frees_what_a_killed_operator_left_and_keeps_what_still_runs(rig: Rig) -> None:
    substrate = rig.substrate()
    other = replace(ATTEMPT, number=2)
    await substrate.launch(launch())
    await substrate.launch(launch(other))
    assert await rig.substrate().sweep([other]) == 1
    assert list(rig.server.pods) == [SCOPE.pod(other)]
    assert await rig.substrate().sweep([]) == 1
    assert rig.server.pods == {}


async def test_a_sweep_takes_the_tokens_of_trials_that_are_over(rig: Rig) -> None:
    """Also where the pods had gone before the operator was killed."""
    substrate = rig.substrate()
    other = replace(ATTEMPT, trial=replace(TRIAL, number=2))
    await substrate.launch(launch())
    await substrate.launch(launch(other))
    rig.server.pods.clear()
    assert await rig.substrate().sweep([other]) == 0
    assert set(rig.server.secrets) == {SCOPE.database_secret, SCOPE.token_secret(other.trial)}
    assert await rig.substrate().sweep([]) == 0
    assert set(rig.server.secrets) == {SCOPE.database_secret}, "what is started next needs it"


# --- nobody there ----------------------------------------------------------------------------------------------


async def test_a_short_silence_is_sat_out_and_a_long_one_is_said(rig: Rig) -> None:
    substrate = rig.substrate()
    rig.server.away = 2
    await substrate.launch(launch())
    assert POD in rig.server.pods
    rig.server.away = 3
    with pytest.raises(SubstrateUnavailableError, match=r"does not answer GET .*: ConnectionResetError: nobody there"):
        await substrate.observe([ATTEMPT])


@pytest.mark.parametrize("code", [401, 429, 503])
async def test_an_api_server_that_is_busy_is_away(rig: Rig, code: int) -> None:
    rig.server.refuse = lambda _method, _path: status(code, "", "not now")
    with pytest.raises(SubstrateUnavailableError, match="not now"):
        await rig.substrate().launch(launch())


async def test_a_right_that_is_missing_is_named(rig: Rig) -> None:
    answer = status(403, "Forbidden", 'User "system:serviceaccount:kp:kp" cannot list resource "pods"')
    rig.server.refuse = lambda _method, _path: answer
    with pytest.raises(SubstrateUnavailableError, match='cannot list resource "pods"'):
        await rig.substrate().observe([ATTEMPT])


async def test_what_answers_and_is_no_api_server_is_not_believed(rig: Rig) -> None:
    rig.server.refuse = lambda _method, _path: (200, "<html>")
    with pytest.raises(SubstrateUnavailableError, match="no API server"):
        await rig.substrate().observe([ATTEMPT])


async def test_parkings_that_cannot_be_asked_for_are_not_none(rig: Rig) -> None:
    substrate = rig.substrate()
    await substrate.launch(launch(method=Method.DELETE_POD))
    rig.show({"running": {"startedAt": STARTED}})
    rig.parkings.away = True
    with pytest.raises(SubstrateUnavailableError):
        await substrate.observe([ATTEMPT])
    with pytest.raises(SubstrateUnavailableError):
        await substrate.release(ATTEMPT)
