"""However large an experiment is, its status stays small, shows the worst, and says how much it does not show."""

from __future__ import annotations

import json
from typing import Any

import pytest
from annotated_types import Le

from killpoint.api.conditions import Standing
from killpoint.api.v1alpha1.limits import Limits
from killpoint.api.v1alpha1.status import BYTES_MAX, Report, Status
from killpoint.controller.statuses import carried, status_document, with_times, without_run
from killpoint.controller.subjects import Subject
from killpoint.model.cells import Cell, Coordinates, Kill
from killpoint.model.experiment import Experiment
from killpoint.model.summary import ExperimentSummary
from tests.unit.core.thousands import STARTED_MS, Story, summary_of, told
from tests.unit.engine.world import experiment

TRIALS = 10_000
LIMIT = 102_400
HARM = (Story.STRAY, Story.TWICE, Story.LOST, Story.SILENT, Story.STRANDED)
"""Worst first, as verdicts are ordered."""
WORDS = {
    "plain": "the framework said something long, ",
    "markup": '<a href="x">&amp;</a>\n\t\\',
    "wide": "長い文字列が続く\N{CRAB}",
}
SUBJECT = Subject(namespace="team", name="thousands", uid="u1")
REPORT = Report(location="/api/v1/namespaces/killpoint/services/http:killpoint:evidence/proxy/v1", sha256="0" * 64)


def cells_max() -> int:
    """As many cells as a specification may allow itself."""
    [most] = [bound.le for bound in Limits.model_fields["cells"].metadata if isinstance(bound, Le)]
    assert isinstance(most, int)
    return most


def of(killed: int, *, trials: int, word: str = "w" * 50) -> Experiment:
    """An experiment of so many killed cells, under about the longest words that coordinates may have, and a control."""
    at = ("charge.after",)
    kill = Kill(at=at, name="charge.after")
    cells = [
        Cell(
            coordinates=Coordinates(
                setup="sim",
                key="none",
                kill=kill,
                parameters=tuple((f"{word}-{axis}", f"{word}-{number}") for axis in range(4)),
            ),
            trials=trials,
        )
        for number in range(killed)
    ]
    control = Cell(coordinates=Coordinates(setup="sim", key="none"), trials=2)
    return experiment(cells=(control, *cells))


def written(summary: ExperimentSummary, *, standing: Standing | None = None) -> dict[str, Any]:
    """The status as the operator writes it."""
    document = status_document(summary, generation=1, standing=standing, report=REPORT)
    return with_times(document, document, now_ms=STARTED_MS)


def largest(document: dict[str, Any]) -> int:
    """Its size in the largest of the ways in which it comes by: sent by a client, or stored by the API server."""
    sent = json.dumps(document)
    stored = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&":
        stored = stored.replace(character, f"\\u{ord(character):04x}")
    return max(len(sent.encode()), len(stored.encode()))


def severity(cell: dict[str, Any]) -> tuple[int, int]:
    order = ["phantom", "wrong-payload", "duplicate", "lost", "divergent", "inconclusive", "stranded", "exactly-once"]
    return ["False", "Unknown", "True"].index(cell["met"]), min(order.index(verdict) for verdict in cell["verdicts"])


def assert_adds_up(document: dict[str, Any], summary: ExperimentSummary) -> None:
    """What is shown and what is said to be left out are together what there is."""
    Status.model_validate_json(json.dumps(document))
    shown, left = document["cells"], document["cellsLeftOut"]
    assert len(shown) + left["cells"] == len(summary.cells)
    assert sum(cell["trials"] for cell in shown) + left["trials"] == document["trials"]["planned"]
    for met, name in (("False", "unmet"), ("Unknown", "unknown")):
        there = sum(cell.met is {"False": False, "Unknown": None}[met] for cell in summary.cells)
        assert sum(cell["met"] == met for cell in shown) + left[name] == there
    failed = sum(record.met is False for cell in summary.cells for record in cell.trials)
    assert len(document["failures"]) + document["failuresLeftOut"] == failed
    assert sum(document["trials"]["verdicts"].values()) == document["trials"]["judged"] == document["trials"]["planned"]


def in_turn(cell: Cell, number: int) -> Story:
    """All kinds of harm, and among them trials that are as they should be."""
    return (*HARM, Story.ONCE)[(int(cell.id, 16) + number) % 6]


@pytest.mark.parametrize(
    ("killed", "trials", "words"), [(3, 3333, "wide"), (500, 20, "markup"), (cells_max() - 1, 2, "plain")]
)
def test_the_status_of_ten_thousand_trials_stays_small(killed: int, trials: int, words: str) -> None:
    """chaos-mesh#4076, argo-workflows#1186: objects grew beyond what etcd takes."""
    run = of(killed, trials=trials)
    summary = summary_of(run, told(run, in_turn, words=WORDS[words] * 200))
    assert summary.totals.trials >= TRIALS
    document = written(summary)
    assert largest(document) <= LIMIT == BYTES_MAX
    assert_adds_up(document, summary)
    order = [severity(cell) for cell in document["cells"]]
    assert order == sorted(order)
    assert order[0] == (0, 0), "a phantom is the worst that there is"
    assert document["failures"][0]["verdict"] == "phantom"


def test_the_one_cell_of_thousands_that_is_not_as_expected_is_the_first() -> None:
    """And what only is not known comes before what is well."""
    run = of(cells_max() - 1, trials=1)
    *_, silent, worst = run.cells
    stories = {worst.id: Story.TWICE, silent.id: Story.SILENT}
    summary = summary_of(run, told(run, lambda cell, _: stories.get(cell.id, Story.ONCE)))
    document = written(summary)
    assert [cell["id"] for cell in document["cells"][:2]] == [worst.id, silent.id]
    assert document["cells"][0]["verdicts"] == {"duplicate": 1}
    assert document["cellsLeftOut"]["unmet"] == document["cellsLeftOut"]["unknown"] == 0
    assert_adds_up(document, summary)
    assert largest(document) <= LIMIT


def test_a_cell_with_thousands_of_failures_names_some_and_says_how_many_more_there_are() -> None:
    run = of(1, trials=TRIALS - 2, word="layout")
    summary = summary_of(run, told(run, lambda *_: Story.TWICE))
    document = written(summary)
    [cell] = [cell for cell in document["cells"] if not cell["control"]]
    assert len(cell["reasons"]) == 3
    assert cell["reasons"][-1] == "and 9,996 more"
    assert document["reasons"][0].endswith("; and 9,993 more")
    assert document["failuresLeftOut"] == 9_988
    assert cell["effects"][0] == {"action": "charge", "count": 2, "trials": 9_998}


def test_many_reasons_are_shown_worst_first_and_the_last_line_says_how_many_more_there_are() -> None:
    run = of(499, trials=1, word="layout")
    worst = run.cells[-1]
    summary = summary_of(run, told(run, lambda cell, _: Story.STRAY if cell.id == worst.id else Story.STRANDED))
    reasons = written(summary)["reasons"]
    assert "phantom instead of exactly-once" in reasons[0]
    assert (len(reasons), reasons[-1]) == (10, "and 490 more")


def test_trouble_with_long_words_leaves_no_status_too_large() -> None:
    """An operator that starts while payments is away carries the figures of the status before it."""
    run = of(499, trials=1)
    before = written(summary_of(run, told(run, in_turn)))
    away = Standing(reason="PaymentsAway", message=WORDS["wide"] * 2000, stalled=True)
    after = carried(status_document(without_run(SUBJECT, created_ms=STARTED_MS), generation=1, standing=away), before)
    assert largest(after) <= LIMIT
    assert len(after["cells"]) < len(before["cells"])
    for status in (before, after):
        assert len(status["cells"]) + status["cellsLeftOut"]["cells"] == 500
        assert sum(cell["trials"] for cell in status["cells"]) + status["cellsLeftOut"]["trials"] == 499 + 2
