"""Setup ``crewai-checkpoint``: a flow with CrewAI Checkpointing. Imports the framework.

Checkpoints are written by the event bus's threads from the live flow: the one that the charge's end has caused can hold
finalize already, and one that prepare's end has caused can hold the charge. So it is each document that says what it
holds, and ``charge.recorded`` is passed on whatever thread made it durable.
"""

from __future__ import annotations

import asyncio
import uuid
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from crewai.state.checkpoint_config import CheckpointConfig
from crewai.state.provider.json_provider import JsonProvider
from pydantic import PrivateAttr

from killpoint_crewai import checkpoints, database
from killpoint_crewai.flow import Payload, charge_flow
from killpoint_crewai.watch import Watch
from killpoint_steps import Driven, Steps
from killpoint_worker import Receipt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from killpoint_worker import Context

# A configuration admits only the framework's own two providers and their subclasses, and its SQLite one needs a newer
# SQLite than many systems have. So both of ours are JSON providers.


class VolumeProvider(JsonProvider):
    """The framework's JSON provider, which writes files; says what it has written."""

    _watch: Watch = PrivateAttr()

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    def checkpoint(self, data: str, location: str, *, parent_id: str | None = None, branch: str = "main") -> str:
        with self._watch.writing():
            path = super().checkpoint(data, location, parent_id=parent_id, branch=branch)
        self._watch.committed(checkpoints.completed(data))
        return path


class PostgresProvider(JsonProvider):
    """The same documents as rows in Postgres; ``location`` is the run. One connection, which the threads share."""

    _connection: database.Connection = PrivateAttr()
    _watch: Watch = PrivateAttr()

    def __init__(self, url: str, watch: Watch) -> None:
        super().__init__()
        self._connection = database.connect(url)
        self._watch = watch
        database.create_table(
            self._connection,
            checkpoints.TABLE,
            "id text PRIMARY KEY, run text NOT NULL, branch text NOT NULL, parent_id text, document text NOT NULL,"
            " saved_at timestamptz NOT NULL DEFAULT clock_timestamp()",
        )

    def checkpoint(self, data: str, location: str, *, parent_id: str | None = None, branch: str = "main") -> str:
        identity = uuid.uuid4().hex
        with self._watch.writing():
            self._connection.execute(
                f"INSERT INTO {checkpoints.TABLE} (id, run, branch, parent_id, document)"  # noqa: S608 - our own name
                " VALUES (%s, %s, %s, %s, %s)",
                (identity, location, branch, parent_id, data),
            )
        self._watch.committed(checkpoints.completed(data))
        return f"{location}#{identity}"

    async def acheckpoint(self, data: str, location: str, *, parent_id: str | None = None, branch: str = "main") -> str:
        return await asyncio.to_thread(self.checkpoint, data, location, parent_id=parent_id, branch=branch)

    def from_checkpoint(self, location: str) -> str:
        row = self._connection.execute(
            f"SELECT document FROM {checkpoints.TABLE} WHERE id = %s",  # noqa: S608 - our own name
            (self.extract_id(location),),
        ).fetchone()
        if row is None:
            raise ValueError(f"there is no checkpoint {location}")
        return str(row[0])

    async def afrom_checkpoint(self, location: str) -> str:
        return await asyncio.to_thread(self.from_checkpoint, location)

    def prune(self, location: str, max_keep: int, *, branch: str = "main") -> int:
        cursor = self._connection.execute(
            f"DELETE FROM {checkpoints.TABLE} WHERE run = %(run)s AND branch = %(branch)s AND id NOT IN ("  # noqa: S608 - our own name
            f"SELECT id FROM {checkpoints.TABLE} WHERE run = %(run)s AND branch = %(branch)s"
            " ORDER BY saved_at DESC LIMIT %(keep)s)",
            {"run": location, "branch": branch, "keep": max_keep},
        )
        return cursor.rowcount

    def extract_id(self, location: str) -> str:
        return location.rpartition("#")[2]


def drive(context: Context, steps: Steps) -> Driven:
    """Run the flow, from its furthest checkpoint where the attempt continues and there is one.

    Raises what the flow raises, also when that is an error of the framework's checkpoint writer after all methods ran.
    """
    run = context.assignment.run
    watch = Watch(context, steps)
    flow = charge_flow(steps, watch, Payload())
    config = _config(context, watch)
    found = checkpoints.furthest(checkpoints.read(context)) if context.assignment.continues else None
    # A flow takes a new id unless it is told the old one; a restored one is told as well, for its later checkpoints.
    inputs = {"id": run}
    if found is None:
        receipt = flow(checkpoint=config).kickoff(inputs=inputs)
    else:
        with _as_file(found) as path:
            receipt = flow().kickoff(inputs=inputs, from_checkpoint=config.model_copy(update={"restore_from": path}))
    return Driven(
        receipt=None if receipt is None else Receipt.from_state(receipt),
        resumed_from=None if found is None else found.id,
    )


def _config(context: Context, watch: Watch) -> CheckpointConfig:
    run = context.assignment.run
    # The framework's default event, task_completed, is one that a flow without a crew never emits: nothing is written.
    events = [context.assignment.coordinates.parameters.get("events", "method_execution_finished")]
    if context.assignment.coordinates.store == "postgres":
        provider = PostgresProvider(context.require_database_url(), watch)
        return CheckpointConfig(location=run, on_events=events, provider=provider)
    location = str(checkpoints.in_volume(context.require_volume(), run))
    return CheckpointConfig(location=location, on_events=events, provider=VolumeProvider(watch))


@contextmanager
def _as_file(checkpoint: checkpoints.Checkpoint) -> Iterator[Path]:
    """A restore asks no provider of ours: it reads a file, and takes the checkpoint's id from the file's name."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{checkpoint.id}_p-none.json"
        path.write_text(checkpoint.text, encoding="utf-8")
        yield path
