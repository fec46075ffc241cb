from __future__ import annotations

import re
from dataclasses import replace

import pytest

from killpoint.model.cells import Cell, Coordinates
from killpoint.model.findings import Result
from killpoint.model.summary import CellSummary, Expected
from killpoint.report import markdown
from tests.unit.report import builders


@pytest.mark.parametrize("name", sorted(builders.EVERY))
def test_every_row_of_a_table_has_as_many_cells_as_its_head(name: str) -> None:
    lines = [line for line in markdown.render(builders.EVERY[name]()).splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1


def test_the_crash_table_has_a_row_for_each_setup_and_key() -> None:
    lines = markdown.render(builders.crash_table()).splitlines()
    assert "| setup | key | no kill | charge.before | charge.after | charge.recorded |" in lines
    assert "| crewai-persist | none | 11111 = | 11111 = | 22222 = duplicate | 22222 = duplicate |" in lines
    assert sum(line.startswith("|") for line in lines) == 2 + 12


def test_what_others_say_is_neither_markup_nor_a_link() -> None:
    text = markdown.render(builders.hostile())
    plain = re.sub(r"(?<![\\`])(`+) .*? \1(?!`)", "", text)
    assert not re.search(r"(?<!\\)<(?!br>)", plain)
    assert not re.search(r"(?<!\\)\]\(", plain)
    assert "http://" not in plain
    assert "\x1b" not in text


@pytest.mark.parametrize("result", [Result.INCONCLUSIVE, Result.ERROR, Result.FAIL, None])
def test_only_a_pass_says_pass(result: Result | None) -> None:
    assert "Pass" not in markdown.render(replace(builders.inconclusive(), result=result))


def test_it_stays_below_a_mebibyte_and_says_what_is_missing() -> None:
    keys = [f"key-{number}-{'x' * 450}" for number in range(2500)]
    plans = [Cell(coordinates=Coordinates(setup="langgraph", key=key), trials=1) for key in keys]
    cells = [CellSummary(cell=plan, expected=Expected(), trials=(), met=None) for plan in plans]
    text = markdown.render(builders.summary("large", cells, result=Result.INCONCLUSIVE))
    assert len(text.encode()) <= 1024 * 1024
    assert "left out" in text
