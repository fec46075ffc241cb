"""What CrewAI Checkpointing left of a run, read in the store's plain format. No framework; changes nothing.

A checkpoint is a JSON document: the flows of the process (``entities``) and the events so far (``event_record``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from killpoint_crewai.database import connect, has_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from killpoint_worker import Context

TABLE = "crewai_checkpoints"
"""Our table in Postgres: id, run, branch, parent_id, document, saved_at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A document that can be read, with what decides whether to go on from it."""

    id: str
    text: str
    completed: frozenset[str]
    """Methods that any flow of the document lists as completed."""
    restorable: frozenset[str]
    """Those of the document's first flow, which is the one that the framework restores.

    The checkpoints of a restored flow begin with a stale one that has completed nothing: they list what was done and
    restore none of it.
    """
    events: int

    @property
    def rank(self) -> tuple[int, int]:
        """Higher is further: most completed methods, then most events.

        Several threads write checkpoints, under names in whole seconds: neither names nor times say which is newest.
        """
        return (len(self.restorable), self.events)


def furthest(checkpoints: Iterable[Checkpoint]) -> Checkpoint | None:
    """The one to go on from, if there is any."""
    return max(checkpoints, key=lambda checkpoint: checkpoint.rank, default=None)


def parse(identity: str, text: str) -> Checkpoint | None:
    """The checkpoint, or None for what a kill left of one: the framework's file writes are not atomic."""
    try:
        document = json.loads(text)
        flows = [_completed(entity) for entity in document["entities"] if entity.get("entity_type") == "flow"]
        events = len(document["event_record"]["nodes"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return Checkpoint(
        id=identity,
        text=text,
        completed=frozenset().union(*flows),
        restorable=flows[0] if flows else frozenset(),
        events=events,
    )


def completed(text: str) -> frozenset[str]:
    """The methods that the document lists as completed."""
    checkpoint = parse("", text)
    return frozenset() if checkpoint is None else checkpoint.completed


def _completed(entity: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(entity.get("checkpoint_completed_methods") or ())


def in_volume(volume: Path, run: str) -> Path:
    """The folder that the framework's JSON provider writes a run's checkpoints to."""
    return volume / "crewai-checkpoints" / quote(run, safe="")


def read(context: Context) -> tuple[Checkpoint, ...]:
    """The run's readable checkpoints, in no order."""
    run = context.assignment.run
    if context.assignment.coordinates.store == "postgres":
        return read_database(context.require_database_url(), run)
    return read_volume(context.require_volume(), run)


def read_volume(volume: Path, run: str) -> tuple[Checkpoint, ...]:
    """The run's readable checkpoints among the files, in no order."""
    found = (
        parse(path.stem.partition("_p-")[0], path.read_text(encoding="utf-8", errors="replace"))
        for path in in_volume(volume, run).rglob("*.json")
    )
    return tuple(checkpoint for checkpoint in found if checkpoint is not None)


def read_database(url: str, run: str) -> tuple[Checkpoint, ...]:
    """The run's checkpoints in Postgres, in no order."""
    with connect(url) as connection:
        if not has_table(connection, TABLE):
            return ()
        rows = connection.execute(
            f"SELECT id, document FROM {TABLE} WHERE run = %s",  # noqa: S608 - our own name
            (run,),
        )
        found = [parse(identity, text) for identity, text in rows]
    return tuple(checkpoint for checkpoint in found if checkpoint is not None)
