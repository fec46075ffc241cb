"""``run --cluster``: what is applied, what is waited for, what is said, and what an interrupt leaves behind."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from killpoint.api.expectations import rules_of
from killpoint.api.load import from_fields
from killpoint.cli.cluster import run as running
from killpoint.cli.cluster.follow import ACCEPT_SECONDS_MAX, GOES_ON_SECONDS, OUTAGE_SECONDS_MAX, QUIET_SECONDS
from killpoint.cli.cluster.run import ClusterRun, run_in_cluster
from killpoint.cli.exits import Exit, Stop
from killpoint.core.summarize import summarize
from killpoint.journal.archive import Archive, run_of_archive
from killpoint.model.findings import Result
from tests.unit.cli.memory import AWAY, TEXT, Clock, Finished, Memory, Seen, document, standing

NAME = "crash-table"


async def run(
    memory: Memory,
    *,
    clock: Clock | None = None,
    seen: Seen | None = None,
    text: str = TEXT,
    fresh: bool = False,
    detach: bool = False,
) -> Archive:
    request = ClusterRun(document=document(text), fresh=fresh, detach=detach)
    async with asyncio.timeout(10):
        return await run_in_cluster(request, memory, seen or Seen(), (clock or Clock()).time)


def stopped(memory: Memory, **more: Any) -> Stop:  # noqa: ANN401 - passed on
    with pytest.raises(Stop) as caught:
        asyncio.run(run(memory, **more))
    return caught.value


def finished(key: str = "none") -> Finished:
    return asyncio.run(Finished.of(key))


@pytest.mark.parametrize(("key", "result"), [("none", Result.FAIL), ("stable", Result.PASS)])
def test_a_run_ends_with_the_summary_that_its_evidence_comes_to(key: str, result: Result) -> None:
    over = finished(key)
    memory = Memory([None, standing("Running"), standing("Running", judged=1), over.status], evidence=over.evidence)
    seen = Seen()
    archive = asyncio.run(run(memory, seen=seen))
    rules = rules_of(from_fields(archive.document).spec.expect)
    assert summarize(run_of_archive(archive, rules), archive.provenance).result is result
    assert over.status["result"] == result.value
    assert [(count.judged, count.trials) for count in seen.counts] == [(0, 4), (1, 4)]


def test_what_is_applied_is_what_was_written_and_the_namespace() -> None:
    over = finished()
    memory = Memory([over.status], evidence=over.evidence)
    asyncio.run(run(memory))
    assert memory.applied == [
        {
            "apiVersion": "killpoint.dev/v1alpha1",
            "kind": "CrashExperiment",
            "metadata": {"name": NAME, "namespace": "team"},
            "spec": {"matrix": {"setup": ["langgraph"], "kill": [{"at": ["charge.after"]}]}, "trials": 2},
        }
    ]


def test_what_it_waits_for_is_said_once_and_that_it_goes_on() -> None:
    over = finished()
    queued = standing("Queued", message="it waits for others to end")
    away = standing("PaymentsAway", message="payments does not answer", stalled=True)
    memory = Memory([queued, queued, away, away, standing("Running"), over.status], evidence=over.evidence)
    seen = Seen()
    asyncio.run(run(memory, seen=seen))
    assert seen.lines[1:] == [
        "Queued: it waits for others to end",
        "PaymentsAway: payments does not answer",
        "it goes on",
    ]


def test_pods_that_wait_for_the_same_are_told_of_once_however_often_they_are_made() -> None:
    over = finished()
    takes = [
        standing(
            "PodsWaiting", message=f"pod team/take-{take}: image x:1 cannot be had ({state}). The cluster says: {take}"
        )
        for take in (1, 2, 3)
        for state in ("ErrImagePull", "ImagePullBackOff")
    ]
    between = [standing("Running")] * int(GOES_ON_SECONDS - 5)
    other = standing("PodsWaiting", message="pod team/take-4 has no node (2 more wait)")
    fewer = standing("PodsWaiting", message="pod team/take-5 has no node (take 2 of 3) (1 more wait)")
    well = [standing("Running")] * int(GOES_ON_SECONDS + 5)
    told = [*takes[:2], *between, *takes[2:4], *between, *takes[4:], other, fewer, *well, over.status]
    seen = Seen()
    asyncio.run(run(Memory(told, evidence=over.evidence), seen=seen))
    assert seen.lines[1:] == [
        "PodsWaiting: pod team/take-1: image x:1 cannot be had (ErrImagePull). The cluster says: 1",
        "PodsWaiting: pod team/take-4 has no node (2 more wait)",
        "it goes on",
    ]


def test_where_no_operator_accepts_it_the_command_ends_with_the_remedy() -> None:
    clock = Clock()
    stop = stopped(Memory([None]), clock=clock)
    assert stop.code == Exit.NOT_EXECUTED
    assert ACCEPT_SECONDS_MAX < clock.seconds < ACCEPT_SECONDS_MAX + 5
    for words in ("no operator has accepted experiment team/crash-table within 30 s", "kubectl get pods", "delete"):
        assert words in str(stop)


def test_an_api_server_that_is_away_for_a_while_is_waited_for_and_not_for_ever() -> None:
    over = finished()
    memory = Memory([standing("Running"), *[AWAY] * 60, standing("Running"), *[AWAY] * 60, over.status])
    memory.evidence = over.evidence
    assert asyncio.run(run(memory)).over
    clock = Clock()
    stop = stopped(Memory([standing("Running"), AWAY]), clock=clock)
    assert stop.code == Exit.NOT_EXECUTED
    assert OUTAGE_SECONDS_MAX < clock.seconds < OUTAGE_SECONDS_MAX + 5
    assert "The experiment goes on without this command" in str(stop)


def test_silence_is_told_of() -> None:
    over = finished()
    quiet = [standing("Running")] * int(QUIET_SECONDS * 2 + 10)
    seen = Seen()
    asyncio.run(run(Memory([*quiet, over.status], evidence=over.evidence), seen=seen))
    assert [line.split(":")[0] for line in seen.lines[1:]] == ["nothing new for 120 s"] * 2


def test_an_experiment_that_somebody_deletes_or_replaces_is_not_waited_for() -> None:
    for replaced in (False, True):
        memory = Memory([standing("Running")])

        def vanish(memory: Memory = memory, replaced: bool = replaced) -> None:  # noqa: FBT001 - bound to the loop
            if memory.applied:
                memory.object = None
                if replaced:
                    memory.store(memory.applied[0])

        memory.on_get = vanish
        stop = stopped(memory)
        assert (stop.code, str(stop)) == (
            Exit.NOT_EXECUTED,
            "experiment team/crash-table was deleted by somebody else.",
        )


def test_without_the_definition_it_is_said_how_to_install() -> None:
    memory = Memory()
    memory.known = False
    stop = stopped(memory)
    assert stop.code == Exit.NOT_EXECUTED
    assert "helm install" in str(stop)
    assert memory.applied == []


# --- What is there already -------------------------------------------------------------------------------------------


def stored(text: str = TEXT) -> dict[str, Any]:
    """As the API server keeps it: with what it adds, and what it fills in."""
    fields = document(text).model_dump(mode="json", by_alias=True, exclude_none=True)
    return {**fields, "metadata": {**fields["metadata"], "namespace": "team", "generation": 1, "managedFields": []}}


def test_the_same_experiment_that_still_runs_is_waited_for() -> None:
    over = finished()
    memory = Memory([standing("Running", judged=3), over.status], evidence=over.evidence)
    memory.store(stored(), standing("Running", judged=2))
    uid = memory.object and memory.object["metadata"]["uid"]
    asyncio.run(run(memory))
    assert memory.object
    assert memory.object["metadata"]["uid"] == uid


def test_another_experiment_of_that_name_is_left_alone_and_what_differs_is_said() -> None:
    memory = Memory()
    memory.store(stored(TEXT.replace("trials: 2", "trials: 3")), standing("Running"))
    stop = stopped(memory)
    assert stop.code == Exit.INVALID
    assert "is there already, and is another one" in str(stop)
    assert "spec.trials" in str(stop)
    assert "--fresh" in str(stop)
    assert memory.applied == []


def test_one_that_is_over_never_stands_for_a_new_run() -> None:
    over = finished()
    memory = Memory(evidence=over.evidence)
    memory.store(stored(), over.status)
    stop = stopped(memory)
    assert stop.code == Exit.INVALID
    assert "`killpoint report --cluster crash-table --namespace=team` shows its results" in str(stop)
    assert memory.applied == []


@pytest.mark.parametrize(("over", "words"), [(False, "was aborted.\n"), (True, "was aborted, and is over.\n")])
def test_one_that_was_aborted_is_said_to_be_and_is_not_taken_for_another(*, over: bool, words: str) -> None:
    memory = Memory()
    fields = stored()
    memory.store({**fields, "spec": {**fields["spec"], "abort": True}}, finished().status if over else None)
    stop = stopped(memory)
    assert stop.code == Exit.INVALID
    assert str(stop).startswith(f"experiment team/crash-table {words}")
    assert "--fresh deletes" in str(stop)
    assert "spec.abort" not in str(stop)
    assert memory.applied == []


@pytest.mark.parametrize("text", [TEXT, TEXT.replace("trials: 2", "trials: 3")])
def test_fresh_replaces_whatever_is_there(text: str) -> None:
    over = finished()
    memory = Memory([standing("Running"), over.status], evidence=over.evidence)
    memory.store(stored(text), over.status)
    memory.stays = 3
    asyncio.run(run(memory, fresh=True))
    assert memory.object
    assert memory.object["metadata"]["uid"] == "uid-2"


def test_one_that_does_not_go_is_not_waited_for_for_ever() -> None:
    memory = Memory()
    memory.store(stored(), standing("Running"))
    memory.stays = 10_000
    stop = stopped(memory, fresh=True)
    assert stop.code == Exit.NOT_EXECUTED
    assert "an operator has to let it go" in str(stop)


# --- Ends that are no results ----------------------------------------------------------------------------------------


def ended(result: str, *, accepted: str = "True", **more: Any) -> dict[str, Any]:  # noqa: ANN401 - a document
    conditions = [
        {"type": "Accepted", "status": accepted, "reason": "r"},
        {"type": "Complete", "status": "True", "reason": "r"},
    ]
    return {"result": result, "progress": "0/4", "conditions": conditions, "reasons": ["this is why"], **more}


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (ended("Error", accepted="False"), Exit.INVALID, "was not accepted.\nthis is why"),
        (ended("Error"), Exit.NOT_EXECUTED, "could not be run to its end.\nthis is why"),
        (ended("Pass"), Exit.NOT_EXECUTED, "ended with Pass, and its status names no evidence"),
        (
            ended("Pass", report={"location": "/api/v1/namespaces/team/secrets/x", "sha256": "0" * 64}),
            Exit.NOT_EXECUTED,
            "ended with Pass, and its evidence is at no service",
        ),
    ],
)
def test_an_end_without_evidence_is_said_with_its_reason(status: dict[str, Any], code: Exit, words: str) -> None:
    stop = stopped(Memory([status]))
    assert stop.code == code
    assert words in str(stop)


def test_evidence_that_is_not_what_the_status_names_is_not_believed() -> None:
    over = finished()
    stop = stopped(Memory([over.status], evidence=over.evidence.replace(b"charge", b"refund")))
    assert stop.code == Exit.NOT_EXECUTED
    assert "is not the evidence that its status names" in str(stop)


# --- Interrupts ------------------------------------------------------------------------------------------------------


def interrupted(memory: Memory, *, detach: bool = False) -> Stop:
    """Interrupt it at the fifth look."""

    async def scenario() -> Stop:
        task = asyncio.ensure_future(run(memory, detach=detach))
        looks = 0

        def look() -> None:
            nonlocal looks
            looks += 1
            if looks == 5:
                task.cancel()

        memory.on_get = look
        with pytest.raises(Stop) as caught:
            await task
        return caught.value

    return asyncio.run(scenario())


def test_an_interrupt_aborts_the_experiment_and_waits_for_its_end() -> None:
    memory = Memory([standing("Running")])
    stop = interrupted(memory)
    assert (stop.code, memory.aborted) == (Exit.INTERRUPTED, True)
    assert "is aborted, and nothing of it is left running" in str(stop)


def test_an_interrupt_leaves_a_detached_experiment_running() -> None:
    memory = Memory([standing("Running")])
    stop = interrupted(memory, detach=True)
    assert (stop.code, memory.aborted) == (Exit.INTERRUPTED, False)
    assert "goes on" in str(stop)
    assert "kubectl --namespace=team patch crashexperiment crash-table" in str(stop)


def test_an_abort_that_nobody_heeds_is_not_said_to_be_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "ABORT_SECONDS_MAX", 0.05)
    monkeypatch.setattr(running, "POLL_SECONDS", 0.01)
    memory = Memory([standing("Running")])
    memory.operator = False
    stop = interrupted(memory)
    assert (stop.code, memory.aborted) == (Exit.INTERRUPTED, True)
    assert "no operator has done so" in str(stop)


def test_an_abort_that_does_not_arrive_is_not_said_to_be_done(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory([standing("Running")])

    async def away(name: str, uid: str) -> None:  # noqa: ARG001 - as in Experiments
        raise AWAY

    monkeypatch.setattr(memory, "abort", away)
    stop = interrupted(memory)
    assert stop.code == Exit.INTERRUPTED
    assert "was not aborted: the API server does not answer" in str(stop)
    assert "To abort it: kubectl" in str(stop)


def test_what_is_being_applied_when_the_interrupt_comes_is_aborted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory([standing("Running")])
    apply = memory.apply

    async def scenario() -> Stop:
        task = asyncio.ensure_future(run(memory))

        async def slow(document: Any) -> Any:  # noqa: ANN401 - as in Experiments
            task.cancel()
            await asyncio.sleep(0.01)
            return await apply(document)

        monkeypatch.setattr(memory, "apply", slow)
        with pytest.raises(Stop) as caught:
            await task
        return caught.value

    assert asyncio.run(scenario()).code == Exit.INTERRUPTED
    assert (len(memory.applied), memory.aborted) == (1, True)
