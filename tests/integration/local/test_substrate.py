"""Attempts as processes of this machine, with real SIGKILLs."""

from __future__ import annotations

import asyncio
import json
import os
import signal

import pytest

from killpoint.local.errors import ModeNotPossible, RunInUse, WorkerNotStarted
from killpoint.local.launchers import STARTS_MAX
from killpoint.local.processes import identify
from killpoint.local.workers import Mode
from killpoint.model.evidence import EndReason, OutcomeWord
from tests.integration.local import rig

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

both_modes = pytest.mark.parametrize("mode", [Mode.COLD, Mode.FORK])


@both_modes
async def test_an_attempt_that_finishes_says_so(lab: rig.Lab, mode: Mode) -> None:
    async with lab.substrate(mode) as running:
        attempt = rig.attempt_id()
        await running.launch(rig.launch_of(attempt))
        end = (await rig.ended(running, attempt)).end

    assert end is not None
    assert (end.reason, end.exit_code, end.fault) == (EndReason.EXITED, 0, None)
    assert [passed.point for passed in end.points] == ["charge.before", "charge.after"]
    assert end.outcome is not None
    assert end.outcome.word is OutcomeWord.FINISHED
    assert end.started_ms is not None
    assert end.started_ms <= end.at_ms


@both_modes
async def test_an_attempt_that_dies_at_a_point_is_seen_killed_there(lab: rig.Lab, mode: Mode) -> None:
    async with lab.substrate(mode) as running:
        attempt = rig.attempt_id()
        await running.launch(rig.launch_of(attempt, die_at="charge.before"))
        end = (await rig.ended(running, attempt)).end

    assert end is not None
    assert (end.reason, end.exit_code, end.fault) == (EndReason.SIGNALED, 137, None)
    assert [passed.point for passed in end.points] == ["charge.before"]
    assert end.outcome is None


@both_modes
async def test_an_attempt_that_hangs_is_killed_from_outside(lab: rig.Lab, mode: Mode) -> None:
    async with lab.substrate(mode) as running:
        attempt = rig.attempt_id()
        await running.launch(rig.launch_of(attempt, behaviour="hang"))
        alive = await rig.seen(running, attempt, lambda found: found.lines == 3)
        await running.kill(attempt)
        dead = await rig.ended(running, attempt)
        await running.kill(attempt)

    assert alive.end is None
    assert alive.pid is not None
    assert identify(alive.pid) is None
    assert dead.end is not None
    assert (dead.end.reason, dead.end.exit_code) == (EndReason.TIMED_OUT, 137)


async def test_what_is_not_of_the_contract_is_a_fault_in_words(lab: rig.Lab) -> None:
    async with lab.substrate() as running:
        rubbish, silent = rig.attempt_id(1), rig.attempt_id(2)
        await running.launch(rig.launch_of(rubbish, behaviour="rubbish"))
        await running.launch(rig.launch_of(silent, behaviour="silent"))
        ends = {attempt: (await rig.ended(running, attempt)).end for attempt in (rubbish, silent)}

    assert "not JSON: 'this is no JSON'" in _fault(ends[rubbish])
    assert "exit 3 without a line in its termination log" in _fault(ends[silent])
    assert "Traceback: something broke early" in _fault(ends[silent])


async def test_another_attempts_nonce_proves_nothing(lab: rig.Lab) -> None:
    async with lab.substrate() as running:
        attempt = rig.attempt_id()
        await running.launch(rig.launch_of(attempt, behaviour="hang", nonce="mine"))
        await rig.seen(running, attempt, lambda found: found.lines == 3)
        log = lab.run_folder / "attempts" / str(attempt) / "termination.log"
        log.write_text(log.read_text().replace("mine", "another's"))
        await running.kill(attempt)
        end = (await rig.ended(running, attempt)).end

    assert "another attempt's header" in _fault(end)
    assert end is not None
    assert end.points == ()


async def test_a_second_launch_starts_nothing(lab: rig.Lab) -> None:
    async with lab.substrate() as running:
        attempt = rig.attempt_id()
        first = rig.launch_of(attempt)
        await asyncio.gather(running.launch(first), running.launch(first))
        once = await rig.ended(running, attempt)
        await running.launch(rig.launch_of(attempt, behaviour="hang"))
        again = await rig.ended(running, attempt)

    assert again == once
    assert once.lines == 4


async def test_an_unknown_attempt_is_absent(lab: rig.Lab) -> None:
    async with lab.substrate() as running:
        assert await running.observe([rig.attempt_id()]) == {}


async def test_what_a_worker_left_running_dies_with_it(lab: rig.Lab) -> None:
    async with lab.substrate() as running:
        attempt = rig.attempt_id()
        await running.launch(rig.launch_of(attempt, behaviour="leave-a-child"))
        await rig.ended(running, attempt)
        child = int((lab.volume(attempt) / "child").read_text())
        await rig.eventually(lambda: identify(child) is None, what="the child is dead")
        assert identify(child) is None


@both_modes
async def test_an_attempt_has_not_ended_while_something_of_it_lives_in_a_session_of_its_own(
    lab: rig.Lab, mode: Mode
) -> None:
    """Such a process could still charge: a resume that began now would overlap with it."""
    async with lab.substrate(mode=mode) as running:
        attempt = rig.attempt_id()
        await running.launch(rig.launch_of(attempt, behaviour="leave-a-session"))
        await rig.ended(running, attempt)
        child = int((lab.volume(attempt) / "child").read_text())
        assert identify(child) is None


@both_modes
async def test_attempts_of_a_killed_launcher_have_vanished_and_the_next_one_runs(lab: rig.Lab, mode: Mode) -> None:
    async with lab.substrate(mode) as running:
        lost, later = rig.attempt_id(1), rig.attempt_id(2)
        await running.launch(rig.launch_of(lost, behaviour="hang"))
        alive = await rig.seen(running, lost, lambda found: found.lines == 3)
        os.kill(lab.launcher_pid(), signal.SIGKILL)
        vanished = await rig.ended(running, lost)
        await running.launch(rig.launch_of(later))
        end = (await rig.ended(running, later)).end

    assert vanished.end is not None
    assert vanished.end.reason is EndReason.VANISHED
    assert "killed by SIGKILL" in _fault(vanished.end)
    assert [passed.point for passed in vanished.end.points] == ["charge.before", "charge.after"]
    assert alive.pid is not None
    assert identify(alive.pid) is None
    assert end is not None
    assert end.reason is EndReason.EXITED


async def test_a_launcher_that_always_dies_is_given_up(lab: rig.Lab) -> None:
    async with lab.substrate() as running:
        for number in range(1, STARTS_MAX + 1):
            await running.launch(rig.launch_of(rig.attempt_id(number), behaviour="hang"))
            os.kill(lab.launcher_pid(), signal.SIGKILL)
            await rig.ended(running, rig.attempt_id(number))
        attempt = rig.attempt_id(STARTS_MAX + 1)
        await running.launch(rig.launch_of(attempt))
        end = (await rig.ended(running, attempt)).end

    assert end is not None
    assert end.reason is EndReason.NOT_STARTED
    assert "died each time" in _fault(end)


async def test_an_attempt_that_cannot_be_started_is_observed_so(lab: rig.Lab) -> None:
    async with lab.substrate(setup="fake-broken", mode=Mode.COLD) as (running):
        attempt = rig.attempt_id()
        await running.launch(rig.launch_of(attempt, setup="fake-broken"))
        end = (await rig.ended(running, attempt)).end

    assert "No module named fake_worker_that_is_not_there" in _fault(end)


async def test_a_worker_that_cannot_be_imported_is_found_before_the_first_trial(lab: rig.Lab) -> None:
    catalog = rig.forkable(lab.workloads, "fake-broken")
    async with lab.substrate(setup="fake-broken", mode=Mode.FORK, catalog=catalog) as running:
        with pytest.raises(WorkerNotStarted, match="No module named 'fake_worker_that_is_not_there'"):
            await running.warm_up()


async def test_a_setup_that_cannot_be_forked_is_refused_in_fork_mode(lab: rig.Lab) -> None:
    with pytest.raises(ModeNotPossible, match="fake-broken cannot be forked"):
        async with lab.substrate(setup="fake-broken", mode=Mode.FORK):
            pass


async def test_sessions_are_counted_by_attempt_and_end_with_it(lab: rig.Lab) -> None:
    async with lab.substrate() as running:
        attempt, other = rig.attempt_id(1), rig.attempt_id(2)
        await running.launch(rig.launch_of(attempt, behaviour="session", store="postgres"))
        await rig.seen(running, attempt, lambda found: found.lines == 4)
        during = await running.sessions([attempt, other])
        await running.kill(attempt)
        await rig.ended(running, attempt)
        left = 1
        while left:
            left = (await running.sessions([attempt]))[attempt]

    assert during == {attempt: 1, other: 0}
    assert left == 0


@both_modes
async def test_a_worker_sees_nothing_of_the_users_environment(lab: rig.Lab, mode: Mode) -> None:
    user = {**os.environ, "OPENAI_API_KEY": "secret", "KILLPOINT_HOME": "/elsewhere", "PYTHONSTARTUP": "/x.py"}
    async with lab.substrate(mode, user=user) as running:
        attempt = rig.attempt_id()
        await running.launch(rig.launch_of(attempt, behaviour="environment", store="postgres"))
        await rig.ended(running, attempt)
        seen = json.loads((lab.volume(attempt) / "environment").read_text())

    assert not {"OPENAI_API_KEY", "KILLPOINT_HOME", "PYTHONSTARTUP"} & set(seen)
    assert seen["HOME"] == str(lab.run_folder / "attempts" / str(attempt) / "home")
    assert seen["KILLPOINT_TOKEN"] == "a token"
    assert f"application_name={attempt}" in seen["KILLPOINT_DATABASE_URL"]
    assert seen["CREWAI_DISABLE_TELEMETRY"] == "true"


async def test_only_a_worker_that_keeps_state_in_postgres_gets_a_database(lab: rig.Lab) -> None:
    async with lab.substrate() as running:
        attempt = rig.attempt_id()
        await running.launch(rig.launch_of(attempt, behaviour="environment", store="volume"))
        await rig.ended(running, attempt)
        seen = json.loads((lab.volume(attempt) / "environment").read_text())

    assert "KILLPOINT_DATABASE_URL" not in seen


@pytest.mark.parametrize("keep", [False, True])
async def test_volumes_are_freed_unless_they_are_kept(lab: rig.Lab, *, keep: bool) -> None:
    async with lab.substrate(keep=keep) as running:
        attempt = rig.attempt_id()
        await running.launch(rig.launch_of(attempt))
        await rig.ended(running, attempt)
        await running.clean_up([attempt])
        await running.clean_up([attempt])

    assert (lab.volume(attempt)).exists() is keep
    assert (lab.run_folder / "attempts" / str(attempt) / "termination.log").exists()


async def test_a_run_is_executed_by_one_harness_at_a_time(lab: rig.Lab) -> None:
    async with lab.substrate():
        with pytest.raises(RunInUse, match="another killpoint is executing this run"):
            async with lab.substrate():
                pass


async def test_a_later_harness_sees_what_an_earlier_one_saw(lab: rig.Lab) -> None:
    """An attempt that ended is remembered; one that our own end cut off has vanished, whatever killed it."""
    finished, cut_off = rig.attempt_id(1), rig.attempt_id(2)
    async with lab.substrate() as running:
        await running.launch(rig.launch_of(finished, die_at="charge.after"))
        await running.launch(rig.launch_of(cut_off, behaviour="hang"))
        before = await rig.ended(running, finished)
        alive = await rig.seen(running, cut_off, lambda found: found.lines == 3)
    assert alive.pid is not None
    assert identify(alive.pid) is None

    async with lab.substrate() as running:
        await running.launch(rig.launch_of(cut_off))
        after = await running.observe([finished, cut_off])

    assert after[finished] == before
    vanished = after[cut_off].end
    assert vanished is not None
    assert vanished.reason is EndReason.VANISHED
    assert vanished.exit_code is None
    assert [passed.point for passed in vanished.points] == ["charge.before", "charge.after"]


def _fault(end: object) -> str:
    fault = getattr(end, "fault", None)
    assert isinstance(fault, str)
    return fault
