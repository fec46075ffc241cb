from __future__ import annotations

import base64
import hashlib
import itertools
import re
from dataclasses import dataclass, replace
from functools import cache

import pytest

from killpoint.model.cells import Kill
from killpoint.model.findings import Result
from killpoint.model.summary import CellSummary, ExperimentSummary
from killpoint.report import html
from killpoint.report.html.styles import STYLES
from killpoint.report.html.timeline import timeline
from killpoint.report.html.trials import DRAWN_MAX, TRIALS_MAX
from tests.unit.report import builders
from tests.unit.report.pages import Page, read
from tests.unit.report.telling import Story

PASS_MARK = 'class="res pass"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A summary, its page, and what a browser makes of it: read once, for all tests."""

    summary: ExperimentSummary
    text: str
    page: Page


@cache
def rendered_as(name: str) -> Rendered:
    summary = builders.EVERY[name]()
    text = html.render(summary)
    return Rendered(summary=summary, text=text, page=read(text))


@pytest.fixture(params=sorted(builders.EVERY))
def rendered(request: pytest.FixtureRequest) -> Rendered:
    return rendered_as(request.param)


def test_every_element_is_closed_where_it_should_be(rendered: Rendered) -> None:
    assert rendered.page.faults == []


def test_ids_are_unique_and_every_link_leads_to_one(rendered: Rendered) -> None:
    page = rendered.page
    assert len(page.ids) == len(set(page.ids))
    assert {link[:1] for link in page.links} == {"#"}
    assert {link[1:] for link in page.links} <= set(page.ids)


def test_nothing_is_loaded_from_outside(rendered: Rendered) -> None:
    text = rendered.text
    assert rendered.page.resources == []
    assert "@import" not in text
    assert "url(" not in text
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & set(rendered.page.tags)


def test_headings_go_down_one_step_at_a_time(rendered: Rendered) -> None:
    headings = rendered.page.headings
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(headings))


def test_every_trial_is_in_the_page_and_can_be_linked_to(rendered: Rendered) -> None:
    summary = rendered.summary
    trials = {f"t-{record.evidence.id}" for cell in summary.cells for record in cell.trials}
    cells = {f"c-{cell.cell.id}" for cell in summary.cells}
    assert trials | cells <= set(rendered.page.ids)


def test_every_trial_with_evidence_has_its_replay_command() -> None:
    summary, text = rendered_as("crash-table").summary, rendered_as("crash-table").page.text
    for cell in summary.cells:
        for record in cell.trials:
            assert f"killpoint replay crash-table {record.evidence.id}" in text


def test_totals_are_the_summary_s(rendered: Rendered) -> None:
    totals, words = rendered.summary.totals, rendered.page.text
    assert f"{totals.kills_confirmed} of {totals.kills_planned}" in words
    assert (
        f"{totals.effects_ordered} ordered, {totals.effects_witnessed} witnessed, "
        f"{totals.effects_duplicate} duplicate, {totals.effects_lost} lost"
    ) in words


def test_the_result_is_shown_as_what_it_is(rendered: Rendered) -> None:
    summary, text = rendered.summary, rendered.text
    assert (PASS_MARK in text) == (summary.result is Result.PASS)
    assert text.count('class="res ') == 1


@pytest.mark.parametrize("result", [Result.INCONCLUSIVE, Result.ERROR, Result.FAIL, None])
def test_only_a_pass_has_a_pass_mark(result: Result | None) -> None:
    text = html.render(replace(builders.inconclusive(), result=result))
    assert PASS_MARK not in text
    assert "Pass" not in read(text).text


def test_a_cell_is_marked_as_met_only_where_it_is_known() -> None:
    summary = builders.inconclusive()
    matrix = html.render(summary).partition('id="matrix"')[2].partition("</table>")[0]
    rows = matrix.partition("<tbody>")[2]
    assert rows.count('class="eq"') == sum(cell.met is True for cell in summary.cells)
    assert rows.count('class="uk"') == sum(cell.met is None for cell in summary.cells)


def test_what_was_not_expected_is_said_at_once_and_shown_in_full() -> None:
    summary, text = rendered_as("failing").summary, rendered_as("failing").text
    lead = read(text.partition('class="lead"')[2].partition("</p>")[0]).text
    assert "59 of 320 trials charged twice." in lead
    assert "10 were not as expected: crewai-persist, key saved-random, charge.after and charge.recorded." in lead
    full = read(text.partition('id="shown"')[2].partition("</section>")[0])
    unmet = [cell for cell in summary.cells if cell.met is False]
    assert [f"t-{cell.cell.id}.1" for cell in unmet] == [one for one in full.ids if one.startswith("t-")]
    assert "SIGKILL at charge.after" in full.text


def test_markup_in_what_others_say_is_text() -> None:
    text, page = rendered_as("hostile").text, rendered_as("hostile").page
    assert page.tags.count("script") == 1
    assert "<script>alert" not in text
    assert builders.HOSTILE.partition("\x1b")[0] in page.text
    assert "\x1b" not in text
    assert "\x00" not in text


def test_the_policy_lets_no_script_run_but_the_page_s_own() -> None:
    text = rendered_as("hostile").text
    script = text.partition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src &#x27;sha256-{digest}&#x27;" in text
    assert "default-src &#x27;none&#x27;" in text


def test_the_published_experiment_fits_into_three_megabytes() -> None:
    assert len(rendered_as("crash-table").text.encode()) < 3_000_000


def test_above_the_limit_the_page_says_what_it_left_out() -> None:
    trials = 43
    cells = [
        builders.cell(setup=setup, key=key, kill=Kill(at=(point,), name=point), trials=trials)
        for setup in builders.SETUPS
        for key in ("none", "stable")
        for point in builders.POINTS
    ]
    text = html.render(builders.summary("large", cells))
    whole = trials * len(cells)
    assert f"{whole - DRAWN_MAX:,} trials have no time line here" in text
    assert f"{whole - TRIALS_MAX:,} are left out with their evidence" in text
    assert len(text.encode()) < 8_000_000


def test_a_trial_that_was_set_apart_keeps_its_reason() -> None:
    words = rendered_as("crash-table").page.text
    assert "Set apart: the framework's own error" in words
    assert builders.WRITER_ERROR in words


def test_a_ledger_that_was_not_read_is_not_an_empty_one() -> None:
    words = rendered_as("inconclusive").page.text
    assert "Not read: payments did not answer within 30 s." in words


def test_where_nothing_was_judged_nothing_is_said_to_be_harmless() -> None:
    words = rendered_as("nothing-judged").page.text
    assert "nothing judged" in words
    assert "no harm" not in words.partition("All verdicts")[0]
    assert "of 0: no harm" not in words


def _wide(*, columns: int, trials: int) -> str:
    kills = [
        Kill(at=("charge.after", f"charge.after#{n}"), name=f"charge.after+charge.after#{n}") for n in range(columns)
    ]
    cells = [builders.cell(setup="langgraph", kill=kill, trials=trials, story=Story(killed=False)) for kill in kills]
    matrix = html.render(builders.summary("wide", cells)).partition('id="matrix"')[2]
    return matrix.partition("</table>")[0]


def test_a_point_s_name_ends_its_line_after_a_dot_and_nowhere_else() -> None:
    head = _wide(columns=8, trials=2).partition("</thead>")[0]
    assert head.count('<span class="pre">charge.</span><wbr>after+<wbr>charge.<wbr>after#') == 8


@pytest.mark.parametrize(
    ("columns", "trials", "classes"),
    [(3, 5, "mx"), (3, 10, "mx wd"), (3, 40, "mx wd"), (9, 5, "mx wd nr"), (9, 10, "mx wd nr bl"), (9, 40, "mx wd nr")],
)
def test_a_matrix_with_many_columns_is_narrow_and_what_does_not_fit_scrolls(
    columns: int, trials: int, classes: str
) -> None:
    matrix = _wide(columns=columns, trials=trials)
    assert f'<table class="{classes}"' in matrix
    assert ('<div class="sc" tabindex="0" role="region" aria-label="Matrix">' in matrix) == (classes != "mx")


def test_on_paper_a_table_that_scrolls_on_a_screen_shows_all_of_itself() -> None:
    widths = [int(re.findall(r'style="--w:(\d+)"', _wide(columns=n, trials=10))[0]) for n in (9, 18)]
    on_paper = STYLES.partition("@media print")[2]
    assert 1060 < 2 * widths[0] - 100 < widths[1] < 2 * widths[0]
    assert ".sc{overflow:visible" in on_paper
    assert ".mx.wd{zoom:min(1,calc(1060/var(--w)))}" in on_paper


def _drawn(cell: CellSummary) -> tuple[float, str]:
    """The width of the first panel of a cell's first trial, in parts of the whole; and the panel."""
    drawing = timeline(cell.trials[0].evidence)
    shares = re.findall(r"([\d.]+)fr", drawing)
    return float(shares[0]) / sum(map(float, shares)), drawing.partition("</svg><div")[0]


def _quick(cell: CellSummary) -> CellSummary:
    """The same, with a first attempt that takes a twentieth of the time: a panel as narrow as they come."""
    record = cell.trials[0]
    first, second = record.evidence.attempts
    assert first.end is not None
    killed = first.end.at_ms

    def moved(at_ms: int) -> int:
        return killed - (killed - at_ms) // 20 if at_ms < killed else at_ms

    points = tuple(replace(p, at_ms=None if p.at_ms is None else moved(p.at_ms)) for p in first.end.points)
    end = replace(first.end, points=points, started_ms=moved(first.end.started_ms or first.intended_ms))
    ledger = record.evidence.ledger
    assert ledger is not None
    effects = tuple(replace(effect, at_ms=moved(effect.at_ms)) for effect in ledger.effects)
    evidence = replace(
        record.evidence,
        attempts=(replace(first, intended_ms=moved(first.intended_ms), end=end), second),
        ledger=replace(ledger, effects=effects, requests=()),
    )
    return replace(cell, trials=(replace(record, evidence=evidence), *cell.trials[1:]))


def test_words_of_a_time_line_stay_in_their_panel_however_narrow_it_is() -> None:
    usual = builders.cell(setup="langgraph", key="none", kill=builders.KILLS[1])
    share, wide = _drawn(usual)
    assert share > 0.3
    assert "SIGKILL at charge.after" in wide
    share, narrow = _drawn(_quick(usual))
    assert share == pytest.approx(0.2, abs=0.02)
    assert ">SIGKILL<" in narrow
    middle, anchor = re.findall(r'<text x="([\d.]+)%"[^>]* text-anchor="(\w+)"><tspan class="b">charge 1', narrow)[0]
    half = len("charge 1 49.00 EUR, no key") * 6.6 / 2 / (share * 996) * 100
    assert anchor == "middle"
    assert half <= float(middle) <= 100 - half


def _luminance(color: str) -> float:
    color = "".join(c * 2 for c in color[1:]) if len(color) == 4 else color[1:]
    parts = [int(color[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1])
def test_words_and_signs_have_enough_contrast(scheme: int) -> None:
    """AA: 4.5 for words, 3 for what is drawn; the first block of colors is the light one, the second the dark one."""
    light, dark = (dict(re.findall(r"--(\w+):(#[0-9a-f]+)", block)) for block in STYLES.split(":root{")[1:3])
    colors = {**light, **(dark if scheme else {})}
    pairs = {(ink, ground) for ink in ("ink", "mu", "al", "gr") for ground in ("bg",)} | {
        ("ink", "fill"),
        ("mu", "fill"),
        ("al", "alb"),
        ("ink", "alb"),
        ("on", "af"),
        ("ink", "st"),
    }
    assert {pair for pair in pairs if _contrast(colors[pair[0]], colors[pair[1]]) < 4.5} == set()
    assert {sign for sign in ("o", "d", "nn", "fo") if _contrast(colors[sign], colors["bg"]) < 3} == set()
