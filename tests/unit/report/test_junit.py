from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from killpoint.model.findings import Result
from killpoint.report import junit
from tests.unit.report import builders

COUNTS = {"tests", "failures", "errors", "skipped"}


def parse(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314 (what was written a line above)


def check(root: ET.Element) -> None:
    """The rules that the JUnit schemas in use have in common."""
    assert root.tag == "testsuites"
    assert COUNTS | {"time", "name"} <= set(root.attrib)
    for suite in root:
        assert suite.tag == "testsuite"
        assert COUNTS | {"time", "name", "timestamp"} <= set(suite.attrib)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.attrib["timestamp"])
        assert [child.tag for child in suite] == sorted((c.tag for c in suite), key=["properties", "testcase"].index)
        assert sum(child.tag == "properties" for child in suite) <= 1
        cases = suite.findall("testcase")
        for case in cases:
            assert {"name", "classname", "time"} == set(case.attrib)
            tags = [child.tag for child in case]
            assert tags in [[], ["system-out"], *PROBLEMS]
            for problem in (child for child in case if child.tag != "system-out"):
                assert problem.attrib["message"]
                assert ("type" in problem.attrib) == (problem.tag != "skipped")
        seen = Counter(child.tag for case in cases for child in case)
        assert int(suite.attrib["tests"]) == len(cases)
        assert int(suite.attrib["failures"]) == seen["failure"]
        assert int(suite.attrib["errors"]) == seen["error"]
        assert int(suite.attrib["skipped"]) == seen["skipped"]
    for name in COUNTS:
        assert int(root.attrib[name]) == sum(int(suite.attrib[name]) for suite in root)


PROBLEMS = [[one, *more] for one in ("failure", "error", "skipped") for more in ([], ["system-out"])]


@pytest.mark.parametrize("name", sorted(builders.EVERY))
def test_the_document_is_what_ci_systems_accept(name: str) -> None:
    root = parse(junit.render(builders.EVERY[name]()))
    check(root)
    assert root.tag == "testsuites"


@pytest.mark.parametrize("name", sorted(builders.EVERY))
def test_there_is_one_test_a_cell_and_a_failure_for_each_that_is_not_met(name: str) -> None:
    summary = builders.EVERY[name]()
    root = parse(junit.render(summary))
    cells = root.findall("testsuite")[1:]
    assert sum(int(suite.attrib["tests"]) for suite in cells) == len(summary.cells)
    assert sum(int(suite.attrib["failures"]) for suite in cells) == sum(c.met is False for c in summary.cells)
    open_ = sum(int(suite.attrib["errors"]) + int(suite.attrib["skipped"]) for suite in cells)
    assert open_ == sum(cell.met is None for cell in summary.cells)


@pytest.mark.parametrize("result", [Result.INCONCLUSIVE, Result.ERROR, None])
def test_a_run_that_proves_too_little_is_not_green(result: Result | None) -> None:
    """Even where CI takes skipped tests for passed ones."""
    root = parse(junit.render(replace(builders.inconclusive(), result=result)))
    error = root.find("testsuite/testcase[@name='result']/error")
    assert error is not None
    assert error.attrib["type"] == ("Running" if result is None else result.value)


def test_a_pass_is_green() -> None:
    root = parse(junit.render(builders.crash_table()))
    assert [root.attrib[name] for name in ("failures", "errors", "skipped")] == ["0", "0", "0"]


def test_a_point_that_was_not_reached_is_skipped_and_a_ledger_not_read_is_an_error() -> None:
    root = parse(junit.render(builders.inconclusive()))
    assert root.find(".//testcase[@name='stable, charge.after']/skipped") is not None
    assert root.find(".//testcase[@name='stable, charge.recorded']/error") is not None


def test_a_failure_says_what_was_expected_and_how_to_replay_it() -> None:
    failure = parse(junit.render(builders.failing())).find(".//testcase[@name='saved-random, charge.after']/failure")
    assert failure is not None
    assert failure.attrib["message"] == "expected exactly-once (built-in), seen duplicate (22222)"
    assert re.search(r"^killpoint replay crash-table [0-9a-f]{8}\.1$", failure.text or "", re.MULTILINE)


def test_what_xml_forbids_is_spelled_out() -> None:
    text = junit.render(builders.hostile())
    assert "\x1b" not in text
    assert "\\x1b[31m" in text
