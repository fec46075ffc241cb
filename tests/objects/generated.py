"""Bad objects made from the schema: at each place that has a limit, a value just beyond it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from killpoint.api.crd import definition

Node = Mapping[str, Any]
Way = tuple[str | int, ...]

WORDS: Mapping[str, str] = {
    "at": "charge.after",
    "points": "a.b",
    "childrenAfter": "1h",
    "experimentAfter": "1h",
    "setup": "langgraph",
}
"""Field → a word that it can have, where that is not "a"."""
KEYS: Mapping[str, str] = {"effects": "charge", "share": "lost"}
"""Map → a key that it can have, where that is not "a"."""
OTHERWISE_RIGHT: Mapping[str, Mapping[str, object]] = {"workers": {"image": "a"}}
"""Field → what its items have to have though the schema alone does not say so."""
WRONG: Mapping[str, object] = {
    "array": "a",
    "boolean": "true",
    "integer": "5",
    "number": "0.5",
    "object": ["a"],
    "string": 5,
}
"""Type → a value of another one."""
REPEATS = frozenset({"include", "exclude", "where"})
"""Objects that have the matrix's fields once more: only their own are tried."""
CHARACTERS_MAX = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place in the specification."""

    way: Way
    node: Node

    @property
    def name(self) -> str:
        """The field that holds it."""
        return next((part for part in reversed(self.way) if isinstance(part, str)), "")

    def __str__(self) -> str:
        return "spec" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.way)


def generated() -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and object."""
    (version,) = definition()["spec"]["versions"]
    root: Node = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    axes = frozenset(root["properties"]["matrix"]["properties"])
    for place in _places(Place(way=(), node=root), axes):
        for kind, value in _beyond(place):
            yield f"{place}: {kind}", _object(_around(root, place.way, value))


def _object(spec: object) -> dict[str, Any]:
    return {
        "apiVersion": "killpoint.dev/v1alpha1",
        "kind": "CrashExperiment",
        "metadata": {"name": "sample"},
        "spec": spec,
    }


def _places(place: Place, axes: frozenset[str]) -> Iterator[Place]:
    """A place and all within it."""
    yield place
    way, node = place.way, place.node
    for name, member in node.get("properties", {}).items():
        if not (place.name in REPEATS and name in axes):
            yield from _places(Place(way=(*way, name), node=member), axes)
    if "items" in node:
        yield from _places(Place(way=(*way, 0), node=node["items"]), axes)
    if "additionalProperties" in node:
        key = KEYS.get(place.name, "a")
        yield from _places(Place(way=(*way, key), node=node["additionalProperties"]), axes)


def _beyond(place: Place) -> Iterator[tuple[str, object]]:
    """What is wrong, and a value for the place that is."""
    node = place.node
    yield "another type", WRONG[node["type"]]
    if "enum" in node:
        yield "an unknown word", "surplus"
    yield from _numbers_beyond(node)
    yield from _texts_beyond(node)
    yield from _lists_beyond(place)
    yield from _objects_beyond(place)


def _numbers_beyond(node: Node) -> Iterator[tuple[str, object]]:
    if "minimum" in node:
        yield "too small", node["minimum"] - 1
    if "maximum" in node:
        yield "too large", node["maximum"] + 1


def _texts_beyond(node: Node) -> Iterator[tuple[str, object]]:
    if "pattern" in node:
        yield "no match", "no match"
    if node.get("minLength"):
        yield "too short", ""
    if node.get("maxLength", CHARACTERS_MAX) < CHARACTERS_MAX:
        yield "too long", "a" * (node["maxLength"] + 1)


def _lists_beyond(place: Place) -> Iterator[tuple[str, object]]:
    node = place.node
    if node["type"] != "array":
        return
    if node.get("minItems"):
        yield "too few", []
    item = _least(node["items"], place.name)
    kind = node["x-kubernetes-list-type"]
    if "enum" not in node["items"]:
        yield "too many", [_another(node, item, number) for number in range(node["maxItems"] + 1)]
    if kind in ("set", "map"):
        yield "twice", [item, item]


def _another(node: Node, item: Any, number: int) -> object:  # noqa: ANN401 - any part of a document
    """An item of a list, with a number that makes it another one."""
    if isinstance(item, str):
        return f"{item}{number}"
    keys = node.get("x-kubernetes-list-map-keys", ())
    return {**item, **{key: f"{item[key]}{number}" for key in keys}}


def _objects_beyond(place: Place) -> Iterator[tuple[str, object]]:
    node = place.node
    if "properties" in node:
        least: dict[str, object] = _least(node, place.name)
        yield "an unknown field", {**least, "surplus": 1}
        for name in node.get("required", ()):
            yield f"without {name}", {field: value for field, value in least.items() if field != name}
    elif "additionalProperties" in node:
        value = _least(node["additionalProperties"], place.name)
        yield "too many", {f"a{number}": value for number in range(node["maxProperties"] + 1)}


def _around(node: Node, way: Way, value: object, *, name: str = "") -> object:
    """The least value of a node, of the field ``name``, that has the given one at the end of the way."""
    if not way:
        return value
    first, *rest = way
    if isinstance(first, int):
        return [_around(node["items"], tuple(rest), value, name=name)]
    if "properties" in node:
        return {**_least(node, name), first: _around(node["properties"][first], tuple(rest), value, name=first)}
    return {first: _around(node["additionalProperties"], tuple(rest), value, name=name)}


def _least(node: Node, name: str) -> Any:  # noqa: ANN401 - any part of a document
    """The least value that a node allows. ``name``: the field that it is the value of."""
    if "enum" in node:
        return node["enum"][0]
    match node["type"]:
        case "object":
            required = {field: _least(node["properties"][field], field) for field in node.get("required", ())}
            return {**required, **OTHERWISE_RIGHT.get(name, {})}
        case "array":
            return [_least(node["items"], name)] if node.get("minItems") else []
        case "integer" | "number":
            return node.get("minimum", 0)
        case "boolean":
            return False
        case _:
            return WORDS.get(name, "a")
