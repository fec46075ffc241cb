"""From a file to a CrashExperiment, or to everything that is wrong with it, in the order of the text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from killpoint.api.available import Where
from killpoint.api.document import Document, Json, document_of
from killpoint.api.problems import Location, Position, Problem, ProblemsError, located, meant, unsupported
from killpoint.api.salvage import place_of, salvage
from killpoint.api.v1alpha1.spec import API_VERSION, KIND, CrashExperiment
from killpoint.api.validate import own_problems, problems_of
from killpoint.api.wording import errors_in, problem_of
from killpoint.model.catalog import Catalog

BYTES_MAX = 1 << 20
SET_BY_SERVER = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generateName",
        "generation",
        "managedFields",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
"""Metadata that ``kubectl get -o yaml`` shows and that says nothing about the experiment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Check:
    """What a document is checked against beyond its form."""

    catalog: Catalog
    where: Where

    def whole(self, document: CrashExperiment) -> tuple[Problem, ...]:
        return problems_of(document, self.catalog, self.where)

    def parts(self, document: CrashExperiment) -> tuple[Problem, ...]:
        return own_problems(document, self.catalog, self.where)


def load_file(path: Path, catalog: Catalog | None = None, where: Where = Where.LOCAL) -> CrashExperiment:
    """Load an experiment's file. Raises ProblemsError, which names it."""
    try:
        with path.open("rb") as file:
            data = file.read(BYTES_MAX + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ProblemsError([Problem(path="", message=f"the file cannot be read: {reason}")], str(path)) from error
    return load(data, source=str(path), catalog=catalog, where=where)


def load(
    data: bytes | str, *, source: str = "", catalog: Catalog | None = None, where: Where = Where.LOCAL
) -> CrashExperiment:
    """Load an experiment from YAML or JSON. Raises ProblemsError with all mistakes, sorted by position.

    With a catalog, also what only the setups, and the place where it is to run, can show to be wrong is looked for.
    """
    check = None if catalog is None else _Check(catalog=catalog, where=where)
    try:
        return _loaded(document_of(text_of(data)), check)
    except ProblemsError as error:
        raise ProblemsError(error.problems, source) from error.__cause__


def from_fields(fields: Mapping[str, Json], *, source: str = "") -> CrashExperiment:
    """An experiment from a JSON document: one stored with a run, or an object of a cluster. Raises ProblemsError."""
    try:
        return CrashExperiment.model_validate_json(json.dumps(_own_fields(fields)))
    except ValidationError as error:
        raise ProblemsError(map(problem_of, errors_in(error)), source) from None


def text_of(data: bytes | str) -> str:
    """The text of a document, or ProblemsError where it is too large or no text."""
    raw = data.encode() if isinstance(data, str) else data
    if len(raw) > BYTES_MAX:
        raise ProblemsError([Problem(path="", message=f"Too long: may not be more than {BYTES_MAX} bytes")])
    if b"\0" in raw:
        raise ProblemsError([Problem(path="", message="not a text file", suggestion="an experiment is YAML in UTF-8")])
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        column = len(before[before.rfind(b"\n") + 1 :].decode(errors="replace")) + 1
        position = Position(line=before.count(b"\n") + 1, column=column)
        message = f"not UTF-8: the byte 0x{raw[error.start]:02x} is not allowed here"
        raise ProblemsError([Problem(path="", message=message, position=position)]) from error


def _loaded(document: Document, check: _Check | None) -> CrashExperiment:
    value = document.value
    if not isinstance(value, dict):
        message = "not an experiment: the document is not a mapping"
        remedy = "start with apiVersion, kind, metadata and spec"
        raise ProblemsError([*document.problems, Problem(path="", message=message, suggestion=remedy)])
    _refuse_other_kinds(document, value)
    pruned = _own_fields(value)
    try:
        experiment = CrashExperiment.model_validate_json(json.dumps(pruned))
    except ValidationError as error:
        errors = errors_in(error)
        found = [*document.problems, *map(problem_of, errors)]
        further = _further(pruned, map(place_of, errors), check)
        raise ProblemsError(_all_problems(document, found, further)) from None
    found = [*document.problems, *(check.whole(experiment) if check else ())]
    if found:
        raise ProblemsError(_all_problems(document, found, ()))
    return experiment


def _refuse_other_kinds(document: Document, value: dict[str, Json]) -> None:
    """Something else altogether is refused in one sentence, not in one for each of its fields."""
    kind, version = value.get("kind"), value.get("apiVersion")
    found = []
    if isinstance(kind, str) and kind != KIND and meant(kind, [KIND]) is None:
        found.append(unsupported("kind", kind, [KIND]))
    if isinstance(version, str) and version != API_VERSION:
        found.append(unsupported("apiVersion", version, [API_VERSION]))
    if found and not (kind == KIND and meant(str(version), [API_VERSION])):
        raise ProblemsError(located(found, document.positions))


def _own_fields(value: Mapping[str, Json]) -> dict[str, Json]:
    """The document without what a server adds to it."""
    metadata = value.get("metadata")
    if isinstance(metadata, dict):
        own: Json = {name: member for name, member in metadata.items() if name not in SET_BY_SERVER}
        value = {**value, "metadata": own}
    return {name: member for name, member in value.items() if name != "status"}


def _further(value: dict[str, Json], mistakes: Iterable[Location], check: _Check | None) -> tuple[Problem, ...]:
    """What else is wrong, in the parts that have the right form."""
    salvaged = salvage(value.get("spec"), mistakes)
    if salvaged is None or check is None:
        return ()
    document, rest = salvaged
    return rest.restored(check.parts(document)) if rest.setups_are_whole else ()


def _all_problems(document: Document, found: Iterable[Problem], further: Iterable[Problem]) -> tuple[Problem, ...]:
    """All problems in the order of the text; of each place, the first that was found."""
    first: dict[str, Problem] = {}
    for problem in (*found, *further):
        first.setdefault(problem.path, problem)
    return located(first.values(), document.positions)
