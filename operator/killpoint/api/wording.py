"""pydantic's errors in the words of a Kubernetes API server, with what is probably meant.

The same mistake in the same document is to read the same, whether this program finds it or the server does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sized
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from killpoint.api.problems import Location, Problem, invalid, meant, nearest, path_of, unsupported
from killpoint.api.schema import fields_at, node_at

PARAMETERS: Location = ("spec", "matrix", "parameters")
NAME: Location = ("metadata", "name")
LABELS: Location = ("metadata", "labels")
# What Kubernetes says of the metadata of every object.
NAME_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    r" '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL_WORDS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
TYPES: Mapping[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def errors_in(error: ValidationError) -> list[ErrorDetails]:
    """The errors, each mistake once: pydantic calls a list with a wrong item too short, for what is left of it."""
    details = error.errors(include_url=False)
    return [detail for detail in details if detail["type"] != "too_short" or len(detail["input"]) == _left(detail)]


def _left(detail: ErrorDetails) -> int:
    return int(detail["ctx"]["actual_length"])


def problem_of(error: ErrorDetails) -> Problem:
    """One error of pydantic's as a problem."""
    location: Location = tuple(error["loc"])
    make = _BY_TYPE.get(error["type"], _wrong_type)
    return make(location, error.get("input"), error.get("ctx", {}))


def _unknown(location: Location, _value: object, _context: Mapping[str, Any]) -> Problem:
    path = path_of(location)
    return Problem(path=path, message=f'unknown field "{path}"', suggestion=_field_meant(location))


def _field_meant(location: Location) -> str | None:
    *parent, name = location
    fields = fields_at(tuple(parent))
    elsewhere = next(_elsewhere(tuple(parent), str(name)), None)
    if elsewhere is not None:
        return f"did you mean {path_of(elsewhere)}?"
    if near := nearest(str(name), fields):
        return f"did you mean {near}?"
    if tuple(parent) == PARAMETERS[:-1]:
        return f"an axis that only the worker knows is written as {path_of((*PARAMETERS, name))}"
    return f"known here: {', '.join(fields)}" if fields else None


def _elsewhere(parent: Location, name: str) -> Iterator[Location]:
    """Places near by that do have a field of this name: one level further in, or further out."""
    for field in fields_at(parent):
        if name in fields_at((*parent, field)):
            yield (*parent, field, name)
    for end in range(len(parent) - 1, 0, -1):
        if name in fields_at(parent[:end]) and name != "name":
            yield (*parent[:end], name)


def _missing(location: Location, _value: object, _context: Mapping[str, Any]) -> Problem:
    if location == NAME:
        return _no_name()
    supported = node_at(location).get("const")
    suggestion = f"write {location[-1]}: {supported}" if supported else None
    return Problem(path=path_of(location), message="Required value", suggestion=suggestion)


def _no_name() -> Problem:
    return Problem(
        path=path_of(NAME), message="Required value: name or generateName is required", suggestion="give it a name"
    )


def _wrong_type(location: Location, value: object, _context: Mapping[str, Any]) -> Problem:
    path, wanted, given = (
        path_of(location),
        str(node_at(location).get("type", "object")),
        TYPES.get(type(value), "null"),
    )
    suggestion = None
    if wanted == "string" and given in ("integer", "number", "boolean"):
        suggestion = "write it in quotes"
    elif wanted in ("integer", "number") and isinstance(value, str) and re.fullmatch(r"-?[0-9]+", value):
        suggestion = f"write it without quotes: {value}"
    elif wanted == "array":
        suggestion = f"write it as a list: [{value}]" if isinstance(value, str) else "write it as a list"
    elif wanted == "boolean":
        suggestion = "write true or false, without quotes"
    reason = f'{path} in body must be of type {wanted}: "{given}"'
    return invalid(path, given, reason, suggestion)


def _not_supported(location: Location, value: object, context: Mapping[str, Any]) -> Problem:
    node = node_at(location)
    supported = node.get("enum") or [node["const"]]
    if not isinstance(value, str):
        return _wrong_type(location, value, context)
    return unsupported(path_of(location), value, supported)


def _too_small(location: Location, value: object, context: Mapping[str, Any]) -> Problem:
    path = path_of(location)
    return invalid(path, value, f"{path} in body should be greater than or equal to {_shown(context['ge'])}")


def _too_large(location: Location, value: object, context: Mapping[str, Any]) -> Problem:
    path = path_of(location)
    return invalid(path, value, f"{path} in body should be less than or equal to {_shown(context['le'])}")


def _shown(number: float) -> str:
    return str(int(number)) if number == int(number) else str(number)


def _no_match(location: Location, value: object, context: Mapping[str, Any]) -> Problem:
    path, pattern = path_of(location), context["pattern"]
    spelled = re.sub(r"[_\s]+", "-", str(value).strip().lower())
    suggestion = meant(str(value), [spelled]) if re.search(pattern, spelled) else None
    if location == NAME:
        return invalid(path, value, NAME_WORDS, suggestion) if value else _no_name()
    if location[:2] == LABELS:
        return invalid(path, value, LABEL_WORDS)
    return invalid(path, value, f"{path} in body should match '{pattern}'", suggestion)


def _text_too_long(location: Location, value: object, context: Mapping[str, Any]) -> Problem:
    if location == NAME or location[:2] == LABELS:
        return invalid(path_of(location), value, f"must be no more than {context['max_length']} characters")
    return Problem(path=path_of(location), message=f"Too long: may not be more than {context['max_length']} bytes")


def _text_too_short(location: Location, value: object, context: Mapping[str, Any]) -> Problem:
    path = path_of(location)
    return invalid(path, value, f"{path} in body should be at least {context['min_length']} chars long")


def _too_many(location: Location, value: object, context: Mapping[str, Any]) -> Problem:
    message = f"Too many: {len(cast('Sized', value))}: must have at most {context['max_length']} items"
    return Problem(path=path_of(location), message=message)


def _too_few(location: Location, _value: object, context: Mapping[str, Any]) -> Problem:
    path = path_of(location)
    reason = f"{path} in body should have at least {context['min_length']} items"
    return invalid(path, context["actual_length"], reason)


_BY_TYPE: Mapping[str, Callable[[Location, object, Mapping[str, Any]], Problem]] = {
    "extra_forbidden": _unknown,
    "missing": _missing,
    "literal_error": _not_supported,
    "enum": _not_supported,
    "greater_than_equal": _too_small,
    "less_than_equal": _too_large,
    "string_pattern_mismatch": _no_match,
    "string_too_long": _text_too_long,
    "string_too_short": _text_too_short,
    "too_long": _too_many,
    "too_short": _too_few,
}
"""All other errors of the models are about types."""
