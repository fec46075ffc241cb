"""Archives: all the evidence of a run, with the specification that it was run from, as one JSON document. Pure.

The same document is a file on a machine and what the operator serves. It is a copy for people and for later judgement:
while a run goes on, the journal is the truth.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from killpoint.core.summarize import JudgedTrial, Run
from killpoint.model.cells import Cell
from killpoint.model.rules import Rule
from killpoint.model.summary import Provenance

FORMAT = 1


class ArchiveError(ValueError):
    """A document of a run cannot be read; says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """All that is known of a run, with the specification that it was run from."""

    format: int = FORMAT
    name: str
    journal: str
    workflow: str
    over: bool
    aborted: bool = False
    blocked: tuple[str, ...]
    undiscovered: int
    narrowed: bool
    document: dict[str, Any]
    """The experiment as it was given, as a JSON document."""
    provenance: Provenance
    trials: tuple[JudgedTrial, ...]


_ARCHIVE: TypeAdapter[Archive] = TypeAdapter(Archive)


def archive_of(run: Run, *, document: dict[str, Any], provenance: Provenance) -> Archive:
    return Archive(
        name=run.name,
        journal=run.journal,
        workflow=run.workflow,
        over=run.over,
        aborted=run.aborted,
        blocked=tuple(sorted(run.blocked)),
        undiscovered=run.undiscovered,
        narrowed=run.narrowed,
        document=document,
        provenance=provenance,
        trials=tuple(trial for _, trials in run.cells for trial in trials),
    )


def run_of_archive(archive: Archive, rules: Sequence[Rule]) -> Run:
    """A stored run, to be held against rules: its own, or others."""
    cells: dict[str, tuple[Cell, list[JudgedTrial]]] = {}
    for trial in archive.trials:
        cell = Cell(coordinates=trial.evidence.coordinates, trials=0)
        cells.setdefault(cell.id, (cell, []))[1].append(trial)
    return Run(
        name=archive.name,
        journal=archive.journal,
        workflow=archive.workflow,
        rules=rules,
        cells=[(replace(cell, trials=len(trials)), trials) for cell, trials in cells.values()],
        blocked=frozenset(archive.blocked),
        undiscovered=archive.undiscovered,
        narrowed=archive.narrowed,
        over=archive.over,
        aborted=archive.aborted,
    )


def encode_archive(archive: Archive) -> bytes:
    return _ARCHIVE.dump_json(archive, exclude_defaults=False)


def decode_archive(data: bytes, *, source: str) -> Archive:
    """The archive behind a document. ``source``: what it is called in ArchiveError."""
    try:
        archive = _ARCHIVE.validate_json(data)
    except ValidationError as error:
        raise ArchiveError(f"{source} is no evidence of a run: {_first(error)}") from error
    if archive.format != FORMAT:
        raise ArchiveError(f"{source} has format {archive.format}, this killpoint reads {FORMAT}")
    return archive


def digest_of(data: bytes) -> str:
    """What a status names a document by."""
    return hashlib.sha256(data).hexdigest()


def _first(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(str(part) for part in first['loc']) or 'document'}: {first['msg']}"
