from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from killpoint.model.findings import Result, Verdict
from killpoint.model.summary import TrialRecord
from killpoint.report import html, markdown, terminal
from killpoint.report.costs import costs_of, spread
from killpoint.report.grouping import group
from killpoint.report.layout import arrange, row_axes
from killpoint.report.lead import lead_text
from killpoint.report.resends import Resend, resend, resend_words
from killpoint.report.scope import scope_of
from killpoint.report.span import span_of, stretches
from killpoint.report.standing import Mark, Standing, standing
from killpoint.report.words import clock, duration, listing, money, percent, printable
from tests.unit.report import builders
from tests.unit.report.pages import read
from tests.unit.report.telling import STARTED_MS, Story


def test_the_lead_counts_what_happened_and_says_why() -> None:
    assert lead_text(builders.crash_table()) == (
        "49 of 240 trials charged twice, all as expected. "
        "The charge was sent again without a key in 25 trials and sent again under a new key in 24."
    )


@pytest.mark.parametrize(
    ("trials", "met", "words"), [(5, "all as expected", "in each of the 5"), (1, "as expected", "in that one")]
)
def test_the_lead_does_not_say_of_every_trial_what_holds_for_those_that_charged_twice(
    trials: int, met: str, words: str
) -> None:
    cells = [
        builders.cell(setup="langgraph", key="none", kill=kill, trials=trials)
        for kill in (builders.CONTROL_KILL, *builders.KILLS)
    ]
    summary = builders.summary("one-cause", cells)
    said = f"{trials} of {4 * trials} trials charged twice, {met}. The charge was sent again without a key {words}."
    assert lead_text(summary) == said
    assert said in " ".join(terminal.render(summary).split())
    assert said in markdown.render(summary).replace("\n", " ")
    assert said in read(html.render(summary)).text


def test_a_finding_says_of_every_trial_only_what_was_read_of_each() -> None:
    unread = Story(ledger_fault="payments did not answer")
    kill = builders.KILLS[1]
    whole = builders.cell(setup="langgraph", key="none", kill=kill)
    part = builders.cell(setup="langgraph", key="none", kill=kill, stories={2: unread})
    assert resend_words(whole.trials, "charge") == "The charge was sent again without a key in every trial."
    assert resend_words(part.trials, "charge") == "The charge was sent again without a key in 4 trials."


def test_the_lead_of_a_run_that_proves_too_little_begins_with_that() -> None:
    assert lead_text(builders.inconclusive()).startswith("9 of 15 kills confirmed. 7 trials prove nothing.")


def test_the_lead_of_an_error_says_the_error() -> None:
    assert lead_text(builders.nothing_judged()).startswith("No trial was judged. No worker environment")


def test_the_lead_of_a_run_that_goes_on_says_how_far_it_is() -> None:
    assert lead_text(builders.running()).startswith("100 of 240 trials judged so far.")


def test_harm_that_nobody_expected_counts_though_its_kill_is_not_proven() -> None:
    cell = builders.cell(setup="langgraph", kill=builders.KILLS[1], stories={2: Story(killed=False, charges=2)})
    record = cell.trials[1]
    unexpected = TrialRecord(evidence=record.evidence, judgement=record.judgement, met=False)
    assert standing(record) is Standing.INCONCLUSIVE
    assert standing(unexpected) is Standing.UNEXPECTED


def test_cells_are_named_by_the_axes_that_they_span() -> None:
    summary = builders.crash_table()
    names = [scope_of(arrange(summary.cells)).name(one.cells) for one in group(summary)]
    assert names[:3] == [
        "every setup, keys none and fresh, charge.after",
        "crewai-persist, keys none and fresh, charge.recorded",
        "every setup, every key, charge.before",
    ]
    assert "langgraph, llamaindex and crewai-checkpoint, every key, charge.recorded; " in names[3]


def test_cells_that_are_no_product_are_named_in_products() -> None:
    summary = builders.crash_table()
    doubled = [cell for cell in summary.cells if cell.expected.verdicts != (Verdict.EXACTLY_ONCE,)]
    extra = [cell for cell in summary.cells if cell.cell.coordinates.key == "stable"][-1:]
    assert scope_of(arrange(summary.cells)).name([*doubled, *extra]) == (
        "langgraph and llamaindex, keys none and fresh, charge.after; "
        "crewai-persist, keys none and fresh, charge.after and charge.recorded; "
        "crewai-checkpoint, keys none and fresh, charge.after; crewai-checkpoint, key stable, charge.recorded"
    )


def test_findings_hold_every_judged_cell_once_and_pool_its_trials() -> None:
    summary = builders.failing()
    groups = group(summary)
    assert sorted(cell.cell.id for one in groups for cell in one.cells) == sorted(c.cell.id for c in summary.cells)
    assert [one.mark for one in groups[:2]] == [Mark.UNMET, Mark.UNMET]
    expected = next(one for one in groups if one.mark is Mark.MET)
    assert (expected.count, len(expected.records)) == (39, 39)
    assert expected.bounds.low == pytest.approx(0.926, abs=0.001)


def test_only_axes_that_vary_are_shown() -> None:
    assert row_axes(builders.crash_table().cells) == ("key",)
    assert row_axes(builders.all_axes().cells) == ("key", "store", "resume", "durability")


def test_the_control_stands_first() -> None:
    columns = arrange(builders.all_axes().cells).columns
    assert columns[0].is_control
    assert not any(kill.is_control for kill in columns[1:])


def test_the_request_log_says_under_which_key_a_charge_was_sent_again() -> None:
    seen = {
        (cell.cell.coordinates.key, cell.cell.coordinates.kill.name): {resend(r, "charge") for r in cell.trials}
        for cell in builders.crash_table(set_apart=False).cells
        if cell.cell.coordinates.setup == "langgraph"
    }
    assert seen["none", "charge.after"] == {Resend.WITHOUT_KEY}
    assert seen["fresh", "charge.after"] == {Resend.NEW_KEY}
    assert seen["stable", "charge.after"] == {Resend.SAME_KEY}
    assert seen["none", "charge.recorded"] == {Resend.ONCE}


def test_costs_are_medians_of_what_finished() -> None:
    costs = {cost.setup: cost for cost in costs_of(builders.crash_table().cells, "charge")}
    langgraph = costs["langgraph"]
    assert langgraph.normal is not None
    assert langgraph.recovery is not None
    assert langgraph.normal.n == 15
    assert langgraph.recovery.n == 45
    assert langgraph.normal.least <= langgraph.normal.lower <= langgraph.normal.median <= langgraph.normal.most
    assert langgraph.effects == pytest.approx(55 / 45)


def test_costs_of_nothing_are_not_nought() -> None:
    assert spread([]) is None
    assert {cost.normal for cost in costs_of(builders.nothing_judged().cells, "charge")} == {None}


@given(st.lists(st.integers(min_value=0, max_value=10_000_000), min_size=1, max_size=60))
def test_every_moment_is_drawn_in_exactly_one_stretch(moments: list[int]) -> None:
    made = stretches(moments)
    assert len(made) <= 5
    for moment in moments:
        assert any(stretch.holds(moment) for stretch in made)
    assert all(one.end_ms <= other.begin_ms for one, other in itertools.pairwise(made))


def test_a_long_pause_is_cut_out_of_the_time_line() -> None:
    cell = builders.cell(setup="crewai-persist", key="fresh", kill=builders.KILLS[1])
    span = span_of(cell.trials[0].evidence)
    assert span is not None
    assert len(span.stretches) == 2
    drawn = sum(stretch.end_ms - stretch.begin_ms for stretch in span.stretches)
    assert drawn < 500


@given(st.text())
def test_printable_text_has_nothing_that_a_terminal_obeys(text: str) -> None:
    assert all(character.isprintable() or character in "\n\t" for character in printable(text))


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [(812, "812 ms"), (4710, "4.71 s"), (47_100, "47.1 s"), (577_000, "9 min 37 s"), (7_500_000, "2 h 5 min")],
)
def test_durations(milliseconds: int, words: str) -> None:
    assert duration(milliseconds) == words


def test_small_words() -> None:
    assert listing(["a", "b", "c"]) == "a, b and c"
    assert listing([]) == ""
    assert money(4900, "EUR") == "49.00 EUR"
    assert money(4900, "JPY") == "4,900 JPY"
    assert clock(STARTED_MS + 866) == "14:02:11.866"
    assert percent(0.99999) == "99.9 %"
    assert percent(math.nextafter(0, 1)) == "0.1 %"
    assert percent(1.0) == "100.0 %"


def test_results_have_a_lead_without_any_cell() -> None:
    for result in (*Result, None):
        assert isinstance(lead_text(builders.summary("empty", [], result=result)), str)
