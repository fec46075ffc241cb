"""The harness itself is killed: nothing of it acts on, and the next one sees what was in flight as vanished."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from killpoint.local.processes import Process, at_home_below, identify, is_alive, kill_session
from killpoint.local.workers import Mode
from killpoint.model.evidence import EndReason
from tests.integration.local import rig

pytestmark = pytest.mark.integration

HARNESS = """
    import asyncio, sys
    from pathlib import Path
    from killpoint.local.home import Home
    from killpoint.databases.server import given_postgres
    from killpoint.local.workers import Mode
    from killpoint.local.workloads import Workloads
    from tests.integration.local import rig

    async def main():
        dsn, state, cache, workloads, journal, mode = sys.argv[1:]
        home = Home(state=Path(state), cache=Path(cache))
        server = await given_postgres(dsn)
        lab = rig.Lab(server=server, home=home, workloads=Workloads(folder=Path(workloads)), journal=journal)
        async with lab.substrate(Mode(mode)) as running:
            for number in (1, 2):
                await running.launch(rig.launch_of(rig.attempt_id(number), behaviour="hang"))
                await rig.seen(running, rig.attempt_id(number), lambda found: found.lines == 3)
            print("in flight", flush=True)
            await asyncio.sleep(60)

    asyncio.run(main())
"""


@pytest.mark.anyio
@pytest.mark.parametrize("mode", [Mode.COLD, Mode.FORK])
async def test_a_killed_harness_leaves_no_process_and_the_next_one_goes_on(lab: rig.Lab, mode: Mode) -> None:
    await asyncio.to_thread(_harness_killed, lab, mode)
    processes = _written_down(lab.run_folder)
    assert len(processes) == 3
    await rig.eventually(
        lambda: not any(map(is_alive, processes)) and not at_home_below(lab.run_folder), what="all of it is dead"
    )

    async with lab.substrate(mode) as running:
        lost = [rig.attempt_id(number) for number in (1, 2)]
        await running.launch(rig.launch_of(lost[0]))
        observed = await running.observe(lost)
        sessions = await running.sessions(lost)
        again = rig.attempt_id(1, trial=2)
        await running.launch(rig.launch_of(again))
        end = (await rig.ended(running, again)).end

    for attempt in lost:
        vanished = observed[attempt].end
        assert vanished is not None
        assert vanished.reason is EndReason.VANISHED
        assert [passed.point for passed in vanished.points] == ["charge.before", "charge.after"]
        assert vanished.fault == "the harness that had started it ended before it did"
    assert sessions == dict.fromkeys(lost, 0)
    assert end is not None
    assert end.reason is EndReason.EXITED


@pytest.mark.anyio
async def test_what_outlived_a_killed_harness_is_killed_before_anything_is_observed(lab: rig.Lab) -> None:
    """Where the system does not end a dead harness's children, they are ended by the next one."""
    written = _outliving(lab, "7f31e2c0.1.1", home_folder=Path("/"))
    unwritten = _outliving(lab, "7f31e2c0.1.2", home_folder=lab.run_folder / "attempts" / "7f31e2c0.1.2" / "home")
    process = identify(written.pid)
    assert process is not None
    (lab.run_folder / "attempts" / "7f31e2c0.1.1" / "launched").write_text(
        json.dumps({"nonce": "n", "started_ms": 1, "process": {"pid": process.pid, "birth": process.birth}})
    )
    try:
        async with lab.substrate() as running:
            assert (written.wait(timeout=1), unwritten.wait(timeout=1)) == (-signal.SIGKILL, -signal.SIGKILL)
            observed = await running.observe([rig.attempt_id(1), rig.attempt_id(2)])
    finally:
        for left in (written, unwritten):
            left.kill()
            left.wait()

    assert {seen.end.reason for seen in observed.values() if seen.end} == {EndReason.VANISHED}
    assert len(observed) == 2


def test_a_pid_that_was_given_to_another_process_is_left_alone() -> None:
    bystander = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        kill_session(Process(pid=bystander.pid, birth="another boot: 1"))
        assert bystander.poll() is None
        itself = identify(bystander.pid)
        assert itself is not None
        kill_session(itself)
        assert bystander.wait(timeout=10) == -signal.SIGKILL
    finally:
        bystander.kill()
        bystander.wait()


def _harness_killed(lab: rig.Lab, mode: Mode) -> None:
    """Another process runs attempts, and is killed while they are in flight."""
    arguments = (
        lab.server.admin, str(lab.home.state), str(lab.home.cache), str(lab.workloads.folder), lab.journal, mode.value
    )  # fmt: skip
    harness = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HARNESS), *arguments], stdout=subprocess.PIPE, text=True, cwd=rig.ROOT
    )
    assert harness.stdout is not None
    said = harness.stdout.readline()
    harness.send_signal(signal.SIGKILL)
    harness.wait()
    harness.stdout.close()
    assert said == "in flight\n"


def _written_down(run_folder: Path) -> list[Process]:
    """The launcher and the attempts, as the killed harness wrote them down."""
    files = [*run_folder.glob("launchers/*/process.json"), *run_folder.glob("attempts/*/launched")]
    documents = [json.loads(file.read_text()) for file in files]
    return [Process(**document.get("process", document)) for document in documents]


def _outliving(lab: rig.Lab, attempt: str, *, home_folder: Path) -> subprocess.Popen[bytes]:
    """A process as an attempt of a killed harness would be, if nobody had ended it."""
    folder = lab.run_folder / "attempts" / attempt
    (folder / "home").mkdir(parents=True)
    return subprocess.Popen(["sleep", "60"], start_new_session=True, cwd=folder, env={"HOME": str(home_folder)})
