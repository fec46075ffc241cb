"""The worker contract v1, the harness's side: documents written for a worker and lines read from one. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from killpoint.core.points import NAME, place_of
from killpoint.model.cells import AttemptId, Coordinates, Method
from killpoint.model.evidence import Claim, Ordered, Outcome, OutcomeWord, PointPassed

CONTRACT = 1
LOG_BYTES_MAX = 4096
"""What a kubelet keeps of a termination message; a worker keeps its own below 3,072 bytes."""
ERROR_CHARACTERS_MAX = 500
NUMBER_MAX = 10**15
"""Above any count and any time of day in milliseconds."""
FOLDED = "*"
"""The point of a line that counts passings which have no line any more (docs/worker-contract.md)."""

WORKFLOW_VERSIONS = {"graph": "1", "state": "1", "policy": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """What an assignment is made from."""

    experiment: str
    workflow: str
    attempt: AttemptId
    run: str
    nonce: str
    action: str
    scheduled: str | None
    method: Method
    coordinates: Coordinates
    ordered: tuple[Ordered, ...]


def assignment_of(assigned: Assigned) -> dict[str, object]:
    """The KILLPOINT_ASSIGNMENT document (docs/worker-contract.md). It holds no secret."""
    coordinates = assigned.coordinates
    return {
        "contract": CONTRACT,
        "experiment": assigned.experiment,
        "trial": str(assigned.attempt.trial),
        "run": assigned.run,
        "tenant": assigned.run,
        "attempt": str(assigned.attempt),
        "number": assigned.attempt.number,
        "nonce": assigned.nonce,
        "action": assigned.action,
        "workflow": {"name": assigned.workflow, "versions": WORKFLOW_VERSIONS},
        "coordinates": {
            "setup": coordinates.setup,
            "store": coordinates.store,
            "key": coordinates.key,
            "resume": coordinates.resume,
            "parameters": dict(coordinates.parameters),
        },
        "job": {
            "orders": [
                {"id": operation.order, "amount": operation.amount, "currency": operation.currency}
                for operation in assigned.ordered
                if operation.amount
            ]
        },
        "schedule": _schedule(assigned.scheduled, assigned.method),
    }


DO = {
    Method.SIGKILL: "die",
    Method.EXIT: "exit",
    Method.OUT_OF_MEMORY: "out-of-memory",
    Method.DELETE_POD: "park",
    Method.EVICT: "park",
    Method.FREEZE: "freeze",
}
"""Method → the word of the contract for what the worker does at the point."""


def _schedule(scheduled: str | None, method: Method) -> list[dict[str, object]]:
    if scheduled is None:
        return []
    place = place_of(scheduled)
    return [{"point": f"{place.step}.{place.place}", "occurrence": place.occurrence, "do": DO[method]}]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a termination log says. ``fault`` names what is wrong with it; what was readable is kept."""

    lines: int = 0
    header: bool = False
    points: tuple[PointPassed, ...] = ()
    points_left_out: int = 0
    outcome: Outcome | None = None
    description: Mapping[str, Any] | None = None
    fault: str | None = None


_SECRETS = (
    (re.compile(r"kp1\.[\w-]+(\.[\w-]+)?"), "kp1.…"),
    (re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s:/@]*):[^\s@]+@", re.IGNORECASE), r"\1:…@"),
    (re.compile(r"(password[\"']?\s*[=:]\s*)\S+", re.IGNORECASE), r"\1…"),
)
"""A worker's token, a URL's password, and what stands beside that word."""


def without_secrets(text: str) -> str:
    """A worker's own words as they may be kept and shown: without the secrets that it was given."""
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


class ContractError(ValueError):
    """A line that the contract does not allow."""


def read_termination(text: str, *, attempt: str, nonce: str) -> Reading:
    """Read a termination log. Never raises: rubbish, or another attempt's words, come back as ``fault``.

    Only the kept end of a long log is looked at, so that what a cluster would cut is cut here as well.
    """
    kept = text.encode()[-LOG_BYTES_MAX:].decode(errors="replace")
    lines = [line for line in kept.split("\n") if line.strip()]
    reading = Reading(lines=len(lines))
    for number, line in enumerate(lines, start=1):
        try:
            reading = _with_line(reading, _storable(json.loads(line)), attempt=attempt, nonce=nonce)
        except (ContractError, ValueError, RecursionError) as error:
            reason = str(error) if isinstance(error, ContractError) else "not JSON"
            shown = without_secrets(line)[:80]
            return replace(reading, fault=f"line {number} of the termination log: {reason}: {shown!r}")
    return reading


def _storable(value: Any) -> Any:  # noqa: ANN401 - a JSON value
    """JSON can spell what neither UTF-8 nor a database can hold, NUL and halves of surrogate pairs; and secrets."""
    match value:
        case str():
            text = value.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
            return without_secrets(text)
        case list():
            return [_storable(item) for item in value]
        case dict():
            return {_storable(name): _storable(item) for name, item in value.items()}
        case _:
            return value


def _with_line(reading: Reading, line: object, *, attempt: str, nonce: str) -> Reading:
    if not isinstance(line, dict):
        raise ContractError("not a JSON object")
    if reading.outcome is not None:
        raise ContractError("a line after the outcome")
    if "killpoint" in line:
        return _with_header(reading, line, attempt=attempt, nonce=nonce)
    if not reading.header:
        raise ContractError("the first line must be the header with this attempt's nonce")
    if "point" in line:
        return _with_point(reading, line)
    if "outcome" in line:
        return _with_outcome(reading, line)
    raise ContractError("neither header, point nor outcome")


def _with_header(reading: Reading, line: Mapping[str, Any], *, attempt: str, nonce: str) -> Reading:
    if line["killpoint"] != CONTRACT:
        raise ContractError(f"contract {line['killpoint']!r}, this harness speaks {CONTRACT}")
    if line.get("attempt") != attempt or line.get("nonce") != nonce:
        raise ContractError("another attempt's header (attempt or nonce differs)")
    if reading.header:
        raise ContractError("a second header")
    return replace(reading, header=True)


def _with_point(reading: Reading, line: Mapping[str, Any]) -> Reading:
    point = _text(line, "point", longest=63)
    if point != FOLDED and ("#" in point or not NAME.match(point)):
        raise ContractError(f"{point!r} is no point: expected step.place, as in charge.after")
    folded = _number(line, "folded") or 0
    passed = PointPassed(point=point, occurrence=_number(line, "n") or 1, at_ms=_number(line, "t"))
    return replace(reading, points=(*reading.points, passed), points_left_out=reading.points_left_out + folded)


def _with_outcome(reading: Reading, line: Mapping[str, Any]) -> Reading:
    try:
        word = OutcomeWord(line["outcome"])
    except ValueError as error:
        raise ContractError(f"unknown outcome {line['outcome']!r}") from error
    if word is OutcomeWord.DESCRIBED:
        return replace(reading, outcome=Outcome(word=word), description=line)
    failure = line.get("error") or {}
    if not isinstance(failure, dict):
        raise ContractError("error must be an object with class and message")
    outcome = Outcome(
        word=word,
        error_class=_optional_text(failure, "class"),
        error_message=_optional_text(failure, "message"),
        resumed_from=_optional_text(line, "resumedFrom"),
        claims=_claims(line.get("claims")),
        recorded=_flags(line.get("recorded") or {}),
        timings_ms=_timings(line.get("timings") or {}),
    )
    return replace(reading, outcome=outcome)


def _claims(value: object) -> tuple[Claim, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(claim, dict) for claim in value):
        raise ContractError("claims must be a list of objects")
    return tuple(
        Claim(
            action=_text(claim, "action", longest=63),
            order=_text(claim, "order", longest=253),
            effect=_optional_text(claim, "effect"),
        )
        for claim in value
    )


def _flags(value: object) -> tuple[tuple[str, bool], ...]:
    if not isinstance(value, dict) or not all(isinstance(flag, bool) for flag in value.values()):
        raise ContractError("recorded must map steps to true or false")
    return tuple(sorted(value.items()))


def _timings(value: object) -> tuple[tuple[str, float], ...]:
    if not isinstance(value, dict):
        raise ContractError("timings must be an object")
    for name, number in value.items():
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise ContractError(f"timings.{name} must be a number of milliseconds")
        if not (math.isfinite(number) and abs(number) <= NUMBER_MAX):
            raise ContractError(f"timings.{name} is no time that anything took")
    return tuple(sorted((name, float(number)) for name, number in value.items()))


def _text(line: Mapping[str, Any], name: str, *, longest: int) -> str:
    value = line.get(name)
    if not isinstance(value, str) or not value or len(value) > longest:
        raise ContractError(f"{name} must be a text of 1 to {longest} characters")
    return value


def _optional_text(line: Mapping[str, Any], name: str) -> str | None:
    value = line.get(name)
    if value is not None and not isinstance(value, str):
        raise ContractError(f"{name} must be a text")
    return None if value is None else value[:ERROR_CHARACTERS_MAX]


def _number(line: Mapping[str, Any], name: str) -> int | None:
    value = line.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= NUMBER_MAX:
        raise ContractError(f"{name} must be a whole number, 0 or more")
    return value
