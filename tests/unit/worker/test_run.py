from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from killpoint_worker import (
    Assignment,
    AssignmentError,
    Claim,
    Context,
    Description,
    Environment,
    Finished,
    Outcome,
    Stopped,
    TerminationLog,
)
from killpoint_worker.run import perform
from tests.unit.worker.test_assignment import DOCUMENT


class Program:
    """A worker program that does as the test says."""

    def __init__(self, execute: Callable[[Context], Outcome]) -> None:
        self._execute = execute

    def describe(self) -> Description:
        return Description(
            worker="program", points=["charge.before"], parameters={"mode": ("a", "b")}, distributions=["pytest"]
        )

    def execute(self, context: Context) -> Outcome:
        return self._execute(context)

    def inspect(self, context: Context) -> Mapping[str, bool]:
        return {"charge": context.assignment.number == 1}


def perform_in(
    folder: Path, action: str, execute: Callable[[Context], Outcome] = lambda _: Finished()
) -> tuple[int, list[dict[str, Any]]]:
    """The exit code and the log's lines."""
    assignment = Assignment.from_json(json.dumps({**DOCUMENT, "action": action}))
    log = TerminationLog(folder / "log", attempt=assignment.attempt, nonce=assignment.nonce)
    code = perform(Program(execute), assignment, Environment(), log)
    return code, [json.loads(line) for line in (folder / "log").read_text().splitlines()]


def test_a_finished_run_says_what_it_claims_and_how_long_it_took(tmp_path: Path) -> None:
    def execute(context: Context) -> Outcome:
        with context.time("checkpoint"):
            context.points.passed("charge.before")
        return Finished(resumed_from="c1", claims=(Claim(action="charge", order="o1", effect="ch_1"),))

    code, lines = perform_in(tmp_path, "resume", execute)
    assert code == 0
    assert lines[0]["nonce"] == DOCUMENT["nonce"]
    assert lines[-1]["outcome"] == "finished"
    assert lines[-1]["resumedFrom"] == "c1"
    assert lines[-1]["claims"] == [{"action": "charge", "order": "o1", "effect": "ch_1"}]
    assert set(lines[-1]["timings"]) == {"run", "checkpoint", "resume"}


def test_a_declared_stop_is_an_outcome_with_exit_0(tmp_path: Path) -> None:
    code, lines = perform_in(tmp_path, "start", lambda _: Stopped(word="dead-lettered"))
    assert (code, lines[-1]["outcome"]) == (0, "dead-lettered")
    assert "resume" not in lines[-1]["timings"]


@pytest.mark.parametrize("error", [KeyError("order"), SystemExit(3), KeyboardInterrupt()])
def test_whatever_ends_an_execution_is_its_outcome(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], error: BaseException
) -> None:
    def execute(_: Context) -> Outcome:
        raise error

    code, lines = perform_in(tmp_path, "start", execute)
    assert code == 1
    assert lines[-1] == {"outcome": "failed", "error": {"class": type(error).__name__, "message": str(error)}}
    assert "Traceback" in capfd.readouterr().err


def test_an_address_that_is_needed_and_missing_is_named(tmp_path: Path) -> None:
    def execute(context: Context) -> Outcome:
        context.require_database_url()
        return Finished()

    code, lines = perform_in(tmp_path, "start", execute)
    assert code == 1
    assert lines[-1]["error"]["class"] == AssignmentError.__name__
    assert "KILLPOINT_DATABASE_URL" in lines[-1]["error"]["message"]


def test_inspect_runs_nothing_of_the_workflow(tmp_path: Path) -> None:
    def execute(_: Context) -> Outcome:
        raise AssertionError("executed")

    code, lines = perform_in(tmp_path, "inspect", execute)
    assert (code, lines[-1]) == (0, {"outcome": "inspected", "recorded": {"charge": True}})


def test_describe_reports_the_versions_that_are_installed(tmp_path: Path) -> None:
    code, lines = perform_in(tmp_path, "describe")
    assert code == 0
    assert lines[-1]["versions"] == {"pytest": pytest.__version__}
    assert lines[-1]["parameters"] == {"mode": ["a", "b"]}
