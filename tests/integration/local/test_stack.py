"""The whole stack, as the command line starts it: one trial of a real worker, and what is left after each way out."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from killpoint.databases.server import connect
from killpoint.local.errors import LocalError, WorkloadsError
from killpoint.local.home import Home
from killpoint.local.processes import at_home_below
from killpoint.local.progress import Progress, Stage
from killpoint.local.stack import LocalStack, StackOptions, installed_workloads, local_journal, local_stack
from killpoint.model.catalog import Catalog
from killpoint.model.cells import AttemptId
from killpoint.model.evidence import AttemptEnd
from killpoint.model.tokens import mint_token
from tests.integration.local import rig

pytestmark = [pytest.mark.anyio, pytest.mark.integration, pytest.mark.slow]


@pytest.fixture
def options(journal: str) -> Iterator[StackOptions]:
    """A home for one test; environments are kept, as they are for people."""
    with rig.new_home() as home:
        yield StackOptions(
            home=Home(state=home.state, cache=Home.from_environment(os.environ).cache),
            workloads=installed_workloads(),
            journal=journal,
            setups=frozenset({"shell"}),
            user=os.environ,
            parallelism=1,
        )


async def test_a_worker_that_was_killed_after_its_charge_charges_again_without_a_key(options: StackOptions) -> None:
    told: list[Progress] = []
    async with local_stack(replace(options, report=told.append)) as stack:
        killed = await _attempt(stack, 1, die_at="charge.after")
        finished = await _attempt(stack, 2)
        view = (await stack.ledger.view(["run-1"]))["run-1"]
        before = await _databases(stack)
        await stack.free()
        after = await _databases(stack)

    assert (killed.exit_code, finished.exit_code) == (137, 0)
    assert [effect.action for effect in view.effects] == ["charge", "charge", "finalize"]
    assert {request.attempt for request in view.requests} == {"7f31e2c0.1.1", "7f31e2c0.1.2"}
    assert {progress.stage for progress in told if progress.done} >= {Stage.POSTGRES, Stage.PAYMENTS, Stage.WORKERS}
    assert len(before) == len(after) + 1
    assert at_home_below(options.home.state) == ()


async def test_a_cancelled_stack_leaves_no_process(options: StackOptions) -> None:
    started = asyncio.Event()

    async def run() -> None:
        async with local_stack(options):
            started.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(run())
    await started.wait()
    during = at_home_below(options.home.state)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert len(during) >= 3
    assert at_home_below(options.home.state) == ()


async def test_the_journal_is_reached_while_a_run_goes_on_and_after_it(options: StackOptions) -> None:
    async with local_stack(options) as stack:
        async with await connect(stack.journal_dsn) as connection:
            await connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        async with local_journal(options.home, None) as dsn:
            assert dsn == stack.journal_dsn
    async with local_journal(options.home, None) as dsn, await connect(dsn) as connection:
        cursor = await connection.execute("SELECT answer FROM kept")
        assert await cursor.fetchone() == (42,)


async def test_the_users_own_worker_runs_with_the_users_programs(options: StackOptions, tmp_path: Path) -> None:
    (tmp_path / "mine.sh").write_text("env > $KILLPOINT_VOLUME/environment; exit 7\n")
    (shell,) = (setup for setup in options.workloads.catalog() if setup.name == "shell")
    own: Catalog = (replace(shell, name="mine", project="", command=("sh", "mine.sh")),)
    user = {**os.environ, "PATH": f"/mine:{os.environ['PATH']}", "SECRET": "word"}
    async with local_stack(
        replace(options, setups=frozenset({"mine"}), catalog=own, own_folder=tmp_path, user=user)
    ) as stack:
        end = await _attempt(stack, 1, setup="mine")
        seen = (stack.run.folder / "volumes" / "7f31e2c0.1" / "environment").read_text().splitlines()

    assert end.exit_code == 7
    assert f"PATH=/mine:{os.environ['PATH']}" in seen
    assert not any(line.startswith("SECRET=") for line in seen)


async def test_a_setup_that_no_workload_has_is_refused_before_anything_is_started(options: StackOptions) -> None:
    with pytest.raises(WorkloadsError, match="has a setup 'unheard-of'") as refused:
        async with local_stack(replace(options, setups=frozenset({"unheard-of"}))):
            pass
    assert "shell" in refused.value.remedy
    assert not options.home.state.exists()


async def test_a_home_that_cannot_be_written_is_said_in_words(options: StackOptions, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(LocalError, match="file"):
        async with local_stack(replace(options, home=replace(options.home, state=file / "state"))):
            pass


async def _attempt(stack: LocalStack, number: int, *, die_at: str | None = None, setup: str = "shell") -> AttemptEnd:
    """Run one attempt of a trial to its end."""
    attempt: AttemptId = rig.attempt_id(number)
    launch = rig.launch_of(attempt, die_at=die_at, setup=setup)
    token = mint_token(stack.signing_key, experiment="test", tenant="tenant-1", run="run-1", attempt=str(attempt))
    action = "start" if number == 1 else "resume"
    await stack.substrate.launch(replace(launch, token=token, assignment={**launch.assignment, "action": action}))
    end = (await rig.ended(stack.substrate, attempt)).end
    assert end is not None
    return end


async def _databases(stack: LocalStack) -> list[object]:
    async with await connect(stack.server.admin) as connection:
        cursor = await connection.execute("SELECT datname FROM pg_database ORDER BY 1")
        return list(await cursor.fetchall())
