"""From pydantic's JSON schema to a structural schema, which is what a CustomResourceDefinition may hold. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from killpoint.api.rules import Rule
from killpoint.api.v1alpha1.base import Model

Structural = dict[str, Any]

KEPT = (
    "description",
    "type",
    "format",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
)
"""What means the same in both. The rest is either said in another way or not at all."""
SCALARS = frozenset({"boolean", "integer", "number", "string"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Lists:
    """How lists are merged and compared. Any that is not named here is atomic."""

    keys: Mapping[str, str] = field(default_factory=dict)
    """Field → the key of its items: a map, in which each key is there once."""
    ordered: frozenset[str] = frozenset()
    """Lists of scalars in which one may stand twice."""
    sets: bool = False
    """Whether the other lists of scalars are sets."""
    atomic_maps: bool = False
    """Whether maps are atomic, too. A server-side apply that empties one that is not makes it null, and is refused."""


def structural(model: type[Model], *, lists: Lists, rules: Mapping[str, tuple[Rule, ...]] | None = None) -> Structural:
    """The structural schema of a model, with rules where they stand: ``Model``, ``Model.field``, ``Model.field[]``."""
    schema = model.model_json_schema()
    return _Conversion(definitions=schema.get("$defs", {}), lists=lists, rules=rules or {}).of(
        schema, name="", place=""
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Conversion:
    definitions: Mapping[str, Any]
    lists: Lists
    rules: Mapping[str, tuple[Rule, ...]]

    def of(self, node: Mapping[str, Any], *, name: str, place: str) -> Structural:
        """A node of the schema. ``name``: the field whose value it is. ``place``: where the rules say it stands."""
        node, model = self._resolved(node)
        converted: Structural = {key: node[key] for key in KEPT if key in node}
        if "description" in node:
            converted["description"] = " ".join(node["description"].split())
        if "const" in node:
            converted |= {"type": "string", "enum": [node["const"]]}
        if node.get("default") is not None:
            converted["default"] = _plain(node["default"])
        if "properties" in node:
            converted["properties"] = {
                field: self.of(member, name=field, place=f"{model}.{field}")
                for field, member in node["properties"].items()
            }
            if node.get("required"):
                converted["required"] = list(node["required"])
        elif isinstance(node.get("additionalProperties"), dict):
            converted["additionalProperties"] = self.of(node["additionalProperties"], name=name, place=f"{place}.*")
            if self.lists.atomic_maps:
                converted["x-kubernetes-map-type"] = "atomic"
        elif "items" in node:
            converted["items"] = self.of(node["items"], name=name, place=f"{place}[]")
            converted |= self._list_type(name, converted["items"])
        found = [*self.rules.get(model, ()), *(self.rules.get(place, ()) if place else ())]
        if found:
            converted["x-kubernetes-validations"] = [rule.validation() for rule in found]
        return converted

    def _resolved(self, node: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
        """A node without references and without null, and the name of the model that it is, if it is one."""
        model = str(node.get("title", "")) if "properties" in node else ""
        while "$ref" in node or "anyOf" in node:
            own = {key: value for key, value in node.items() if key not in ("$ref", "anyOf")}
            if "$ref" in node:
                model = node["$ref"].rpartition("/")[2]
                inner = self.definitions[model]
            else:
                inner = next(option for option in node["anyOf"] if option.get("type") != "null")
            node = {**inner, **own}
        return node, model

    def _list_type(self, name: str, items: Structural) -> Structural:
        if name in self.lists.keys:
            return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [self.lists.keys[name]]}
        is_set = self.lists.sets and items.get("type") in SCALARS and name not in self.lists.ordered
        return {"x-kubernetes-list-type": "set" if is_set else "atomic"}


def _plain(default: Any) -> Any:  # noqa: ANN401 - any JSON value
    """A default without the nulls in it. Written out: the server checks the rules on it before it fills anything in."""
    if isinstance(default, Mapping):
        return {name: _plain(value) for name, value in default.items() if value is not None}
    return default
