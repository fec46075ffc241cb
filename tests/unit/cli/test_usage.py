"""Command lines that are wrong: the option is named, and what it may be."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from killpoint.cli.app import app, run_command
from killpoint.cli.cluster.target import Target
from killpoint.cli.exits import Exit, Stop
from killpoint.cli.output import write
from killpoint.cli.progress import Count, PlainShow


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "-o", "jso", "x.yaml"), "Invalid value for '--output' / '-o': 'jso' is not one of 'table', 'json'"),
        (("judge", "x"), "Missing option '--expect'"),
        (("run",), "Missing argument 'file'"),
        (("run", "x.yaml", "--nope"), "No such option: --nope"),
        (("report", "--evidence", "/nope"), "/nope cannot be read: no such file or directory\n"),
    ],
)
def test_what_is_wrong_is_named(arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(lambda: app([*arguments], standalone_mode=False)) == 2
    said = capsys.readouterr().err
    assert words in said
    assert "Value error" not in said
    assert "Errno" not in said


def test_evidence_that_is_no_text_is_said_to_be_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "evidence.json"
    path.write_bytes(b"\xff\xfe")
    assert run_command(lambda: app(["report", "--evidence", str(path)], standalone_mode=False)) == 2
    assert f"{path} is no evidence: it is not UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [("-h",), ("run", "-h"), ("run", "--help")])
def test_help_is_asked_for_in_both_ways(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(lambda: app([*arguments], standalone_mode=False)) == 0
    assert "Usage:" in capsys.readouterr().out


@pytest.mark.parametrize(("kills", "words"), [(0, "0 kills"), (1, "1 kill confirmed"), (2, "2 kills confirmed")])
def test_kills_are_counted_in_words_that_fit(kills: int, words: str) -> None:
    out = io.StringIO()
    PlainShow(Console(file=out)).trials(Count(judged=1, trials=4, kills=kills, retries=0))
    assert f"1 of 4 trials, {words}" in out.getvalue()


def test_a_report_that_cannot_be_written_names_the_command_that_writes_it_again(tmp_path: Path) -> None:
    with pytest.raises(Stop, match="`killpoint report --cluster x --namespace=team` writes it again") as caught:
        write(tmp_path / "none" / "report.html", "", Target(namespace="team").command("report", "x"))
    assert caught.value.code == Exit.NOT_EXECUTED
