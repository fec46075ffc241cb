"""What a run leaves behind can be shown in every form, judged by other expectations, and run again trial by trial."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from killpoint.api.v1alpha1.status import Status
from tests.integration.runs import rig
from tests.integration.runs.rig import Command, Ended

pytestmark = [pytest.mark.integration, pytest.mark.slow]

NAME = "stored"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A run that is over."""

    command: Command
    file: Path
    ended: Ended
    folder: Path

    def cell(self, key: str, kill: str) -> dict[str, Any]:
        return self.ended.cells()["shell", "volume", key, "continue", kill]


@pytest.fixture(scope="module")
def finished(on_dsn: Command, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder = tmp_path_factory.mktemp("stored")
    command = Command(home=folder / "home", cache=on_dsn.cache, scratch=folder, further=on_dsn.further)
    file = rig.shell(folder, NAME)
    ended = command("run", file, "-o", "json", "--report", folder / "report.html")
    assert ended.code == 0, ended.err
    return Finished(command=command, file=file, ended=ended, folder=folder)


def test_the_json_is_the_status_of_the_api(finished: Finished) -> None:
    status = Status.model_validate_json(finished.ended.out)
    assert status.result == "Pass"
    assert len(status.cells) == 8
    # Nothing that the API does not know, and nothing lost on the way.
    assert status.model_dump(mode="json", by_alias=True, exclude_none=True) == finished.ended.status


def test_it_is_reported_in_every_form(finished: Finished) -> None:
    command = finished.command
    assert json.loads(command("report", "-o", "json").out) == finished.ended.status
    assert yaml.safe_load(command("report", NAME, "-o", "yaml").out) == finished.ended.status
    suite = ET.fromstring(command("report", NAME, "-o", "junit").out)  # noqa: S314 - our own
    assert suite.tag == "testsuites"
    assert len(suite.findall(".//testcase")) == 8 + 1, "each cell, and the whole"
    assert "Pass" in command("report", NAME, "-o", "table").out.splitlines()[0]
    assert "| none |" in command("report", NAME, "-o", "markdown").out
    html = command("report", NAME, "-o", "html").out
    assert html.startswith("<!doctype html>")
    assert html.strip() == (finished.folder / "report.html").read_text().strip()


def test_a_report_is_written_to_a_file(finished: Finished) -> None:
    target = finished.folder / "report.md"
    ended = finished.command("report", NAME, "-o", "markdown", "--to", target)
    assert (ended.code, ended.out) == (0, "")
    assert target.read_text().startswith(f"## {NAME}: Pass")


def test_a_report_makes_no_folder_that_nobody_asked_for(finished: Finished) -> None:
    target = finished.folder / "mistyped" / "report.md"
    ended = finished.command("report", NAME, "-o", "markdown", "--to", target)
    assert ended.code == 3
    assert f"{target} cannot be written" in ended.err
    assert not target.parent.exists()


def test_the_evidence_alone_is_enough(finished: Finished) -> None:
    """Moved to another machine, where nothing was ever run."""
    moved = finished.folder / "moved.json"
    moved.write_bytes((finished.command.newest_run() / "evidence.json").read_bytes())
    elsewhere = Command(home=finished.folder / "elsewhere", cache=finished.command.cache, scratch=finished.folder)
    assert json.loads(elsewhere("report", "--evidence", moved, "-o", "json").out) == finished.ended.status
    assert elsewhere("judge", "--evidence", moved, "--expect", finished.file).code == 0


def test_judged_by_the_same_expectations_it_is_the_same(finished: Finished) -> None:
    ended = finished.command("judge", NAME, "--expect", finished.file, "-o", "json")
    assert ended.code == 0
    assert ended.status == finished.ended.status


def test_judged_by_other_expectations_it_fails_where_they_differ(finished: Finished) -> None:
    """Nothing is expected twice there."""
    document = yaml.safe_load(finished.file.read_text())
    document["metadata"]["name"] = "strict"
    document["spec"]["expect"] = []
    ended = finished.command("judge", NAME, "--expect", rig.written(finished.folder, document), "-o", "json")
    assert ended.code == 1
    assert ended.status["result"] == "Fail"
    differing = [coordinates for coordinates, cell in ended.cells().items() if cell["met"] == "False"]
    assert differing == [("shell", "volume", "none", "continue", "charge.after")]


def test_one_trial_is_run_again_with_its_control(finished: Finished) -> None:
    trial = f"{finished.cell('none', 'charge.after')['id']}.1"
    ended = finished.command("replay", NAME, trial, "-o", "json")
    assert ended.code == 0, ended.err
    again = ended.cells()
    assert set(again) == {
        ("shell", "volume", "none", "continue", "none"),
        ("shell", "volume", "none", "continue", "charge.after"),
    }
    cell = again["shell", "volume", "none", "continue", "charge.after"]
    assert cell["effects"] == finished.cell("none", "charge.after")["effects"]
    folder = Path(ended.err.strip().rpartition("the files of the trial are in ")[2])
    assert (folder / "attempts" / f"{trial}.1" / "termination.log").read_text().endswith('{"point":"charge.after"}\n')
    assert (folder / "volumes" / trial / "done").exists()


def test_what_a_finished_run_held_is_freed(finished: Finished) -> None:
    stored = finished.command.runs / finished.ended.status["journalID"]
    assert not list(stored.glob("volumes/*"))
    assert (stored / "evidence.json").stat().st_size > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("report", "never-run"), "there is no finished run of 'never-run'; `killpoint status` lists those there are"),
        (("replay", NAME, "what"), "'what' is no trial: expected an id from the report"),
        (("replay", NAME, "00000000.1"), "the stored run has no trial 00000000.1"),
        (("report", "--evidence", "/nowhere.json"), "/nowhere.json cannot be read"),
        (("report", "--evidence", "/etc/hostname"), "/etc/hostname is no evidence of a run"),
        (("report", NAME, "-o", "pdf"), "'pdf' is not one of"),
        (("report", NAME, "--to", "/dev/null/x"), "/dev/null/x cannot be written"),
    ],
)
def test_what_is_not_there_is_one_sentence(finished: Finished, arguments: tuple[str, ...], words: str) -> None:
    ended = finished.command(*arguments)
    assert ended.code in {2, 3}
    assert words in ended.err
    assert "Traceback" not in ended.err
    assert ended.out == ""
