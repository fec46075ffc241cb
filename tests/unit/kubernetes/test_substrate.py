"""The substrate against an API server in memory: what it asks for, and what it makes of every answer."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import pytest

from killpoint.control.parkings import Parked
from killpoint.core.plan import run_of
from killpoint.model.cells import Method, Role
from killpoint.model.evidence import EndReason
from tests.unit.kubernetes.api import Status
from tests.unit.kubernetes.pods import (
    ATTEMPT,
    SCOPE,
    SERVICES,
    STARTED,
    TRIAL,
    launch,
    log,
    terminated,
)
from tests.unit.kubernetes.rig import ENDING, POD, POLICY, QUOTA, TOKENS, Rig, ended, seen

pytestmark = pytest.mark.anyio


# --- starting --------------------------------------------------------------------------------------------------


async def test_a_launch_makes_the_secrets_before_the_pod_and_doing_it_again_starts_nothing(rig: Rig) -> None:
    await rig.substrate().launch(launch())
    assert rig.server.requests == ["POST secrets", "POST secrets", "POST pods"]
    assert sorted(rig.server.secrets) == [SCOPE.database_secret, TOKENS]
    await rig.substrate().launch(launch())
    assert (len(rig.server.pods), rig.server.made) == (1, 3)


async def test_a_trials_secret_has_the_token_of_every_attempt_that_may_come(rig: Rig) -> None:
    await rig.substrate().launch(launch())
    assert sorted(rig.server.secrets[TOKENS]["data"]) == ["1", "1i", "2", "2i"]


async def test_secrets_are_made_once_by_one_operator(rig: Rig) -> None:
    substrate = rig.substrate()
    await substrate.launch(launch())
    await substrate.launch(launch(replace(ATTEMPT, number=2)))
    assert rig.server.requests.count("POST secrets") == 2


async def test_the_kubelets_deadline_is_behind_the_harnesss_and_far_behind_for_who_is_frozen(rig: Rig) -> None:
    substrate = rig.substrate()
    frozen = replace(ATTEMPT, number=2)
    await substrate.launch(launch())
    await substrate.launch(launch(frozen, method=Method.FREEZE))
    deadlines = [rig.server.pods[SCOPE.pod(one)]["spec"]["activeDeadlineSeconds"] for one in (ATTEMPT, frozen)]
    assert deadlines == [210, 400]


async def test_a_foreign_pod_of_that_name_is_left_alone_and_the_attempt_ends_with_the_reason(rig: Rig) -> None:
    foreign = {"metadata": {"name": POD, "uid": "f", "labels": {}}, "spec": {}, "status": {"phase": "Running"}}
    rig.server.pods[POD] = foreign
    substrate = rig.substrate()
    await substrate.launch(launch())
    end = await ended(substrate)
    assert (end.reason, end.fault) == (
        EndReason.NOT_STARTED,
        f"pod team-a/{POD} is there already and is not this attempt's. Delete it.",
    )
    await substrate.kill(ATTEMPT, Method.SIGKILL)
    await substrate.clean_up([ATTEMPT])
    assert rig.server.pods[POD] is foreign


async def test_our_pod_of_another_assignment_is_not_this_attempt(rig: Rig) -> None:
    await rig.substrate().launch(launch())
    substrate = rig.substrate()
    await substrate.launch(launch(assignment={**launch().assignment, "nonce": "0" * 16}))
    assert (await ended(substrate)).reason is EndReason.NOT_STARTED


async def test_a_setup_without_an_image_ends_with_the_remedy(rig: Rig) -> None:
    substrate = rig.substrate()
    await substrate.launch(launch(setup="unknown"))
    assert "no image is known for setup unknown" in str((await ended(substrate)).fault)


@pytest.mark.parametrize(("answer", "words"), [(POLICY, "Pod Security"), (ENDING, "namespace is being deleted")])
async def test_what_will_not_be_taken_later_either_ends_at_once(rig: Rig, answer: Status, words: str) -> None:
    rig.refuse_pods(answer)
    substrate = rig.substrate()
    await substrate.launch(launch())
    await substrate.launch(launch())
    assert rig.server.requests.count("POST pods") == 1
    end = await ended(substrate)
    assert end.reason is EndReason.NOT_STARTED
    assert words in str(end.fault)


async def test_a_full_quota_is_waited_for(rig: Rig) -> None:
    rig.refuse_pods(QUOTA)
    substrate = rig.substrate()
    await substrate.launch(launch())
    assert (await seen(substrate)).end is None
    assert not (await seen(substrate)).made
    assert rig.server.requests.count("POST pods") == 1
    rig.now_ms += 2000
    await seen(substrate)
    assert rig.server.requests.count("POST pods") == 2
    rig.refuse_pods(None)
    rig.now_ms += 2000
    assert (await seen(substrate)).end is None
    assert (await seen(substrate)).made
    assert POD in rig.server.pods


async def test_a_quota_that_stays_full_ends_the_attempt_at_its_deadline_with_the_reason(rig: Rig) -> None:
    rig.refuse_pods(QUOTA)
    substrate = rig.substrate()
    await substrate.launch(launch())
    await substrate.kill(ATTEMPT, Method.SIGKILL)
    end = await ended(substrate)
    assert end.reason is EndReason.NOT_STARTED
    assert "ResourceQuota is used up" in str(end.fault)
    rig.refuse_pods(None)
    rig.now_ms += 10_000
    await seen(substrate)
    assert POD not in rig.server.pods


# --- seeing ----------------------------------------------------------------------------------------------------


async def test_another_operator_reads_the_same_evidence(rig: Rig) -> None:
    await rig.substrate().launch(launch())
    rig.show(terminated(137, message=log("charge.after")), phase="Failed")
    end = await ended(rig.substrate())
    assert (end.reason, [point.point for point in end.points]) == (EndReason.SIGNALED, ["charge.after"])


async def test_one_list_shows_all_attempts(rig: Rig) -> None:
    substrate = rig.substrate()
    attempts = [ATTEMPT, replace(ATTEMPT, role=Role.INSPECTOR), replace(ATTEMPT, number=2)]
    for attempt in attempts:
        await substrate.launch(launch(attempt))
    rig.server.requests.clear()
    assert set(await substrate.observe(attempts)) == set(attempts)
    assert rig.server.requests == ["GET pods"]


async def test_a_pod_that_the_cache_does_not_show_yet_has_not_vanished(rig: Rig) -> None:
    substrate = rig.substrate()
    await substrate.launch(launch())
    rig.server.hidden.add(POD)
    assert (await seen(substrate)).end is None


async def test_somebodys_pod_with_our_labels_is_neither_looked_at_nor_freed(rig: Rig) -> None:
    substrate = rig.substrate()
    await substrate.launch(launch())
    copied = deepcopy(rig.server.pods[POD])
    copied["metadata"] |= {"name": "copy", "ownerReferences": []}
    rig.server.pods["copy"] = {**copied, "status": {"phase": "Failed", "reason": "Evicted"}}
    assert (await seen(substrate)).end is None
    await substrate.sweep([])
    assert list(rig.server.pods) == ["copy"]


async def test_an_attempt_without_a_pod_is_absent(rig: Rig) -> None:
    assert await rig.substrate().observe([ATTEMPT]) == {}


async def test_a_silent_end_comes_with_the_last_words_of_the_output(rig: Rig) -> None:
    substrate = rig.substrate()
    await substrate.launch(launch())
    rig.show(terminated(1), phase="Failed")
    rig.server.logs[POD] = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'langgraph'\n"
    fault = str((await ended(substrate)).fault)
    assert fault.startswith("it ended with exit 1 without a line in its termination log; its output ends with")
    assert "No module named 'langgraph'" in fault


async def test_a_workers_last_words_come_without_the_secrets_that_it_was_given(rig: Rig) -> None:
    substrate = rig.substrate()
    await substrate.launch(launch())
    rig.show(terminated(1), phase="Failed")
    rig.server.logs[POD] = f"connecting to {SERVICES.database_url}\nas kp1.claims.signature\nwith 'word'\n"
    fault = str((await ended(substrate)).fault)
    assert "connecting to postgresql://killpoint_run_1:…@postgres:5432" in fault
    assert "word" not in fault
    assert "claims" not in fault


async def test_an_outcome_comes_without_the_password_of_the_database(rig: Rig) -> None:
    substrate = rig.substrate()
    await substrate.launch(launch())
    failed = {"outcome": "failed", "error": {"class": "E", "message": "no login with word"}}
    rig.show(terminated(1, message=log(outcome=failed)), phase="Failed")
    end = await ended(substrate)
    assert end.outcome is not None
    assert end.outcome.error_message == "no login with …"


async def test_a_parked_attempt_is_seen_at_its_point_until_it_is_released(rig: Rig) -> None:
    substrate = rig.substrate()
    await substrate.launch(launch(method=Method.FREEZE))
    rig.show({"running": {"startedAt": STARTED}})
    run = run_of(SCOPE.journal, TRIAL)
    parked = Parked(run=run, attempt=str(ATTEMPT), point="charge.after", parked_ms=1, released=False)
    rig.parkings.kept[run, str(ATTEMPT)] = parked
    assert (await seen(substrate)).parked_at == "charge.after"
    await substrate.release(ATTEMPT)
    assert (await seen(substrate)).parked_at is None


async def test_nobody_is_asked_about_parkings_where_nobody_parks(rig: Rig) -> None:
    rig.parkings.away = True
    substrate = rig.substrate()
    await substrate.launch(launch())
    rig.show({"running": {"startedAt": STARTED}})
    assert (await seen(substrate)).lines == 1
    assert rig.parkings.asked == []


async def test_sessions_that_could_not_be_asked_for_are_not_zero(rig: Rig) -> None:
    rig.databases.held[str(ATTEMPT)] = 2
    substrate = rig.substrate()
    assert await substrate.sessions([ATTEMPT]) == {ATTEMPT: 2}
    rig.databases.away = True
    assert await substrate.sessions([ATTEMPT]) == {}
