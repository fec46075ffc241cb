"""What an experiment's conditions say when it waits, could not be run, or was aborted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from killpoint.api.conditions import Standing
from killpoint.api.status import document_of, status_of
from killpoint.model.findings import Result
from killpoint.model.summary import ExperimentSummary
from tests.unit.report import builders


def running() -> ExperimentSummary:
    return replace(builders.crash_table(), result=None, reasons=())


def told(summary: ExperimentSummary, standing: Standing | None = None) -> dict[str, tuple[str, str]]:
    status = status_of(summary, standing=standing)
    return {condition.type: (condition.status, condition.reason) for condition in status.conditions}


def test_an_experiment_that_waits_is_still_on_its_way() -> None:
    said = told(running(), Standing(reason="Suspended", message="no trial is started (spec.suspend)"))
    assert said["Complete"] == ("False", "Suspended")
    assert said["Reconciling"] == ("True", "Suspended")
    assert said["Stalled"] == ("False", "Suspended")
    assert said["Accepted"] == ("True", "Valid")


def test_an_experiment_that_does_not_get_on_is_stalled_and_no_longer_reconciling() -> None:
    """What kstatus reads first is Reconciling: with both true nobody would ever be told."""
    said = told(running(), Standing(reason="JournalAway", message="the database does not answer", stalled=True))
    assert said["Stalled"] == ("True", "JournalAway")
    assert said["Reconciling"] == ("False", "JournalAway")
    assert said["Complete"] == ("False", "JournalAway")


def test_a_refused_experiment_is_complete_so_that_nobody_waits_for_it() -> None:
    refused = replace(running(), result=Result.ERROR)
    status = status_of(refused, standing=Standing(reason="InvalidSpec", message="spec.trials: …", accepted=False))
    said = {condition.type: condition for condition in status.conditions}
    assert (said["Accepted"].status, said["Accepted"].reason) == ("False", "InvalidSpec")
    assert said["Accepted"].message == "spec.trials: …"
    assert (said["Complete"].status, said["Passed"].status, said["Stalled"].status) == ("True", "Unknown", "True")


@pytest.mark.parametrize(("result", "passed"), [(Result.INCONCLUSIVE, "Unknown"), (Result.FAIL, "False")])
def test_an_aborted_experiment_says_so(result: Result, passed: str) -> None:
    said = told(replace(running(), result=result, aborted=True))
    assert said["Complete"] == ("True", "Aborted")
    assert said["Passed"] == (passed, "Aborted")
    assert said["Stalled"][0] == "False"


def test_a_run_without_a_journal_names_none() -> None:
    assert "journalID" not in document_of(status_of(replace(running(), journal="")))


def messages(summary: ExperimentSummary, standing: Standing | None = None) -> dict[str, str]:
    return {condition.type: condition.message for condition in status_of(summary, standing=standing).conditions}


@pytest.mark.parametrize("result", [None, *Result])
@pytest.mark.parametrize("standing", [None, Standing(reason="Queued", message="it waits for others to end")])
def test_every_condition_says_something_to_those_who_know_nothing(
    result: Result | None, standing: Standing | None
) -> None:
    said = messages(replace(builders.crash_table(), result=result), standing)
    assert [kind for kind, message in said.items() if not message] == []


def test_a_run_that_is_not_at_its_end_says_already_what_is_not_as_expected() -> None:
    first, second, *others = running().cells
    cells = (replace(first, met=False), replace(second, met=False), *(replace(cell, met=True) for cell in others))
    assert messages(replace(running(), cells=cells))["Passed"] == (
        "not known before the end; 2 cells not as expected so far"
    )


def test_an_end_names_its_first_reason_and_how_many_more_there_are() -> None:
    failed = replace(running(), result=Result.FAIL, reasons=("langgraph, none: trial 1.1: lost", "another", "a third"))
    assert messages(failed)["Passed"] == "langgraph, none: trial 1.1: lost (2 more in status.reasons)"
    assert messages(replace(failed, reasons=failed.reasons[:1]))["Passed"] == "langgraph, none: trial 1.1: lost"


def test_kills_that_an_abort_left_out_are_not_called_missing() -> None:
    aborted = replace(running(), result=Result.INCONCLUSIVE, aborted=True)
    totals = replace(aborted.totals, kills_planned=9, kills_confirmed=4)
    assert told(replace(aborted, totals=totals))["FaultConfirmed"] == ("False", "Aborted")


def test_what_it_waits_for_is_not_called_nothing() -> None:
    waits = Standing(reason="PodsWaiting", message="pod a has no node")
    assert messages(running(), waits)["Stalled"] == "pod a has no node"
    assert messages(running())["Stalled"] == "nothing stands in its way"


def test_every_reason_and_every_message_is_one_line() -> None:
    refused = replace(running(), result=Result.ERROR, reasons=("spec.a: no\nspec.b: no",) * 99)
    status = status_of(refused, standing=Standing(reason="InvalidSpec", message="spec.a: no\nspec.b: no", stalled=True))
    assert status.reasons[0] == "spec.a: no / spec.b: no"
    messages = {condition.type: condition.message for condition in status.conditions}
    assert messages["Stalled"] == "spec.a: no / spec.b: no"
    assert [words for words in (*status.reasons, *messages.values()) if "\n" in words] == []
