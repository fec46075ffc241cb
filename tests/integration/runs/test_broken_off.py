"""A run that is broken off leaves no process, and the same command goes on: nothing that was judged is run again."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest

from killpoint.model.events import AttemptIntended, RunEnded, TrialJudged
from tests.integration.runs import rig
from tests.integration.runs.rig import GONE_SECONDS_MAX, Command, Ended, Postgres, Running

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TRIALS = 3


def _judged(running: Running) -> int:
    """How many trials are judged, as the progress says."""
    found = re.findall(r"^(\d+) of \d+ trials", running.err, re.MULTILINE)
    return int(found[-1]) if found else 0


def _in_its_midst(command: Command, running: Running, server: Postgres) -> None:
    """Wait until some trials are judged and an attempt is running."""
    running.until(
        lambda: rig.judged(command, server) >= 3 and command.processes("worker.sh"),
        what="some trials judged, and one running",
    )


def assert_undisturbed(ended: Ended) -> None:
    assert ended.code == 0, f"{ended.out[:4000]}\n{ended.err[-3000:]}"
    status = ended.status
    assert status["result"] == "Pass"
    assert status["kills"]["confirmed"] == status["kills"]["planned"] == 6 * TRIALS
    charges = {
        coordinates: {effect["count"]: effect["trials"] for effect in cell["effects"] if effect["action"] == "charge"}
        for coordinates, cell in ended.cells().items()
    }
    expected = {
        ("shell", "volume", key, "continue", kill): {2 if (key, kill) == ("none", "charge.after") else 1: TRIALS}
        for key in ("none", "stable")
        for kill in ("charge.before", "charge.after", "charge.recorded")
    }
    assert {coordinates: charges[coordinates] for coordinates in expected} == expected


def _nothing_judged_is_run_again(server: Postgres, run: str) -> None:
    """But for what was under way when the first command ended, which is run again under another name."""
    judged: set[object] = set()
    for event in server.events(run):
        if isinstance(event, AttemptIntended):
            assert event.attempt.trial not in judged
        elif isinstance(event, TrialJudged):
            assert event.trial not in judged
            judged.add(event.trial)
    assert sum(isinstance(event, RunEnded) for event in server.events(run)) == 1
    retried = [trial for trial in judged if getattr(trial, "retry", 0)]
    assert len(retried) <= 4, "no more than were running at once"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_interrupted_it_leaves_nothing_and_goes_on(
    how: signal.Signals, own_home: Command, postgres: Postgres, tmp_path: Path
) -> None:
    file = rig.shell(tmp_path, f"interrupted-{how.name.lower()}", trials=TRIALS)
    running = own_home.start("run", file, "-o", "json")
    _in_its_midst(own_home, running, postgres)
    running.process.send_signal(how)
    broken_off = running.ended()
    assert broken_off.code == 130
    assert broken_off.out == ""
    assert "interrupted: nothing is left running. The same command goes on from here." in broken_off.err
    assert "Traceback" not in broken_off.err
    assert not own_home.processes()
    listed = own_home("status").out
    assert "  interrupted  " in listed
    assert f"goes on with: killpoint run {file}" in listed

    run = own_home.newest_run().name
    again = own_home("run", file, "-o", "json")
    assert f"going on with {run}" in again.err
    assert own_home.newest_run().name == run
    assert_undisturbed(again)
    _nothing_judged_is_run_again(postgres, run)


def test_killed_nothing_of_it_acts_on_and_it_goes_on(own_home: Command, postgres: Postgres, tmp_path: Path) -> None:
    file = rig.shell(tmp_path, "killed", trials=TRIALS)
    running = own_home.start("run", file, "-o", "json")
    _in_its_midst(own_home, running, postgres)
    running.process.kill()
    assert running.ended().code == -signal.SIGKILL
    rig.eventually(lambda: not own_home.processes(), what="all of it is dead", seconds=GONE_SECONDS_MAX)

    run = own_home.newest_run().name
    again = own_home("run", file, "-o", "json")
    assert f"going on with {run}" in again.err
    assert_undisturbed(again)
    _nothing_judged_is_run_again(postgres, run)


def test_killed_on_its_own_postgres_it_goes_on(command: Command, tmp_path: Path) -> None:
    """The server is left running then: the next command takes it over, and stops it."""
    own = Command(home=command.home / "killed", cache=command.cache, scratch=tmp_path)
    file = rig.shell(tmp_path, "killed-embedded", trials=TRIALS)
    running = own.start("run", file, "-o", "json")
    running.until(lambda: _judged(running) >= 1, what="a trial judged")
    running.process.kill()
    assert running.ended().code == -signal.SIGKILL
    rig.eventually(lambda: not own.processes(), what="all of it is dead", seconds=GONE_SECONDS_MAX)
    assert_undisturbed(own("run", file, "-o", "json"))
    assert not list((own.home / "postgres").glob("data-*/postmaster.pid"))


def test_what_is_finished_is_not_gone_on_with(own_home: Command, tmp_path: Path) -> None:
    """The same command after the end starts a new run."""
    file = rig.shell(tmp_path, "twice")
    runs = []
    for _ in range(2):
        assert own_home("run", file).code == 0
        runs.append(own_home.newest_run().name)
    assert runs[0] != runs[1]
    assert all(json.loads((own_home.runs / run / "run.json").read_text())["state"] == "ended" for run in runs)


def test_two_at_once_do_not_run_the_same_run(own_home: Command, postgres: Postgres, tmp_path: Path) -> None:
    """The second is refused, and the first is none the worse for it."""
    file = rig.shell(tmp_path, "at-once", trials=TRIALS, parallelism=1)
    running = own_home.start("run", file, "-o", "json")
    running.until(lambda: rig.judged(own_home, postgres), what="a trial judged")
    second = own_home("run", file, "-o", "json")
    assert second.code == 3
    assert f"another killpoint is executing this run ({own_home.newest_run()})" in second.err
    assert "payments" not in second.err
    assert "Traceback" not in second.err
    assert_undisturbed(running.ended())
