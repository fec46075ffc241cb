"""Runs on this machine: which command finds which of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from killpoint.cli import local
from killpoint.cli.app import app, run_command
from killpoint.cli.archive import RunCard, cards, write_card
from killpoint.cli.loading import loaded
from killpoint.cli.local import LocalRun, is_running, run_locally
from killpoint.local.home import Home
from killpoint.local.stack import installed_workloads
from tests.unit.cli.memory import TEXT, Seen


def command(*arguments: str) -> int:
    return run_command(lambda: app([*arguments], standalone_mode=False))


def home_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("KILLPOINT_HOME", str(folder))
    return Home.from_environment({"KILLPOINT_HOME": str(folder)})


def test_a_run_that_is_interrupted_before_it_began_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = home_in(tmp_path / "home", monkeypatch)
    file = tmp_path / "experiment.yaml"
    file.write_text(TEXT)
    found = loaded(file)
    was_running: list[bool] = []

    @asynccontextmanager
    async def interrupted(_options: object) -> AsyncIterator[None]:
        was_running.extend(is_running(home.run(card.run)) for card in cards(home.state / "runs"))
        raise asyncio.CancelledError
        yield

    monkeypatch.setattr(local, "local_stack", interrupted)
    request = LocalRun(
        experiment=found.experiment,
        document=found.document,
        catalog=found.catalog,
        file=file,
        command="",
        home=home,
        workloads=installed_workloads(),
    )
    seen = Seen()
    for _ in range(2):
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(run_locally(request, seen))
    first, second = (line.removeprefix("run ").removeprefix("going on with ") for line in seen.lines)
    assert first == second
    assert was_running == [True, True]
    assert command("status") == 0
    said = capsys.readouterr().out
    assert said.splitlines()[1].split()[5:7] == ["interrupted", "-"]
    assert len(said.splitlines()) == 4
    assert f"An interrupted run goes on with: killpoint run {file}" in said


def test_a_name_that_no_run_has_is_not_taken_for_there_being_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = home_in(tmp_path, monkeypatch)
    assert command("status") == 0
    assert "No runs yet" in capsys.readouterr().out
    card = RunCard(run="0a1b2c3d", experiment="known", digest="", server="", file="f.yaml", started_ms=0, state="ended")
    write_card(home.run(card.run), card)
    assert command("status", "known") == command("status", "0a1b2c3d") == 0
    assert command("status", "unknown") == 2
    assert "there is no run of 'unknown'" in capsys.readouterr().err
