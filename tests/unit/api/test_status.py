from __future__ import annotations

from dataclasses import replace

import pytest

from killpoint.api.status import document_of, status_of
from killpoint.api.v1alpha1.status import BYTES_MAX, Report, Status
from killpoint.model.cells import Cell, Coordinates, Kill
from killpoint.model.findings import Result
from killpoint.model.summary import ExperimentSummary
from tests.unit.report import builders

FALSE, TRUE, UNKNOWN = "False", "True", "Unknown"


def conditions(summary: ExperimentSummary) -> dict[str, str]:
    return {condition.type: condition.status for condition in status_of(summary).conditions}


def large(cells: int) -> ExperimentSummary:
    """A run with many cells whose words and reasons are long; the last one is not as expected."""
    summary = builders.crash_table()
    sample = summary.cells[-1]
    made = [
        replace(
            sample,
            cell=Cell(
                coordinates=Coordinates(
                    setup=f"{'setup-' * 10}{number}",
                    kill=Kill(at=("charge.after",) * 6, name="+".join(["charge.after"] * 6)),
                    parameters=(("durability", "sync"), ("layout", "x" * 60)),
                ),
                trials=5,
            ),
            met=number != cells - 1,
            reasons=("ü" * 2000,) * 9,
        )
        for number in range(cells)
    ]
    return replace(summary, cells=tuple(made), reasons=("because " * 200,) * 50)


def test_the_status_counts_what_the_summary_counts() -> None:
    summary = builders.crash_table()
    status = status_of(summary, generation=7)
    totals = summary.totals
    assert (status.phase, status.result, status.observed_generation) == ("Complete", summary.result, 7)
    assert status.progress == f"{totals.judged}/{totals.trials}"
    assert (status.kills.planned, status.kills.confirmed) == (totals.kills_planned, totals.kills_confirmed)
    assert (status.effects.duplicate, status.effects.lost) == (totals.effects_duplicate, totals.effects_lost)
    assert sum(status.trials.verdicts.values()) == totals.judged - totals.set_apart
    assert len(status.cells) == len(summary.cells)


def test_a_cell_shows_its_effects_as_a_histogram() -> None:
    status = status_of(builders.crash_table())
    cell = next(
        cell
        for cell in status.cells
        if (cell.coordinates["setup"], cell.coordinates["key"], cell.coordinates["kill"])
        == ("langgraph", "none", "charge.after")
    )
    assert [(entry.action, entry.count, entry.trials) for entry in cell.effects if entry.action == "charge"] == [
        ("charge", 2, 5)
    ]
    assert cell.verdicts == {"duplicate": 5}
    assert cell.met == TRUE
    assert cell.milliseconds.recovery is not None
    assert cell.milliseconds.normal is not None


def test_cells_that_are_not_as_expected_come_first_and_have_their_replays() -> None:
    status = status_of(builders.failing())
    assert status.cells[0].met == FALSE
    assert [cell.met for cell in status.cells] == sorted(
        (cell.met for cell in status.cells), key=[FALSE, UNKNOWN, TRUE].index
    )
    assert status.failures[0].replay.startswith("killpoint replay ")
    assert status.failures[0].trial in status.failures[0].replay


@pytest.mark.parametrize("cells", [1, 100, 1000])
def test_a_status_is_never_larger_than_its_limit_and_says_what_it_leaves_out(cells: int) -> None:
    summary = large(cells)
    status = status_of(summary)
    assert len(status.model_dump_json(exclude_none=True).encode()) <= BYTES_MAX
    assert len(status.cells) + status.cells_left_out.cells == cells
    assert status.cells[0].met == FALSE, "the worst is never left out"
    assert status.cells_left_out.unmet == 0
    assert len(status.reasons) == 10


@pytest.mark.parametrize(
    ("result", "passed", "stalled"),
    [
        (Result.PASS, TRUE, FALSE),
        (Result.FAIL, FALSE, FALSE),
        (Result.INCONCLUSIVE, UNKNOWN, FALSE),
        (Result.ERROR, UNKNOWN, TRUE),
    ],
)
def test_complete_is_true_at_every_end_so_that_a_wait_never_hangs(result: Result, passed: str, stalled: str) -> None:
    said = conditions(replace(builders.crash_table(), result=result))
    assert said["Accepted"] == TRUE
    assert said["Complete"] == TRUE
    assert said["Reconciling"] == FALSE
    assert (said["Passed"], said["Stalled"]) == (passed, stalled)


def test_a_run_under_way_is_reconciling_and_has_no_result() -> None:
    summary = builders.running()
    said = conditions(summary)
    assert (said["Complete"], said["Reconciling"], said["Passed"]) == (FALSE, TRUE, UNKNOWN)
    assert "result" not in document_of(status_of(summary))
    assert status_of(summary).phase == "Running"


def test_kills_that_are_missing_at_the_end_are_said_to_be() -> None:
    summary = builders.crash_table()
    fewer = replace(summary, totals=replace(summary.totals, kills_confirmed=summary.totals.kills_planned - 1))
    assert conditions(summary)["FaultConfirmed"] == TRUE
    assert conditions(fewer)["FaultConfirmed"] == FALSE
    assert conditions(replace(fewer, result=None))["FaultConfirmed"] == UNKNOWN


def test_that_none_of_no_kills_is_missing_confirms_none() -> None:
    """Also before the cells at every point are unfolded, when all kills that are known by then may be confirmed."""
    summary = builders.crash_table()
    none = replace(summary, totals=replace(summary.totals, kills_planned=0, kills_confirmed=0))
    assert conditions(none)["FaultConfirmed"] == UNKNOWN
    assert conditions(replace(none, result=None))["FaultConfirmed"] == UNKNOWN
    assert conditions(replace(summary, result=None))["FaultConfirmed"] == UNKNOWN


def test_nothing_judged_and_hostile_words_still_make_a_status() -> None:
    for summary in (builders.nothing_judged(), builders.hostile(), builders.all_axes(), builders.inconclusive()):
        status = status_of(summary)
        assert Status.model_validate_json(status.model_dump_json()) == status


def test_the_document_is_in_kubernetes_spelling_and_without_nulls() -> None:
    report = Report(location="/tmp/report.html", sha256="0" * 64)  # noqa: S108 - a word in a status
    document = document_of(status_of(builders.crash_table(), report=report))
    assert "journalID" in document
    assert "completionTime" in document
    assert "observedGeneration" not in document
    assert str(document["startTime"]).endswith("Z")
    assert document["report"] == {"location": "/tmp/report.html", "sha256": "0" * 64}  # noqa: S108 - likewise
