"""Where snapshots of a run's context are kept: a table, or files. Plain SQL and files, no framework.

A snapshot is the document that ``Context.to_dict()`` gives, under the run's id and a sequence number that starts at 1.
A save returns only when the snapshot is durable. Nothing here fences: of two executors of one run that write the same
number, the later one wins, as with any snapshot loop that keeps to the framework's own documentation.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

import psycopg

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SETUP_LOCK = 0x6B70_6C69_0001
"""Advisory lock: ``CREATE TABLE IF NOT EXISTS`` by several workers at once raises a unique violation in all but one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One saved context: its number within the run, the step after which it was taken, and the document itself."""

    sequence: int
    step: str
    document: Mapping[str, Any]


class SnapshotStore(Protocol):
    """Snapshots of one run."""

    def save(self, snapshot: Snapshot) -> None:
        """Make the snapshot durable, then return."""

    def newest(self) -> Snapshot | None:
        """The snapshot with the highest number. Changes nothing, and creates nothing to look into."""


class PostgresSnapshots:
    """Snapshots in the table ``llamaindex_snapshots``. The connection is the caller's, in autocommit mode."""

    def __init__(self, connection: psycopg.Connection[Any], run: str) -> None:
        self._connection = connection
        self._run = run

    def prepare(self) -> None:
        """Create the table where it is missing. Any number of workers may do this at once."""
        if self._exists():
            return
        with self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (SETUP_LOCK,))
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS llamaindex_snapshots ("
                " run text NOT NULL, sequence integer NOT NULL, step text NOT NULL, document jsonb NOT NULL,"
                " taken_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (run, sequence))"
            )

    def save(self, snapshot: Snapshot) -> None:
        self._connection.execute(
            "INSERT INTO llamaindex_snapshots (run, sequence, step, document) VALUES (%s, %s, %s, %s)"
            " ON CONFLICT (run, sequence) DO UPDATE"
            " SET step = excluded.step, document = excluded.document, taken_at = excluded.taken_at",
            (self._run, snapshot.sequence, snapshot.step, json.dumps(snapshot.document)),
        )

    def newest(self) -> Snapshot | None:
        if not self._exists():
            return None
        row = self._connection.execute(
            "SELECT sequence, step, document FROM llamaindex_snapshots WHERE run = %s ORDER BY sequence DESC LIMIT 1",
            (self._run,),
        ).fetchone()
        return None if row is None else Snapshot(sequence=row[0], step=row[1], document=row[2])

    def _exists(self) -> bool:
        row = self._connection.execute("SELECT to_regclass('llamaindex_snapshots') IS NOT NULL").fetchone()
        return row is not None and bool(row[0])


class FileSnapshots:
    """Snapshots as files ``snapshot.<run>.<number>.json`` in the volume.

    A file appears under its name complete and on disk (written elsewhere, fsynced, renamed, directory fsynced), so that
    a kill at any moment leaves either the whole snapshot or none.
    """

    def __init__(self, volume: Path, run: str) -> None:
        self._volume = volume
        self._stem = f"snapshot.{quote(run, safe='')}"

    def save(self, snapshot: Snapshot) -> None:
        text = json.dumps({"sequence": snapshot.sequence, "step": snapshot.step, "document": snapshot.document})
        target = self._volume / f"{self._stem}.{snapshot.sequence:06d}.json"
        partial = target.with_suffix(f".{os.getpid()}.partial")
        with partial.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.rename(target)
        self._sync_volume()

    def newest(self) -> Snapshot | None:
        # Six digits sort as numbers do. What a killed attempt left half written has another suffix.
        files = sorted(self._volume.glob(f"{self._stem}.{'[0-9]' * 6}.json"))
        if not files:
            return None
        content = json.loads(files[-1].read_text(encoding="utf-8"))
        return Snapshot(sequence=content["sequence"], step=content["step"], document=content["document"])

    def _sync_volume(self) -> None:
        descriptor = os.open(self._volume, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
