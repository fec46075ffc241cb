"""A trial in full: what is judged of it, its time line, the evidence in words, the ledger, how to run it again."""

from __future__ import annotations

from killpoint.model.evidence import Effect, Request, TrialEvidence
from killpoint.model.findings import Verdict
from killpoint.model.summary import CellSummary, ExperimentSummary, TrialRecord
from killpoint.report.chronicle import attempt_name, origin_of, tell
from killpoint.report.html.glyphs import shape, shape_of
from killpoint.report.html.markup import NOTHING, Html, code, command, el, hidden, table
from killpoint.report.html.timeline import timeline
from killpoint.report.standing import Standing, expected_words, replay, standing
from killpoint.report.words import clock, count, day, duration, money, shorten, since

KEY_CHARACTERS = 16
ID_CHARACTERS = 12
"""The whole id stands in the evidence beside the table."""
ROWS_MAX = 60
"""Rows of a ledger or a request log that are shown."""


def body(summary: ExperimentSummary, cell: CellSummary, record: TrialRecord, *, drawn: bool = True) -> Html:
    """All of a trial but its heading."""
    evidence = record.evidence
    left = el("div", el("h4", "Evidence"), _evidence(evidence))
    right = el(
        "div",
        el("h4", "Ledger, as payments saw it"),
        _ledger(evidence),
        _requests(evidence),
        el("h4", "Replay"),
        command(replay(summary, record)),
    )
    picture = timeline(evidence) if drawn else NOTHING
    return Html(_verdict(cell, record) + _findings(record) + picture + el("div", left, right, cls="cols"))


def title(record: TrialRecord) -> str:
    """``7f31e2c0.3: duplicate``."""
    return f"{record.evidence.id}: {verdict_of(record)}"


def verdict_of(record: TrialRecord) -> str:
    if record.judgement is None:
        return Standing.PENDING.value
    apart = " (set apart)" if record.set_apart is not None else ""
    return record.judgement.verdict.value + apart


def _verdict(cell: CellSummary, record: TrialRecord) -> Html:
    said = standing(record)
    judged = el("span", shape(shape_of(record)), el("b", verdict_of(record)))
    expected = f"expected {expected_words(cell.expected)}"
    rule = f" ({'the built-in rule' if cell.expected.source == 'built-in' else cell.expected.source})"
    if said is Standing.UNEXPECTED:
        met = el(
            "span",
            el("i", "≠", cls="ne", aria_hidden="true"),
            hidden("not as expected: "),
            el("b", expected, cls="al"),
            rule,
        )
    elif said is Standing.EXPECTED:
        met = el("span", el("i", "=", cls="eq", aria_hidden="true"), f"as expected{rule}", cls="mu")
    else:
        met = el("span", expected, rule, cls="mu")
    retries = el("span", f"{count(record.retries, 'earlier take')} spoiled", cls="mu") if record.retries else NOTHING
    return el("p", judged, met, retries, cls="tv")


def _findings(record: TrialRecord) -> Html:
    if record.judgement is None:
        return NOTHING
    items = [
        el("li", el("b", finding.verdict.value), ": ", finding.reason)
        for finding in record.judgement.findings
        if finding.verdict is not Verdict.EXACTLY_ONCE or len(record.judgement.findings) > 1
    ]
    if record.set_apart is not None:
        items.append(el("li", el("b", "set apart"), ": the framework's own error, ", record.set_apart))
    kills = record.judgement
    if kills.kills_confirmed < kills.kills_planned:
        items.append(el("li", f"{kills.kills_confirmed} of {count(kills.kills_planned, 'kill')} confirmed"))
    return el("ul", *items, cls="fd") if items else NOTHING


def _evidence(evidence: TrialEvidence) -> Html:
    origin = origin_of(evidence)
    items = []
    for sentence in tell(evidence):
        at = NOTHING if sentence.at_ms is None or origin is None else el("span", since(sentence.at_ms, origin))
        items.append(el("li", at or el("span"), el("p", sentence.text)))
    note = el("p", "Seconds from the start of attempt 1, by the clock of who saw it.", cls="mu sm")
    return Html(el("ol", *items, cls="ev") + note)


def _ledger(evidence: TrialEvidence) -> Html:
    if evidence.ledger is None:
        return el("p", "Not read: ", evidence.ledger_fault or "no reason is known", ".")
    effects = evidence.ledger.effects
    if not effects:
        return el("p", "Empty: nothing happened outside.")
    date = el("p", f"{day(effects[0].at_ms)}, UTC.", cls="mu sm")
    heads = ("effect", "action", "attempt", "key", "amount", "committed")
    rows = [_effect(effect, evidence) for effect in effects[:ROWS_MAX]]
    shown = table(heads, rows, label=f"Ledger of trial {evidence.id}", right=frozenset({4, 5}))
    more = _more(len(effects))
    return Html(shown + more + date)


def _effect(effect: Effect, evidence: TrialEvidence) -> tuple[str, ...]:
    asked = {(one.order, one.action, one.item) for one in evidence.ordered}
    action = effect.action if effect.operation in asked else f"{effect.action} (not ordered: {effect.order})"
    amount = money(effect.amount, effect.currency) if effect.amount or effect.currency else ""
    return (
        code(shorten(effect.id, ID_CHARACTERS)),
        action,
        _attempt(effect.attempt, evidence),
        _key(effect.key),
        amount,
        clock(effect.at_ms),
    )


def _requests(evidence: TrialEvidence) -> Html:
    if evidence.ledger is None or not evidence.ledger.requests:
        return NOTHING
    requests = evidence.ledger.requests
    heads = ("received", "attempt", "action", "key", "outcome", "effect", "took")
    rows = [_request(request, evidence) for request in requests[:ROWS_MAX]]
    shown = table(heads, rows, label=f"Requests of trial {evidence.id}", right=frozenset({6}))
    return el("details", el("summary", f"Request log: {count(len(requests), 'request')}"), shown, _more(len(requests)))


def _request(request: Request, evidence: TrialEvidence) -> tuple[str, ...]:
    took = "no answer" if request.answered_ms is None else duration(request.answered_ms - request.received_ms)
    return (
        clock(request.received_ms),
        _attempt(request.attempt, evidence),
        request.action,
        _key(request.key),
        f"{request.outcome} {request.status}",
        code(shorten(request.effect, ID_CHARACTERS)) if request.effect else "",
        took,
    )


def _more(number: int) -> Html:
    return el("p", f"{number - ROWS_MAX:,} more rows left out.", cls="mu sm") if number > ROWS_MAX else NOTHING


def _attempt(attempt: str, evidence: TrialEvidence) -> str:
    return attempt_name(attempt, evidence.id).removeprefix("attempt ")


def _key(key: str | None) -> str:
    return "none" if key is None else code(shorten(key, KEY_CHARACTERS))
