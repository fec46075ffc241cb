"""The substrate against an API server in memory: what it asks for, and what it makes of every answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace

import pytest

from killpoint.control.parkings import Parked, ParkingsUnavailable
from killpoint.core.plan import run_of
from killpoint.databases.errors import PostgresUnreachable
from killpoint.kubernetes import client, names
from killpoint.kubernetes.client import Cluster
from killpoint.kubernetes.substrate import KubernetesSubstrate, SubstrateSettings
from killpoint.model.cells import AttemptId, Method, Role
from killpoint.model.evidence import AttemptEnd, EndReason
from killpoint.model.limits import Limits
from killpoint.model.observations import Observation
from killpoint.ports import SubstrateUnavailableError
from tests.unit.kubernetes.api import FakeApi, FakeServer, Status, status
from tests.unit.kubernetes.pods import (
    ATTEMPT,
    NOW_MS,
    SCOPE,
    SERVICES,
    STARTED,
    TEMPLATE,
    TRIAL,
    deleted,
    launch,
    log,
    terminated,
)

pytestmark = pytest.mark.anyio

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


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setattr(client, "PAUSE_SECONDS", 0.0)
    return Rig()


async def seen(substrate: KubernetesSubstrate, attempt: AttemptId = ATTEMPT) -> Observation:
    return (await substrate.observe([attempt]))[attempt]


async def ended(substrate: KubernetesSubstrate) -> AttemptEnd:
    end = (await seen(substrate)).end
    assert end is not None
    return end


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
