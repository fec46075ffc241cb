"""Archives: all the evidence of a run, with the specification that it was run from, as one JSON document. Pure.

The same document is a file on a machine and what the operator serves. It is a copy for people and for later judgement:
while a run goes on, the journal is the truth.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from killpoint.core.summarize import JudgedTrial, Run
from killpoint.model.cells import Cell
from killpoint.model.rules import Rule
from killpoint.model.summary import Provenance

FORMAT = 1
PART_BYTES = 1 << 18
"""About how much of a document is in memory at once where it is handed on in parts."""


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
_TRIAL: TypeAdapter[JudgedTrial] = TypeAdapter(JudgedTrial)
_NO_TRIALS = b'"trials":[]}'
_GZIP = 31
"""zlib's word for the format of gzip."""
_GZIP_MARK = b"\x1f\x8b"
"""No JSON document begins like that."""


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


def encoded(archive: Archive, trials: Iterable[JudgedTrial]) -> Iterator[bytes]:
    """The same document, of other trials than the archive has, in parts: of thousands it is never there as a whole."""
    head = encode_archive(replace(archive, trials=()))
    if not head.endswith(_NO_TRIALS):
        raise AssertionError(f"an archive does not end with its trials: {head[-80:]!r}")
    yield head.removesuffix(_NO_TRIALS) + b'"trials":['
    for number, trial in enumerate(trials):
        yield (b"," if number else b"") + _TRIAL.dump_json(trial)
    yield b"]}"


def compressed(parts: Iterable[bytes]) -> tuple[bytes, str]:
    """A document in little room, and the digest of what it was."""
    digest, compressor = hashlib.sha256(), zlib.compressobj(wbits=_GZIP)
    data = []
    for part in parts:
        digest.update(part)
        if made := compressor.compress(part):
            data.append(made)
    return b"".join((*data, compressor.flush())), digest.hexdigest()


def expanded(data: bytes) -> Iterator[bytes]:
    """The document that was compressed, in parts. One that never was is as it is."""
    if not data.startswith(_GZIP_MARK):
        yield data
        return
    expander = zlib.decompressobj(wbits=_GZIP)
    while data and not expander.eof:
        yield expander.decompress(data, PART_BYTES)
        data = expander.unconsumed_tail
    yield expander.flush()


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
    return digest_of_parts((data,))


def digest_of_parts(parts: Iterable[bytes]) -> str:
    """The same, of a document that comes in parts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _first(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(str(part) for part in first['loc']) or 'document'}: {first['msg']}"
