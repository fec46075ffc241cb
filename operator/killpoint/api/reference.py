"""The field reference and the JSON Schema of an experiment, made from the models. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from killpoint.api import available
from killpoint.api.available import LATER_AXES, LATER_FIELDS, LATER_WORKFLOW_FIELDS, OFFERS
from killpoint.api.schema import Node, resolve, schema
from killpoint.api.v1alpha1.base import Model
from killpoint.api.v1alpha1.expect import Where
from killpoint.api.v1alpha1.matrix import Axes, Exclude, Include, Selector
from killpoint.api.v1alpha1.spec import API_VERSION, Spec
from killpoint.api.v1alpha1.workers import Worker, Workflow

HEAD = f"""<!-- Made by `python -m killpoint.api.generate` from operator/killpoint/api/v1alpha1. Do not edit. -->

# CrashExperiment ({API_VERSION})

Every field of an experiment. `[]` stands for each item of a list. A field without a default is required, unless its
default is *none*. Fields marked † have their place in the schema and are refused by this version; those marked ‡ are
there in a cluster only, and refused on this machine.
[crashexperiment.schema.json](crashexperiment.schema.json) is the same for editors: start a file with
`# yaml-language-server: $schema=` and its path.
"""

SAME_AXES: Mapping[str, tuple[type[Model], str]] = {
    "Include": (Include, "Axes as in `spec.matrix`; one that is not named has the values there."),
    "Exclude": (Exclude, "Any axis of `spec.matrix`, as a list of its words or names."),
    "Where": (Where, "Any axis of `spec.matrix`, as a list of its words or names."),
}
"""Objects whose fields are the axes once more: the reference says so in a sentence."""

LATER: Mapping[str, tuple[type[Model], tuple[str, ...]]] = {
    "Matrix": (Axes, LATER_AXES),
    "Include": (Axes, LATER_AXES),
    "Spec": (Spec, LATER_FIELDS),
    "Workflow": (Workflow, LATER_WORKFLOW_FIELDS),
}
_HERE, _CLUSTER = OFFERS[available.Where.LOCAL], OFFERS[available.Where.CLUSTER]
CLUSTER_ONLY: Mapping[str, tuple[type[Model], tuple[str, ...]]] = {
    "Spec": (Spec, tuple(name for name in _HERE.spec_without if name not in _CLUSTER.spec_without)),
    "Worker": (Worker, tuple(name for name in _HERE.worker_without if name not in _CLUSTER.worker_without)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """An object of the schema, and the first place where it stands."""

    path: str
    node: Node

    @property
    def title(self) -> str:
        return str(self.node.get("title", ""))

    def fields(self) -> Iterator[tuple[str, Node, bool]]:
        """Name, schema and whether it is required."""
        required = self.node.get("required", ())
        repeated = _repeated_fields(self.title)
        for name, node in self.node.get("properties", {}).items():
            if name not in repeated:
                yield name, node, name in required


def experiment_reference() -> str:
    """The field reference as Markdown."""
    return HEAD + "".join(_section_text(section) for section in _sections())


def experiment_schema() -> str:
    """The JSON Schema for editors. A null is never a value, so no type has one."""
    fields = {"$schema": "https://json-schema.org/draft/2020-12/schema", **_without_nulls(schema())}
    return json.dumps(fields, indent=2, ensure_ascii=False) + "\n"


def _sections() -> Iterator[Section]:
    """Every object, in the order in which a reader meets them."""
    seen: set[str] = set()
    waiting = [Section(path="", node=resolve(schema()))]
    while waiting:
        section = waiting.pop(0)
        if section.title in seen:
            continue
        seen.add(section.title)
        yield section
        inner = (_object_in(f"{section.path}.{name}".lstrip("."), node) for name, node, _ in section.fields())
        waiting = [found for found in inner if found is not None] + waiting


def _object_in(path: str, node: Node) -> Section | None:
    """The object that a field holds, directly or in a list or map."""
    node = resolve(node)
    if "properties" in node:
        return Section(path=path, node=node)
    if "items" in node:
        return _object_in(f"{path}[]", node["items"])
    if isinstance(node.get("additionalProperties"), dict):
        return _object_in(f"{path}.*", node["additionalProperties"])
    return None


def _section_text(section: Section) -> str:
    lines = [f"\n## {f'`{section.path}`' if section.path else 'The document'}\n", _oneline(section.node), ""]
    if section.title in SAME_AXES:
        lines += [SAME_AXES[section.title][1], ""]
    rows = [_row(section, name, node, required) for name, node, required in section.fields()]
    if rows:
        lines += ["| field | type | default | limits | |", "|---|---|---|---|---|", *rows, ""]
    return "\n".join(lines)


def _row(section: Section, name: str, node: Node, required: bool) -> str:  # noqa: FBT001 - it goes with the field
    marks = {"†": LATER, "‡": CLUSTER_ONLY}
    later = "".join(mark for mark, marked in marks.items() if name in _fields(marked, section.title))
    default = "" if required else _default(node)
    limits = ", ".join(_limits(resolve(node)))
    return f"| `{name}`{later} | {_type(node)} | {default} | {limits} | {_oneline(resolve(node))} |"


def _type(node: Node) -> str:
    node = resolve(node)
    if "const" in node:
        return f"`{node['const']}`"
    if "enum" in node:
        return ", ".join(f"`{word}`" if word else "empty" for word in node["enum"])
    if node.get("type") == "array":
        return f"list: {_type(node['items'])}"
    if isinstance(node.get("additionalProperties"), dict):
        return f"map: {_type(node['additionalProperties'])}"
    return str(node.get("type", "object"))


def _default(node: Node) -> str:
    default = node.get("default")
    if default is None:
        return "*none*"
    if isinstance(default, dict) and default:
        return "see below"
    return f"`{json.dumps(default)}`"


def _limits(node: Node) -> Iterator[str]:
    """The limits of a value and, in a list or map, those of what it holds."""
    yield from _range(node, "minimum", "maximum", "")
    yield from _range(node, "minLength", "maxLength", " characters")
    yield from _range(node, "minItems", "maxItems", " items")
    yield from _range(node, "minProperties", "maxProperties", " entries")
    inner = node.get("items") or node.get("additionalProperties")
    if isinstance(inner, dict) and "properties" not in resolve(inner):
        yield from (f"each {limit.removeprefix('each ')}" for limit in _limits(resolve(inner)))


def _range(node: Node, least: str, most: str, unit: str) -> Iterator[str]:
    if least in node and most in node:
        yield f"{node[least]:g}–{node[most]}{unit}"
    elif most in node:
        yield f"≤ {node[most]}{unit}"


def _oneline(node: Node) -> str:
    return " ".join(str(node.get("description", "")).split()).replace("|", "\\|")


def _repeated_fields(title: str) -> frozenset[str]:
    if title not in SAME_AXES:
        return frozenset()
    shared = Axes if SAME_AXES[title][0] is Include else Selector
    return frozenset(_alias(shared, name) for name in shared.model_fields)


def _fields(marked: Mapping[str, tuple[type[Model], tuple[str, ...]]], title: str) -> frozenset[str]:
    if title not in marked:
        return frozenset()
    model, names = marked[title]
    return frozenset(_alias(model, name) for name in names)


def _alias(model: type[Model], name: str) -> str:
    return model.model_fields[name].alias or name


def _without_nulls(node: Any) -> Any:  # noqa: ANN401 - any part of a JSON document
    """A schema with the null of every optional field taken out, and the titles that repeat the fields' names."""
    if isinstance(node, list):
        return [_without_nulls(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {key: _without_nulls(value) for key, value in node.items() if not _is_noise(key, value)}
    options = [option for option in kept.pop("anyOf", []) if option != {"type": "null"}]
    return {**kept, **options[0]} if options else kept


def _is_noise(key: str, value: object) -> bool:
    return (key == "title" and isinstance(value, str)) or (key == "default" and value is None)
