"""From YAML text to a JSON document with the position of everything in it.

PyYAML's own construction would hide what a file says: of a key given twice the last one wins, ``1:30`` is the number
90 and a date is a date. So only its parser and node tree are used, and scalars are resolved here as the Kubernetes
clients resolve them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.events import AliasEvent
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from killpoint.api.problems import Location, Position, Problem, ProblemsError, path_of

DEPTH_MAX = 32
DIGITS_MAX = 20
ALIAS = "alias"
TAGGED = "tagged"
"""Tags of nodes that stand for what cannot be used. No YAML tag looks like these."""
START = "start with apiVersion, kind, metadata and spec"

BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on"), True),
    **dict.fromkeys(("false", "no", "off"), False),
}
NULLS = ("", "~", "null", "Null", "NULL")
INTEGER = re.compile(r"[-+]?(0b[01_]+|0o?[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)")
FLOAT = re.compile(r"[-+]?([0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?")
NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A JSON document and where its parts stand in the text."""

    value: Json
    positions: Mapping[str, Position]
    """Path → where its key stands or, in a list, its item."""
    problems: tuple[Problem, ...]
    """What is wrong with it as a document: repeated keys, nulls, aliases. Such parts are not in ``value``."""


class _Loader(yaml.SafeLoader):
    """Composes nodes, with a bound on their depth and a mark instead of each alias."""

    depth = 0

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if self.check_event(AliasEvent):
            self.get_event()  # type: ignore[no-untyped-call]
            return ScalarNode(ALIAS, event.anchor, event.start_mark, event.end_mark)
        if self.depth >= DEPTH_MAX:
            message = f"nested more than {DEPTH_MAX} levels deep"
            raise ProblemsError([Problem(path="", message=message, position=_position(event))])
        self.depth += 1
        try:
            node = super().compose_node(parent, index)
        finally:
            self.depth -= 1
        return node if event.tag is None else ScalarNode(TAGGED, event.tag, event.start_mark, event.end_mark)


@dataclass(slots=True, kw_only=True)
class _Reader:
    """What has been found so far, while a node tree is read."""

    positions: dict[str, Position] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def read(self, node: Node, location: Location) -> Json:
        match node:
            case MappingNode():
                return self._mapping(node, location)
            case SequenceNode():
                return self._sequence(node, location)
            case ScalarNode():
                return self._scalar(node, location)
            case _:
                raise TypeError(f"PyYAML composes no {type(node).__name__}")

    def _mapping(self, node: MappingNode, location: Location) -> Json:
        members: dict[str, Json] = {}
        for key, value in node.value:
            name = self._key(key, location)
            if name is None:
                continue
            inner = (*location, name)
            if name in members:
                first = self.positions[path_of(inner)].line
                self._problem(inner, key, f'key "{name}" already set in map', f"it is also on line {first}")
                continue
            self.positions[path_of(inner)] = _position(key)
            members[name] = self.read(value, inner)
        return members

    def _key(self, key: Node, location: Location) -> str | None:
        if key.value == "<<" and isinstance(key, ScalarNode):
            self._problem(location, key, "merge keys (<<) are not supported", "write the values out")
        elif isinstance(key, ScalarNode) and isinstance(resolved := _resolved(key), str):
            return resolved
        elif isinstance(key, ScalarNode):
            self._problem(location, key, f"the key {key.value} is not a string", "write it in quotes")
        else:
            self._problem(location, key, "a collection cannot be a key")
        return None

    def _sequence(self, node: SequenceNode, location: Location) -> Json:
        items: list[Json] = []
        for number, item in enumerate(node.value):
            inner = (*location, number)
            self.positions[path_of(inner)] = _position(item)
            items.append(self.read(item, inner))
        return items

    def _scalar(self, node: ScalarNode, location: Location) -> Json:
        value = _resolved(node)
        if value is None:
            message = "Invalid value: null: nothing is given here"
            self._problem(location, node, message, "give a value, or remove the field")
        elif isinstance(value, _Unusable):
            self._problem(location, node, f"Invalid value: {node.value}: {value.reason}", value.remedy)
            return None
        return value

    def _problem(self, location: Location, node: Node, message: str, suggestion: str | None = None) -> None:
        problem = Problem(path=path_of(location), message=message, suggestion=suggestion, position=_position(node))
        self.problems.append(problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unusable:
    """A scalar that JSON cannot hold."""

    reason: str
    remedy: str = "write it in quotes if it is meant as a word"


def document_of(text: str) -> Document:
    """Read one YAML (or JSON) document. Raises ProblemsError where the text is not one, with line and column."""
    try:
        nodes = list(_nodes(text))
    except yaml.YAMLError as error:
        raise ProblemsError([_syntax_problem(error, text)]) from error
    if not nodes:
        message = "the document is empty"
        raise ProblemsError(
            [Problem(path="", message=message, suggestion="start with apiVersion, kind, metadata, spec")]
        )
    if len(nodes) > 1:
        message = f"{len(nodes)} documents: must have at most 1"
        raise ProblemsError(
            [Problem(path="", message=message, suggestion="give each a file of its own", position=_position(nodes[1]))]
        )
    reader = _Reader()
    value = reader.read(nodes[0], ())
    return Document(value=value, positions=reader.positions, problems=tuple(reader.problems))


def _nodes(text: str) -> Iterator[Node]:
    """The documents of the text. One that holds nothing, such as after a last ``---``, does not count."""
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is not None and not _is_nothing(node):
                yield node
    finally:
        loader.dispose()


def _is_nothing(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.value == "" and not node.style


def _position(place: Any) -> Position:  # noqa: ANN401 - a node or an event: PyYAML's types have no word for both
    return Position(line=place.start_mark.line + 1, column=place.start_mark.column + 1)


def _resolved(node: ScalarNode) -> bool | int | float | str | _Unusable | None:
    """What a scalar means."""
    text: str = node.value
    if node.tag == ALIAS:
        return _Unusable(reason="aliases are not supported", remedy="write the value out")
    if node.tag == TAGGED:
        return _Unusable(reason="tags are not supported", remedy="remove it, and write a word in quotes")
    return text if node.style else _plain(text)


def _plain(text: str) -> bool | int | float | str | _Unusable | None:
    """What an unquoted scalar means, as the Kubernetes clients read it: dates and 1:30 are strings, ``yes`` is true."""
    if text in NULLS:
        return None
    if text in (text.lower(), text.upper(), text.capitalize()) and text.lower() in BOOLEANS:
        return BOOLEANS[text.lower()]
    if INTEGER.fullmatch(text):
        return _integer(text)
    if FLOAT.fullmatch(text):
        return float(text.replace("_", ""))
    return _Unusable(reason="not a number that JSON can hold") if NOT_FINITE.fullmatch(text) else text


def _integer(text: str) -> int | _Unusable:
    digits = text.replace("_", "").lstrip("+-")
    if len(digits) > DIGITS_MAX + 2:
        return _Unusable(reason="the number is too large")
    octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
    number = int(digits, 8) if octal else int(digits, 0)
    return -number if text.startswith("-") else number


def _syntax_problem(error: yaml.YAMLError, text: str) -> Problem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if isinstance(error, yaml.reader.ReaderError):
        before = text[: error.position]
        position = Position(line=before.count("\n") + 1, column=error.position - before.rfind("\n"))
        message = f"not YAML: the character U+{ord(text[error.position]):04X} is not allowed"
        return Problem(path="", message=message, suggestion="remove it", position=position)
    reason = getattr(error, "problem", None) or str(error)
    context = getattr(error, "context", None)
    message = f"not YAML: {f'{context}: ' if context else ''}{reason}"
    place = Position(line=mark.line + 1, column=mark.column + 1) if mark else None
    return Problem(path="", message=message, suggestion=_syntax_suggestion(f"{context} {reason}"), position=place)


def _syntax_suggestion(reason: str) -> str | None:
    if "alias" in reason:
        return 'a star has to be in quotes: "*"'
    if "'\\t'" in reason:
        return "indent with spaces, not with tabs"
    if "mapping values are not allowed" in reason:
        return "look at the indentation, and for a colon that has to be in quotes"
    return None
