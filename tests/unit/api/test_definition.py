from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import yaml

from killpoint.api.available import OFFERS, Where
from killpoint.api.crd import COLUMNS, definition, definition_text
from killpoint.api.rules import rules
from killpoint.api.status import document_of, status_of
from killpoint.api.v1alpha1.spec import MUTABLE, Spec
from tests.unit.report import builders

ANNOTATION_BYTES_MAX = 262_144
"""``kubectl apply`` keeps what it applied in an annotation."""
COMPLETE = '[?(@.type=="Complete")]'
"""The one of a status' conditions that a column is about."""
STRUCTURAL = frozenset(
    {
        "additionalProperties",
        "default",
        "description",
        "enum",
        "items",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minimum",
        "pattern",
        "properties",
        "required",
        "type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
        "x-kubernetes-validations",
    }
)


def schema() -> dict[str, Any]:
    (version,) = definition()["spec"]["versions"]
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return found


def nodes(node: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every node with its path."""
    yield path, node
    for name, member in node.get("properties", {}).items():
        yield from nodes(member, f"{path}.{name}")
    for inner, mark in (("items", "[]"), ("additionalProperties", ".*")):
        if inner in node:
            yield from nodes(node[inner], path + mark)


def test_the_text_is_the_definition_and_has_room_in_an_annotation() -> None:
    assert yaml.safe_load(definition_text()) == definition()
    assert len(json.dumps(definition())) < ANNOTATION_BYTES_MAX / 2


def test_the_schema_says_only_what_a_structural_schema_can_say() -> None:
    said = {word for _, node in nodes(schema(), "") for word in node}
    assert said - STRUCTURAL == set()
    assert [path for path, node in nodes(schema(), "") if "type" not in node] == []
    assert [path for path, node in nodes(schema(), "") if {"properties", "additionalProperties"} <= set(node)] == []
    assert "null" not in definition_text()


def test_every_list_and_map_that_rules_walk_through_is_bounded() -> None:
    unbounded = [
        path
        for path, node in nodes(schema()["properties"]["spec"], "spec")
        if (node["type"] == "array" and "maxItems" not in node)
        or ("additionalProperties" in node and "maxProperties" not in node)
    ]
    assert unbounded == []


def test_every_default_is_one_that_the_schema_allows() -> None:
    """The server checks the rules on a default before it fills in what is missing."""
    for path, node in nodes(schema(), ""):
        for name, member in node.get("properties", {}).items():
            default = member.get("default")
            if isinstance(default, dict) and "properties" in member:
                filled = {field for field, inner in member["properties"].items() if "default" in inner}
                assert filled <= set(default), f"{path}.{name}"


def test_each_rule_stands_where_it_says_and_none_is_left_out() -> None:
    placed = [rule for _, node in nodes(schema(), "") for rule in node.get("x-kubernetes-validations", ())]
    for place, wanted in rules().items():
        for rule in wanted:
            assert rule.validation() in placed, place


def test_words_that_refuse_are_short_and_computed_by_no_expression() -> None:
    for _, node in nodes(schema(), ""):
        for rule in node.get("x-kubernetes-validations", ()):
            assert "messageExpression" not in rule
            assert re.fullmatch(r"[^\n]{5,300}", rule["message"]), rule


def test_each_field_of_the_specification_is_immutable_or_named_as_mutable() -> None:
    spec = schema()["properties"]["spec"]
    kept = {rule["fieldPath"].removeprefix(".") for rule in immutability(spec)}
    assert kept == set(spec["properties"]) - set(MUTABLE)
    for name in kept:
        assert name in spec["required"] or "default" in spec["properties"][name], "has() parity would be needed"
    assert set(MUTABLE) <= set(Spec.model_fields)


def immutability(spec: dict[str, Any]) -> list[dict[str, str]]:
    return [rule for rule in spec["x-kubernetes-validations"] if rule["message"].startswith("field is immutable")]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column[0])
def test_each_column_shows_something_that_a_status_has(column: tuple[str, str, str, str]) -> None:
    _, kind, path, _ = column
    if path.startswith(".metadata"):
        return
    ended = document_of(status_of(replace(builders.crash_table()), generation=1))
    node: Any = schema()
    value: Any = {"status": ended}
    for part in path.replace(COMPLETE, ".Complete").removeprefix(".").split("."):
        if part == "Complete":
            [value] = [entry for entry in value if entry["type"] == part]
            node = node["items"]
            continue
        node, value = node["properties"][part], value[part]
    assert node["type"] == kind
    assert value is not None


def test_conditions_are_a_map_and_cells_are_atomic() -> None:
    status = schema()["properties"]["status"]["properties"]
    assert status["conditions"]["x-kubernetes-list-map-keys"] == ["type"]
    assert status["cells"]["x-kubernetes-list-type"] == "atomic"
    assert status["trials"]["properties"]["verdicts"]["x-kubernetes-map-type"] == "atomic", "verdicts come and go"


def test_it_is_in_no_category_and_has_a_short_name() -> None:
    names = definition()["spec"]["names"]
    assert names["shortNames"] == ["cexp"]
    assert "categories" not in names


def test_what_one_place_lacks_and_no_other_has_is_not_said_to_be_elsewhere() -> None:
    assert OFFERS[Where.LOCAL].words["store"] != OFFERS[Where.CLUSTER].words["store"]
    messages = [rule.reason for found in rules().values() for rule in found]
    assert '"volume" is not available in a cluster' in messages
    assert '"fork" is not available in this version' in messages
    assert not any("on this machine" in message for message in messages)
