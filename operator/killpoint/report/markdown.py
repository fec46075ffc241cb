"""The matrix as Markdown: for a README, a pull request, a CI job's summary (which takes 1 MiB)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from killpoint.model.findings import Verdict
from killpoint.model.summary import CellSummary, ExperimentSummary
from killpoint.report.effects import DIGITS_MAX, effects_text
from killpoint.report.layout import Matrix, arrange, cell_name, kill_name
from killpoint.report.lead import lead_text, result_word
from killpoint.report.standing import (
    Mark,
    Standing,
    example,
    expected_words,
    ledger_words,
    mark,
    notes,
    other_reasons,
    primary_action,
    replay,
    standing,
    verdict_words,
)
from killpoint.report.words import count, duration, minute, printable, shorten

BYTES_MAX = 1024 * 1024
TABLE_BYTES_MAX = 700 * 1024
CELLS_MAX = 50
TRIALS_MAX = 50
TEXT_MAX = 500

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~#])")


def render(summary: ExperimentSummary) -> str:
    """The result, the matrix, what is not as expected with the commands to replay it, and where it comes from."""
    matrix = arrange(summary.cells)
    parts = [
        f"## {_text(summary.name)}: {result_word(summary.result)}",
        _text(lead_text(summary), TEXT_MAX * 4),
        *_bullets(_text(reason) for reason in other_reasons(summary)[:CELLS_MAX]),
        "\n".join(_table(summary, matrix)),
        _legend(summary),
        "\n".join(_totals(summary)),
        *_cells(summary, matrix, Mark.UNMET, "Not as expected"),
        *_cells(summary, matrix, Mark.UNKNOWN, "Not known"),
        *_apart(summary, matrix),
        _provenance(summary),
    ]
    return _fitting("\n\n".join(part for part in parts if part) + "\n")


def _text(words: str, most: int = TEXT_MAX) -> str:
    """Words that Markdown and HTML take for nothing but words, on one line."""
    line = " ".join(shorten(printable(words), most).split())
    # An address must not become a link: it was said by a worker, not by us.
    return _SPECIAL.sub(r"\\\1", line.replace("&", "&amp;")).replace("://", "&#58;//")


def _code(words: str) -> str:
    """Words as code, in a fence longer than any that is in them."""
    longest = max((len(run) for run in re.findall("`+", words)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{fence}{pad}{' '.join(printable(words).split())}{pad}{fence}"


def _table(summary: ExperimentSummary, matrix: Matrix) -> Iterator[str]:
    action = primary_action(summary)
    heads = ["setup", *matrix.axes, *(kill_name(kill) for kill in matrix.columns)]
    yield _line(_text(head) for head in heads)
    yield _line("---" for _ in heads)
    used, left_out = 0, 0
    for group in matrix.groups:
        for number, row in enumerate(group.rows):
            cells = ("<br>".join(_cell(cell, action) for cell in slot) for slot in row.slots)
            # A setup is named once, as in the other tables: on its first row.
            setup = _text(group.setup) if number == 0 else ""
            line = _line([setup, *(_text(value) for value in row.values), *cells])
            used += len(line.encode())
            if used > TABLE_BYTES_MAX:
                left_out += 1
            else:
                yield line
    if left_out:
        yield ""
        yield f"{count(left_out, 'row')} left out."


def _line(values: Iterable[str]) -> str:
    return f"| {' | '.join(values)} |"


def _cell(cell: CellSummary, action: str) -> str:
    said = mark(cell)
    verdict = verdict_words(cell)
    quiet = said is Mark.PENDING or (said is Mark.MET and verdict == Verdict.EXACTLY_ONCE)
    words = ", ".join(part for part in ("" if quiet else verdict, *notes(cell)) if part)
    unmet = f", **expected {_text(expected_words(cell.expected))}**" if said is Mark.UNMET else ""
    return f"{effects_text(cell, action)} {said.value} {words}".strip() + unmet


def _legend(summary: ExperimentSummary) -> str:
    action = primary_action(summary)
    many = any(cell.cell.trials > DIGITS_MAX for cell in summary.cells)
    how = f"{action}s × trials" if many else f"One digit a trial: its {action}s"
    marks = "x set apart, ? inconclusive, = as expected, ≠ not as expected, … not yet"
    return f"{how}; {marks}; no word: exactly-once."


def _totals(summary: ExperimentSummary) -> Iterator[str]:
    totals = summary.totals
    verdicts = [f"{number:,} {v}" for v, number in sorted(totals.verdicts, key=lambda item: item[0].severity)]
    verdicts += [f"{totals.set_apart:,} set apart"] if totals.set_apart else []
    pending = totals.trials - totals.judged
    verdicts += [f"{pending:,} not judged"] if pending else []
    yield f"- Trials: {totals.trials:,}, {totals.controls:,} of them controls: {', '.join(verdicts)}"
    yield f"- Kills: {totals.kills_confirmed:,} of {totals.kills_planned:,} confirmed"
    yield f"- {_text(primary_action(summary).capitalize())}s: {ledger_words(summary)}"


def _cells(summary: ExperimentSummary, matrix: Matrix, mark_: Mark, title: str) -> list[str]:
    cells = [cell for cell in summary.cells if mark(cell) is mark_]
    if not cells:
        return []
    items = []
    for cell in cells[:CELLS_MAX]:
        seen = f"seen {verdict_words(cell)}, expected {expected_words(cell.expected)} ({cell.expected.source})"
        record = example(cell)
        again = f" {_code(replay(summary, record))}" if record is not None else ""
        why = f" {_text('; '.join(cell.reasons))}." if cell.reasons else ""
        items.append(f"**{_text(cell_name(cell.cell, matrix.axes))}**: {_text(seen)}.{why}{again}")
    if len(cells) > CELLS_MAX:
        items.append(f"and {count(len(cells) - CELLS_MAX, 'more cell')}")
    return [f"### {title}: {count(len(cells), 'cell')}", *_bullets(items)]


def _apart(summary: ExperimentSummary, matrix: Matrix) -> list[str]:
    """Trials that were set apart, with the framework's own words."""
    found = [(cell, r) for cell in summary.cells for r in cell.trials if standing(r) is Standing.SET_APART]
    if not found:
        return []
    items = [
        f"{record.evidence.id} ({_text(cell_name(cell.cell, matrix.axes))}): {_text(record.set_apart or '')}"
        for cell, record in found[:TRIALS_MAX]
    ]
    if len(found) > TRIALS_MAX:
        items.append(f"and {count(len(found) - TRIALS_MAX, 'more trial')}")
    return [f"### Set apart: {count(len(found), 'trial')}", *_bullets(items)]


def _bullets(items: Iterable[str]) -> list[str]:
    lines = [f"- {item}" for item in items]
    return ["\n".join(lines)] if lines else []


def _provenance(summary: ExperimentSummary) -> str:
    provenance = summary.provenance
    pairs = dict.fromkeys(pair for _, listed in provenance.versions for pair in listed)
    versions = ", ".join(f"{name} {version}" for name, version in (*pairs, ("killpoint", provenance.killpoint)))
    took = "" if provenance.ended_ms is None else f", took {duration(provenance.ended_ms - provenance.started_ms)}"
    when = f"{minute(provenance.started_ms)}{took}; seed {provenance.seed}; {provenance.substrate}"
    return f"{_text(when)}. {_text(versions)}.\n\n{_code(provenance.command)}"


def _fitting(text: str) -> str:
    """A document of at most 1 MiB: cut at a line, and said to be."""
    if len(text.encode()) <= BYTES_MAX:
        return text
    said = "\n\nCut here to stay below 1 MiB.\n"
    kept = text.encode()[: BYTES_MAX - len(said.encode())].decode(errors="ignore")
    return kept[: kept.rfind("\n")] + said
