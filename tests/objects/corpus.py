"""Experiments that a cluster refuses, those at the edge that it takes, and what an API server says of each."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.objects.generated import generated

FOLDER = Path(__file__).resolve().parent
ANSWERS = FOLDER / "answers.yaml"
BASE: Mapping[str, Any] = {
    "apiVersion": "killpoint.dev/v1alpha1",
    "kind": "CrashExperiment",
    "metadata": {"name": "sample"},
    "spec": {"matrix": {"setup": ["langgraph"], "kill": [{"at": ["charge.after"]}]}},
}
REPEATED = re.compile(r"\{(\w)\*(\d+)\}")
"""In a text: ``{a*64}`` is the letter a, 64 times."""
LISTS: Mapping[str, list[Any]] = {
    "{kills*33}": [{"at": [f"charge.after#{number + 2}"]} for number in range(33)],
    "{rules*51}": [{"verdict": ["duplicate"]} for _ in range(51)],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """An object, and the one that it replaces, both as text."""

    name: str
    text: str
    before: str | None = None

    def __str__(self) -> str:
        return self.name


def bad() -> tuple[Sample, ...]:
    """Written by hand, then generated from the schema."""
    return (*_read(FOLDER / "bad.yaml"), *(Sample(name=name, text=_text(one)) for name, one in generated()))


def good() -> tuple[Sample, ...]:
    return tuple(_read(FOLDER / "good.yaml"))


def answers() -> dict[str, list[str]]:
    """Name → what an API server says: ``path: message``, sorted. Nothing: it takes the object."""
    recorded: dict[str, list[str]] = yaml.safe_load(ANSWERS.read_text(encoding="utf-8"))
    return recorded


def _read(file: Path) -> Iterator[Sample]:
    for entry in yaml.safe_load(file.read_text(encoding="utf-8")):
        before = None
        if "before" in entry:
            before = _text(_object({"add": entry["before"]}))
        text = entry["text"] if "text" in entry else _text(_object(entry))
        yield Sample(name=entry["name"], text=text, before=before)


def _object(entry: Mapping[str, Any]) -> object:
    if "object" in entry:
        return _written_out(entry["object"])
    made: dict[str, Any] = copy.deepcopy(dict(BASE))
    if "spec" in entry:
        made["spec"] = entry["spec"]
    else:
        made["spec"] |= entry.get("add", {})
        made["spec"]["matrix"] |= entry.get("matrix", {})
    made["metadata"] |= entry.get("metadata", {})
    return _written_out(made)


def _written_out(value: Any) -> Any:  # noqa: ANN401 - any part of a document
    """A value with its abbreviations written out."""
    if isinstance(value, dict):
        return {_written_out(name): _written_out(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_written_out(item) for item in value]
    if isinstance(value, str):
        return LISTS.get(value, REPEATED.sub(lambda found: found[1] * int(found[2]), value))
    return value


class _Dumper(yaml.SafeDumper):
    """Writes out what stands twice, where YAML could refer to the first."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - of nothing
        return True


def _text(document: object) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
