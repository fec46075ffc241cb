from __future__ import annotations

import re
from dataclasses import replace

import pytest

from killpoint.model.cells import Kill
from killpoint.model.findings import Result
from killpoint.report import terminal
from tests.unit.report import builders

CRASH_TABLE = """\
crash-table  Pass

key     no kill  charge.before  charge.after       charge.recorded
langgraph                                                           10 duplicate
none    11111 =  11111 =        22222 = duplicate  11111 =
fresh   11111 =  11111 =        22222 = duplicate  11111 =
stable  11111 =  11111 =        11111 =            11111 =
llamaindex                                                          10 duplicate
none    11111 =  11111 =        22222 = duplicate  11111 =
fresh   11111 =  11111 =        22222 = duplicate  11111 =
stable  11111 =  11111 =        11111 =            11111 =
crewai-persist                                                      20 duplicate
none    11111 =  11111 =        22222 = duplicate  22222 = duplicate
fresh   11111 =  11111 =        22222 = duplicate  22222 = duplicate
stable  11111 =  11111 =        11111 =            11111 =
crewai-checkpoint                                                    9 duplicate
none    11111 =  11111 =        22222 = duplicate  x1111 =
fresh   11111 =  11111 =        22x22 = duplicate  11111 =
stable  11111 =  11111 =        1111x =            11111 =

One digit a trial: its charges; x set apart; = as expected; ≠ not as expected;
no word: exactly-once.

Pass: 49 of 240 trials charged twice, all as expected. The charge was sent again
without a key in 25 trials and sent again under a new key in 24.

trials   240 (60 controls): 188 exactly-once, 49 duplicate, 3 set apart
kills    180 of 180 confirmed
charges  237 ordered, 286 witnessed, 49 duplicate, 0 lost
apart    3 × RuntimeError: dictionary changed size during iteration
"""


def test_the_crash_table_reads_as_it_was_published() -> None:
    assert terminal.render(builders.crash_table()) == CRASH_TABLE


@pytest.mark.parametrize("name", sorted(builders.EVERY))
def test_no_line_is_wider_than_eighty_columns_but_commands_to_copy(name: str) -> None:
    lines = terminal.render(builders.EVERY[name]()).splitlines()
    assert [line for line in lines if len(line) > 80 and "killpoint replay" not in line] == []


@pytest.mark.parametrize("name", sorted(builders.EVERY))
def test_color_changes_nothing_but_color(name: str) -> None:
    summary = builders.EVERY[name]()
    colored = terminal.render(summary, color=True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == terminal.render(summary)


def test_without_color_no_control_character_gets_through() -> None:
    assert [c for c in terminal.render(builders.hostile()) if not c.isprintable() and c != "\n"] == []


@pytest.mark.parametrize("result", [Result.INCONCLUSIVE, Result.ERROR, Result.FAIL, None])
def test_only_a_pass_says_pass(result: Result | None) -> None:
    text = terminal.render(replace(builders.inconclusive(), result=result))
    assert "Pass" not in text


def test_a_cell_that_proves_too_little_is_never_marked_as_met() -> None:
    lines = terminal.render(builders.inconclusive()).splitlines()
    row = next(line for line in lines if line.startswith("stable"))
    assert row == "stable  11111 =  11111 =        ????? ? inconclusive  1?1?1 ? exactly-once"


def test_what_is_not_as_expected_comes_with_what_was_expected_and_a_replay() -> None:
    text = terminal.render(builders.failing())
    after = text.partition("Not as expected: 2 cells")[2]
    assert "seen duplicate, expected exactly-once (built-in)" in after
    assert re.search(r"killpoint replay crash-table [0-9a-f]{8}\.1\n", after)


def test_a_matrix_in_several_tables_counts_in_each_what_is_in_it() -> None:
    points = ("charge.after", "prepare.before", "prepare.after", "charge.before", "charge.recorded")
    kills = (builders.CONTROL_KILL, *(Kill(at=(point,), name=point) for point in points))
    cells = [builders.cell(setup="langgraph", key="none", kill=kill, trials=10) for kill in kills]
    lines = terminal.render(builders.summary("wide", cells)).splitlines()
    heads = [line.split() for line in lines if line.startswith("key ")]
    assert ["charge.after" in head for head in heads] == [True, False]
    assert [line.split() for line in lines if line.startswith("langgraph")] == [
        ["langgraph", "10", "duplicate"],
        ["langgraph"],
    ]


def test_totals_are_the_summary_s() -> None:
    summary = builders.failing()
    totals = summary.totals
    text = terminal.render(summary)
    assert f"kills    {totals.kills_confirmed} of {totals.kills_planned} confirmed" in text
    assert (
        f"charges  {totals.effects_ordered} ordered, {totals.effects_witnessed} witnessed, "
        f"{totals.effects_duplicate} duplicate, {totals.effects_lost} lost"
    ) in text
    assert f"{totals.set_apart} set apart" in text


def test_over_ten_trials_a_cell_is_a_histogram() -> None:
    text = terminal.render(builders.many_trials())
    assert "1×16 2×22 ?×2 ? 22 of 38 duplicate" in text


def test_trials_that_were_not_run_are_dots() -> None:
    text = terminal.render(builders.nothing_judged())
    assert "none    ..... …" in text
    assert "= as expected" in text
    assert "11111" not in text


def test_a_kill_s_name_that_does_not_fit_is_cut() -> None:
    long = Kill(at=("charge.after",), name="x" * 200)
    text = terminal.render(builders.summary("long", [builders.cell(setup="langgraph", kill=long)]))
    assert max(len(line) for line in text.splitlines()) == 80


def test_without_cells_there_is_still_a_result() -> None:
    text = terminal.render(builders.summary("empty", [], result=Result.INCONCLUSIVE, reasons=("No cell.",)))
    assert "No cells." in text
    assert "Inconclusive" in text
