"""The workloads folder, and the catalog that its setup.toml files are.

A checkout's ``workloads/`` next to ``operator/`` wins over the one that the wheel carries.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from killpoint.local.errors import WorkloadsError
from killpoint.model.catalog import Catalog, Parameter, Setup

SHARED = ("steps", "worker")
"""The projects that every worker may import."""

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_KEYS = frozenset(
    {
        "name", "summary", "module", "command", "stores", "resumes", "keys", "workflows", "points",
        "parameters", "versions", "forkable", "needs_database", "image",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Workloads:
    """A folder with one project per workload."""

    folder: Path

    @classmethod
    def find(cls, package: Path) -> Workloads:
        """``package`` is the folder of the installed killpoint package."""
        candidates = (package.parent.parent / "workloads", package / "_data" / "workloads")
        in_checkout = package.parent.name == "operator"
        for candidate in candidates if in_checkout else candidates[1:]:
            if (candidate / "worker").is_dir():
                return cls(folder=candidate)
        raise WorkloadsError(
            f"killpoint's workloads are missing: looked for {' and '.join(map(str, candidates))}",
            remedy="Install killpoint again, or run it from a complete checkout.",
        )

    def project(self, name: str) -> Path:
        return self.folder / name

    def sources(self, project: str) -> tuple[Path, ...]:
        """What goes onto a worker's PYTHONPATH: the project's own packages, and those that every worker shares."""
        folders = (self.folder / name / "src" for name in dict.fromkeys((project, *SHARED)))
        return tuple(folder for folder in folders if folder.is_dir())

    def catalog(self) -> Catalog:
        """Every setup of every project, by name. Raises WorkloadsError with file, key and what was expected."""
        setups: dict[str, Setup] = {}
        for file in sorted(self.folder.glob("*/setup.toml")):
            for setup in read_setups(file):
                other = setups.get(setup.name)
                if other is not None:
                    raise _wrong(file, "name", f"a name of its own: {setup.name!r} is in {other.project} already")
                setups[setup.name] = setup
        return tuple(setups[name] for name in sorted(setups))


def read_setups(file: Path) -> tuple[Setup, ...]:
    """The setups of one setup.toml."""
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise WorkloadsError(f"{file} cannot be read: {error}", remedy="Correct the file.") from error
    entries = document.get("setup")
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise _wrong(file, "setup", "one or more [[setup]] tables")
    unknown = sorted(set(document) - {"setup"})
    if unknown:
        raise _wrong(file, unknown[0], "nothing but [[setup]] tables")
    return tuple(
        _Entry(file=file, path=f"setup[{number}]", table=entry).setup() for number, entry in enumerate(entries)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    file: Path
    path: str
    table: Mapping[str, Any]

    def setup(self) -> Setup:
        unknown = sorted(set(self.table) - _KEYS)
        if unknown:
            raise self._wrong(unknown[0], f"one of {', '.join(sorted(_KEYS))}")
        if ("module" in self.table) == ("command" in self.table):
            raise self._wrong("module", "either module or command")
        return Setup(
            name=self._word("name"),
            summary=self._text("summary"),
            project=self.file.parent.name,
            module=self._module(),
            command=self._texts("command") if "command" in self.table else (),
            stores=self._texts("stores"),
            resumes=self._texts("resumes"),
            keys=self._texts("keys"),
            workflows=self._texts("workflows"),
            points=self._texts("points"),
            parameters=self._parameters(),
            versions=self._texts("versions") if self.table.get("versions", []) != [] else (),
            forkable=self._flag("forkable"),
            needs_database=self._flag("needs_database"),
            has_image=self._flag("image", default=True),
        )

    def _text(self, key: str) -> str:
        value = self.table.get(key)
        if not isinstance(value, str) or not value.strip():
            raise self._wrong(key, "a text")
        return value

    def _word(self, key: str) -> str:
        value = self._text(key)
        if not _NAME.fullmatch(value):
            raise self._wrong(key, f"lower-case letters, digits and '-', at most 63 of them, not {value!r}")
        return value

    def _module(self) -> str | None:
        if "module" not in self.table:
            return None
        value = self._text("module")
        if not _MODULE.fullmatch(value):
            raise self._wrong("module", f"the name of a Python module, not {value!r}")
        return value

    def _texts(self, key: str) -> tuple[str, ...]:
        value = self.table.get(key)
        if not _is_texts(value):
            raise self._wrong(key, "a list of one or more texts")
        if len(set(value)) != len(value):
            raise self._wrong(key, "each value once")
        return tuple(value)

    def _flag(self, key: str, *, default: bool = False) -> bool:
        value = self.table.get(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def _parameters(self) -> tuple[Parameter, ...]:
        table = self.table.get("parameters", {})
        if not isinstance(table, dict):
            raise self._wrong("parameters", "a table of tables: name = { values = [...], default = ... }")
        return tuple(self._parameter(name, value) for name, value in sorted(table.items()))

    def _parameter(self, name: str, value: object) -> Parameter:
        key = f"parameters.{name}"
        if not isinstance(value, dict) or set(value) != {"values", "default"} or not _is_texts(value["values"]):
            raise self._wrong(key, "{ values = [texts], default = one of them }")
        if value["default"] not in value["values"]:
            raise self._wrong(f"{key}.default", f"one of {', '.join(value['values'])}")
        return Parameter(name=name, values=tuple(value["values"]), default=value["default"])

    def _wrong(self, key: str, expected: str) -> WorkloadsError:
        return _wrong(self.file, f"{self.path}.{key}", expected)


def _is_texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and bool(value) and all(isinstance(text, str) and text for text in value)


def _wrong(file: Path, key: str, expected: str) -> WorkloadsError:
    return WorkloadsError(f"{file}: {key}: expected {expected}", remedy="Correct the file.")
