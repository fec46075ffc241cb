"""The JSON Schema of an experiment, and what stands in it at a place."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from killpoint.api.problems import Location
from killpoint.api.v1alpha1.spec import CrashExperiment

Node = Mapping[str, Any]
"""A part of a JSON Schema."""


@functools.cache
def schema() -> Node:
    """The schema as pydantic makes it, with ``$defs``."""
    return CrashExperiment.model_json_schema()


def resolve(node: Node) -> Node:
    """A node itself, where it is a reference or may be null. Its own words, such as the description, are kept."""
    if "$ref" in node:
        target = schema()["$defs"][node["$ref"].rpartition("/")[2]]
        return {**resolve(target), **{key: value for key, value in node.items() if key != "$ref"}}
    if "anyOf" in node:
        option = next(option for option in node["anyOf"] if option.get("type") != "null")
        own = {key: value for key, value in node.items() if key not in ("anyOf", "default")}
        return {**resolve(option), **own}
    return node


def node_at(location: Location) -> Node:
    """What the schema says of a place in a document; empty where it knows no such place."""
    node = resolve(schema())
    for part in location:
        if isinstance(part, int):
            inner = node.get("items", {})
        else:
            inner = node.get("properties", {}).get(part) or node.get("additionalProperties") or {}
        node = resolve(inner)
    return node


def fields_at(location: Location) -> tuple[str, ...]:
    """The fields of the object at a place."""
    return tuple(node_at(location).get("properties", {}))
