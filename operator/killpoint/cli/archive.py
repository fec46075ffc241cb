"""Files of a run: what it is (``run.json``) and all its evidence (``evidence.json``).

They are copies for people and for later judgement. The journal is the truth while a run is going on.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from killpoint.cli.exits import Exit, Stop
from killpoint.core.summarize import JudgedTrial, Run
from killpoint.local.errors import DISK_FULL
from killpoint.model.cells import Cell
from killpoint.model.rules import Rule
from killpoint.model.summary import Provenance

FORMAT = 1
RUN_FILE = "run.json"
EVIDENCE_FILE = "evidence.json"


class ArchiveError(ValueError):
    """A file of a run cannot be read; says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCard:
    """What a run is and how far it is."""

    run: str
    experiment: str
    digest: str
    server: str
    """The Postgres that holds its journal, without a password."""
    file: str
    """The experiment's file. The commands of its own workers are looked for beside it."""
    started_ms: int
    state: str = "running"
    """``running``, or ``ended``. A run that was interrupted stays running and can be gone on with."""
    result: str | None = None
    judged: int = 0
    trials: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """All that is known of a run, with the specification that it was run from."""

    format: int = FORMAT
    name: str
    journal: str
    workflow: str
    over: bool
    blocked: tuple[str, ...]
    undiscovered: int
    document: dict[str, Any]
    """The experiment as it was given, as a JSON document."""
    provenance: Provenance
    trials: tuple[JudgedTrial, ...]


_CARD: TypeAdapter[RunCard] = TypeAdapter(RunCard)
_ARCHIVE: TypeAdapter[Archive] = TypeAdapter(Archive)


def archive_of(run: Run, *, document: dict[str, Any], provenance: Provenance) -> Archive:
    return Archive(
        name=run.name,
        journal=run.journal,
        workflow=run.workflow,
        over=run.over,
        blocked=tuple(sorted(run.blocked)),
        undiscovered=run.undiscovered,
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
        over=archive.over,
    )


def write_archive(path: Path, archive: Archive) -> None:
    _write(path, _ARCHIVE.dump_json(archive, exclude_defaults=False).decode())


def read_archive(path: Path) -> Archive:
    """A file of evidence. Raises ArchiveError."""
    try:
        archive = _ARCHIVE.validate_json(_read(path))
    except ValidationError as error:
        raise ArchiveError(f"{path} is no evidence of a run: {_first(error)}") from error
    if archive.format != FORMAT:
        raise ArchiveError(f"{path} has format {archive.format}, this killpoint reads {FORMAT}")
    return archive


def write_card(folder: Path, card: RunCard) -> None:
    _write(folder / RUN_FILE, json.dumps(asdict(card), indent=1))


def cards(runs: Path) -> Iterator[RunCard]:
    """The runs whose files lie below a folder, newest first. A broken card is left to its own folder."""
    found = [path for path in runs.glob(f"*/{RUN_FILE}") if path.is_file()]
    readable = [card for path in found if (card := _card(path)) is not None]
    yield from sorted(readable, key=lambda card: -card.started_ms)


def _card(path: Path) -> RunCard | None:
    try:
        return _CARD.validate_json(_read(path))
    except (ValidationError, ArchiveError):
        return None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArchiveError(f"{path} cannot be read: {error}") from error


def _write(path: Path, text: str) -> None:
    """Whole or not at all: a reader never sees half a file, and a full disk keeps the old one. Raises Stop."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror or error}."
        full = error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
        remedy = DISK_FULL if full else "See to that, then run it again: what is finished is kept."
        raise Stop(Exit.NOT_EXECUTED, f"{message}\n{remedy}") from error
    finally:
        with suppress(OSError):  # what keeps it from being removed has been reported
            draft.unlink(missing_ok=True)


def _first(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(str(part) for part in first['loc']) or 'document'}: {first['msg']}"
