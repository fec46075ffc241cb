"""Files of a run: what it is (``run.json``) and all its evidence (``evidence.json``).

They are copies for people and for later judgement. The journal is the truth while a run is going on.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from killpoint.cli.exits import Exit, Stop
from killpoint.journal.archive import Archive, ArchiveError, decode_archive, encode_archive
from killpoint.local.errors import DISK_FULL

RUN_FILE = "run.json"
EVIDENCE_FILE = "evidence.json"


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
    programs: str = ""
    """Of the programs that it runs: another fingerprint is another run."""
    narrowed: bool = False
    """Whether it is a part of an experiment (a filter, a replay), and never stands for the whole."""


_CARD: TypeAdapter[RunCard] = TypeAdapter(RunCard)


def write_archive(path: Path, archive: Archive) -> None:
    _write(path, encode_archive(archive).decode())


def read_archive(path: Path) -> Archive:
    """A file of evidence. Raises ArchiveError."""
    return decode_archive(_read(path).encode(), source=str(path))


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
    except OSError as error:
        raise ArchiveError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from error
    except UnicodeDecodeError as error:
        raise ArchiveError(f"{path} is no evidence: it is not UTF-8") from error


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
