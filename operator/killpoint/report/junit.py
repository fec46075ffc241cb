"""JUnit XML: one suite a setup, one test a cell.

A test is an expectation, and an expectation is a cell's: it may allow a share of its trials one thing and the rest
another, or some to be set apart, which no single trial can pass or fail. A cell's name is the same in every run, so
that CI can show its history; its trials are in the test's output.

* ``<failure>``: an expectation is violated; with the command that replays a trial.
* ``<error>``: it could not be executed: infrastructure, the worker, the ledger, the judge.
* ``<skipped>``: inconclusive: a point was not reached, a kill not confirmed.

CI takes skipped tests for green. So a suite of its own, named for the experiment, holds one test for the result,
which passes for Pass alone: Fail is a failure, and Inconclusive, Error and a run that is not over are errors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from killpoint.model.findings import Cause, Result, Verdict
from killpoint.model.summary import CellSummary, ExperimentSummary, TrialRecord
from killpoint.report.costs import took
from killpoint.report.effects import effects_text
from killpoint.report.layout import Matrix, arrange, kill_name, row_values
from killpoint.report.lead import lead_text, result_word
from killpoint.report.standing import (
    Mark,
    example,
    expected_words,
    ledger_words,
    mark,
    primary_action,
    replay,
    standing,
    verdict_words,
)
from killpoint.report.words import moment, printable, shorten

SKIPS = frozenset({Cause.NOT_REACHED, Cause.NOT_KILLED, Cause.POINT_FALSE, Cause.POINT_UNKNOWN})
"""Causes that say something of the experiment. The others say that it could not be executed."""
MESSAGE_MAX = 1000
OUTPUT_LINES_MAX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a test is not passed: the element, its type, a line, and more lines."""

    element: str
    type: str
    message: str
    text: str


def render(summary: ExperimentSummary) -> str:
    """An XML document, with its declaration."""
    matrix = arrange(summary.cells)
    root = ET.Element("testsuites", name=printable(summary.name))
    suites = [_result_suite(summary)]
    suites += [_suite(summary, matrix, setup=group.setup, cells=_of(summary, group.setup)) for group in matrix.groups]
    for attribute in ("tests", "failures", "errors", "skipped"):
        root.set(attribute, str(sum(int(suite.get(attribute, "0")) for suite in suites)))
    root.set("time", f"{sum(float(suite.get('time', '0')) for suite in suites):.3f}")
    root.extend(suites)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _of(summary: ExperimentSummary, setup: str) -> tuple[CellSummary, ...]:
    return tuple(cell for cell in summary.cells if cell.cell.coordinates.setup == setup)


def problem_of(summary: ExperimentSummary, cell: CellSummary) -> Problem | None:
    """What keeps a cell's test from passing; None where its expectation is met."""
    seen = f"{verdict_words(cell)} ({effects_text(cell, primary_action(summary))})"
    said = f"expected {expected_words(cell.expected)} ({cell.expected.source}), seen {seen}"
    record = example(cell)
    lines = [*cell.reasons, *([replay(summary, record)] if record is not None else [])]
    match mark(cell):
        case Mark.MET:
            return None
        case Mark.UNMET:
            return _problem("failure", "ExpectationViolated", said, lines)
        case Mark.PENDING:
            return _problem("error", "NotRun", "; ".join(cell.reasons) or "not run to its end", lines)
        case Mark.UNKNOWN:
            causes = causes_of(cell.trials)
            why = "; ".join(cell.reasons) or said
            if causes and causes <= SKIPS:
                return _problem("skipped", "Inconclusive", why, lines)
            return _problem("error", "CouldNotExecute", why, lines)


def causes_of(records: Iterable[TrialRecord]) -> frozenset[Cause]:
    """Why trials are inconclusive."""
    return frozenset(
        finding.cause
        for record in records
        if record.judgement is not None and record.set_apart is None
        for finding in record.judgement.findings
        if finding.verdict is Verdict.INCONCLUSIVE and finding.cause is not None
    )


def _problem(element: str, type_: str, message: str, lines: Iterable[str]) -> Problem:
    line = shorten(" ".join(printable(message).split()), MESSAGE_MAX)
    return Problem(element=element, type=type_, message=line, text=printable("\n".join(lines)))


def _result_suite(summary: ExperimentSummary) -> ET.Element:
    """The experiment's own test: its result. A run that is not over, or that proves too little, is not green."""
    problem = None
    if summary.result is not Result.PASS:
        element = "failure" if summary.result is Result.FAIL else "error"
        problem = _problem(element, result_word(summary.result), lead_text(summary), summary.reasons)
    case = _case(name="result", classname=summary.name, seconds=0.0, problem=problem)
    out = ET.SubElement(case, "system-out")
    kills = f"{summary.totals.kills_confirmed} of {summary.totals.kills_planned} kills confirmed"
    counts = f"{primary_action(summary)}s: {ledger_words(summary)}"
    out.text = printable("\n".join((lead_text(summary), kills, counts)))
    properties = {
        "seed": str(summary.provenance.seed),
        "killpoint": summary.provenance.killpoint,
        "substrate": summary.provenance.substrate,
        "journal": summary.journal,
        "command": summary.provenance.command,
        **dict(summary.provenance.platform),
    }
    return _wrap(summary, name=summary.name, cases=[case], properties=properties)


def _suite(summary: ExperimentSummary, matrix: Matrix, *, setup: str, cells: tuple[CellSummary, ...]) -> ET.Element:
    cases = []
    for cell in cells:
        name = ", ".join((*row_values(cell.cell, matrix.axes), kill_name(cell.cell.coordinates.kill)))
        case = _case(
            name=name,
            classname=f"{summary.name}.{setup}",
            seconds=sum(_seconds(record) for record in cell.trials),
            problem=problem_of(summary, cell),
        )
        if cell.trials:
            ET.SubElement(case, "system-out").text = printable(_output(cell))
        cases.append(case)
    versions = dict(dict(summary.provenance.versions).get(setup, ()))
    return _wrap(summary, name=f"{summary.name}.{setup}", cases=cases, properties=versions)


def _wrap(summary: ExperimentSummary, *, name: str, cases: list[ET.Element], properties: dict[str, str]) -> ET.Element:
    suite = ET.Element(
        "testsuite",
        name=printable(name),
        tests=str(len(cases)),
        failures=str(sum(case.find("failure") is not None for case in cases)),
        errors=str(sum(case.find("error") is not None for case in cases)),
        skipped=str(sum(case.find("skipped") is not None for case in cases)),
        time=f"{sum(float(case.get('time', '0')) for case in cases):.3f}",
        timestamp=moment(summary.provenance.started_ms).strftime("%Y-%m-%dT%H:%M:%S"),
    )
    if properties:
        listed = ET.SubElement(suite, "properties")
        for key, value in properties.items():
            ET.SubElement(listed, "property", name=printable(key), value=printable(value))
    suite.extend(cases)
    return suite


def _case(*, name: str, classname: str, seconds: float, problem: Problem | None) -> ET.Element:
    case = ET.Element("testcase", name=printable(name), classname=printable(classname), time=f"{seconds:.3f}")
    if problem is not None:
        found = ET.SubElement(case, problem.element, message=problem.message)
        found.text = problem.text
        if problem.element != "skipped":
            found.set("type", problem.type)
    return case


def _output(cell: CellSummary) -> str:
    lines = [_line(record) for record in cell.trials[:OUTPUT_LINES_MAX]]
    if len(cell.trials) > OUTPUT_LINES_MAX:
        lines.append(f"and {len(cell.trials) - OUTPUT_LINES_MAX} more trials")
    return "\n".join(lines)


def _line(record: TrialRecord) -> str:
    """``7f31e2c0.3: duplicate, as expected: charge 2, finalize 1``."""
    if record.judgement is None:
        return f"{record.evidence.id}: not judged"
    seen = ", ".join(f"{action} {number}" for action, number in record.judgement.effects) or "ledger not read"
    why = f" ({record.set_apart})" if record.set_apart else ""
    return f"{record.evidence.id}: {record.judgement.verdict}, {standing(record)}{why}: {seen}"


def _seconds(record: TrialRecord) -> float:
    times = (took(attempt) for attempt in record.evidence.attempts)
    return sum(time for time in times if time is not None) / 1000
