"""Setup ``crewai-persist``: a flow with ``@persist``. Imports the framework.

A resume runs from the first method again, with the state that was saved last.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from crewai.flow.persistence import SQLiteFlowPersistence, persist
from crewai.flow.persistence.base import FlowPersistence
from pydantic import BaseModel, PrivateAttr

from killpoint_crewai import database, states
from killpoint_crewai.flow import Payload, charge_flow
from killpoint_crewai.watch import Watch
from killpoint_steps import Driven, Steps
from killpoint_worker import Receipt

if TYPE_CHECKING:
    from pathlib import Path

    from killpoint_worker import Context


class VolumePersistence(SQLiteFlowPersistence):
    """The framework's own SQLite backend on a file in the volume; says what it has saved."""

    _watch: Watch = PrivateAttr()

    def __init__(self, volume: Path, watch: Watch) -> None:
        super().__init__(str(states.in_volume(volume)))
        self._watch = watch

    def save_state(self, flow_uuid: str, method_name: str, state_data: dict[str, Any] | BaseModel) -> None:
        with self._watch.writing():
            super().save_state(flow_uuid, method_name, state_data)
        self._watch.committed((method_name,))


class PostgresPersistence(FlowPersistence):
    """A backend on Postgres: a row for each save, as the framework's own makes one. One connection for the attempt."""

    persistence_type: str = "PostgresPersistence"
    _connection: database.Connection = PrivateAttr()
    _watch: Watch = PrivateAttr()

    def __init__(self, url: str, watch: Watch) -> None:
        super().__init__()
        self._connection = database.connect(url)
        self._watch = watch
        self.init_db()

    def init_db(self) -> None:
        database.create_table(
            self._connection,
            states.TABLE,
            "id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, flow_uuid text NOT NULL, method_name text NOT NULL,"
            " state jsonb NOT NULL, saved_at timestamptz NOT NULL DEFAULT now()",
        )

    def save_state(self, flow_uuid: str, method_name: str, state_data: dict[str, Any] | BaseModel) -> None:
        with self._watch.writing():
            state = state_data.model_dump(mode="json") if isinstance(state_data, BaseModel) else state_data
            self._connection.execute(
                f"INSERT INTO {states.TABLE} (flow_uuid, method_name, state) VALUES (%s, %s, %s)",  # noqa: S608 - our own name
                (flow_uuid, method_name, json.dumps(state)),
            )
        self._watch.committed((method_name,))

    def load_state(self, flow_uuid: str) -> dict[str, Any] | None:
        row = self._connection.execute(
            f"SELECT state FROM {states.TABLE} WHERE flow_uuid = %s ORDER BY id DESC LIMIT 1",  # noqa: S608 - our own name
            (flow_uuid,),
        ).fetchone()
        return None if row is None else row[0]


def drive(context: Context, steps: Steps) -> Driven:
    """Run the flow, or run it again with the state that it saved last. Raises what the flow raises."""
    run = context.assignment.run
    watch = Watch(context, steps)
    payload = Payload(
        word=context.assignment.coordinates.parameters.get("payload", "plain"), number=context.assignment.number
    )
    saved = states.read(context)
    flow = persist(_backend(context, watch))(charge_flow(steps, watch, payload))()
    # A flow takes a new id unless it is told the old one, and would then find nothing of what it saved.
    receipt = flow.kickoff(inputs={"id": run})
    return Driven(
        receipt=None if receipt is None else Receipt.from_state(receipt),
        resumed_from=f"{saved[-1].method}:{saved[-1].number}" if saved else None,
    )


def _backend(context: Context, watch: Watch) -> FlowPersistence:
    if context.assignment.coordinates.store == "postgres":
        return PostgresPersistence(context.require_database_url(), watch)
    return VolumePersistence(context.require_volume(), watch)
