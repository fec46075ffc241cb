"""Looks into the store: which steps' results are on record? Plain SQL and files, no framework, nothing is written."""

from __future__ import annotations

import base64
import pickletools
from typing import TYPE_CHECKING

import psycopg

from killpoint_llamaindex.documents import has_charged
from killpoint_llamaindex.stores import CONNECT_SECONDS_MAX, open_snapshots

if TYPE_CHECKING:
    from collections.abc import Mapping

    from killpoint_worker import Context

DBOS_CHARGE = "charge.charge"
"""``<workflow>.<step>``: the name under which the runtime registers a step with DBOS."""


def of_snapshots(context: Context) -> Mapping[str, bool]:
    """Whether the newest snapshot holds the charge's result."""
    with open_snapshots(context, prepare=False) as store:
        snapshot = store.newest()
    return {"charge": snapshot is not None and has_charged(snapshot.document)}


def of_dbos(context: Context) -> Mapping[str, bool]:
    """Whether DBOS has the result of the run's charge step on record.

    The state store is no proof: it is written while the step still runs, apart from the step's record.
    """
    with psycopg.connect(
        context.require_database_url(), autocommit=True, connect_timeout=CONNECT_SECONDS_MAX
    ) as connection:
        connection.execute("SET default_transaction_read_only = on")
        found = connection.execute("SELECT to_regclass('dbos.operation_outputs') IS NOT NULL").fetchone()
        if found is None or not found[0]:
            return {"charge": False}
        rows = connection.execute(
            "SELECT output FROM dbos.operation_outputs"
            " WHERE workflow_uuid = %s AND function_name = %s AND output IS NOT NULL AND error IS NULL",
            (context.assignment.run, DBOS_CHARGE),
        ).fetchall()
    return {"charge": any(is_result(row[0]) for row in rows)}


def is_result(output: str) -> bool:
    """Whether a step's record is the event that it returned.

    The runtime records a step that raised as an output as well, one of another type. The record is a pickle: its
    opcodes are read for the names in it and nothing of it is carried out.
    """
    names = {argument for _, argument, _ in pickletools.genops(base64.b64decode(output)) if isinstance(argument, str)}
    return {"StepWorkerResult", "Charged"} <= names
