"""Setup ``llamaindex-dbos``: the same workflow on the DBOS runtime, which records each step and recovers at launch."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from dbos import DBOS, DBOSConfig, error
from llama_agents.dbos import DBOSRuntime

from killpoint_llamaindex.dbos_database import migration, open_engine
from killpoint_llamaindex.state import Job
from killpoint_llamaindex.workflow import ChargeWorkflow
from killpoint_steps import Driven, Steps, carry_out
from killpoint_worker import Receipt, Stopped

if TYPE_CHECKING:
    import sqlalchemy
    from dbos import WorkflowHandleAsync
    from workflows.events import StopEvent

    from killpoint_worker import Context, Outcome

EXECUTOR = "killpoint"
"""The same for every attempt: a launch recovers what a dead process of the same executor and version left pending."""

POLLING_SECONDS = 0.05

RUNTIME_POOL_SIZE = 2
"""The least that the runtime takes; its own default is 10 for each attempt."""

RECOVERIES = "100"
"""How often a run is recovered before it is given up: DBOS's own default."""


def execute(context: Context) -> Outcome:
    """Start the run, or let DBOS recover it and wait for its end.

    A run that was recovered as often as it may be is DBOS's dead letter: it was given up on purpose, and says so.
    """
    try:
        return carry_out(context, lambda steps: _drive(context, steps))
    except (error.DBOSAwaitedWorkflowMaxRecoveryAttemptsExceeded, error.MaxRecoveryAttemptsExceededError):
        return Stopped(word="dead-lettered", resumed_from=context.assignment.run)


def _drive(context: Context, steps: Steps) -> Driven:
    database_url = context.require_database_url()
    with open_engine(database_url) as engine:
        return asyncio.run(_carry(context, steps, database_url, engine))


async def _carry(context: Context, steps: Steps, database_url: str, engine: sqlalchemy.Engine) -> Driven:
    workflow, runtime = await _launch(context, steps, database_url, engine)
    try:
        run = context.assignment.run
        known = await DBOS.get_workflow_status_async(run) is not None
        if known and context.assignment.continues:
            # The launch has put the run back into DBOS's queue, or it had ended: either way its result is awaited.
            handle: WorkflowHandleAsync[StopEvent] = await DBOS.retrieve_workflow_async(run)
            effect = (await handle.get_result(polling_interval_sec=POLLING_SECONDS)).result
        else:
            effect = await workflow.run(start_event=Job(order=steps.order.id), run_id=run)
        return Driven(receipt=Receipt(id=effect, replayed=False), resumed_from=run if known else None)
    finally:
        await runtime.destroy()


async def _launch(
    context: Context, steps: Steps, database_url: str, engine: sqlalchemy.Engine
) -> tuple[ChargeWorkflow, DBOSRuntime]:
    parameters = context.assignment.coordinates.parameters
    with migration(database_url, engine) as is_due:
        DBOS(config=_config(context.assignment.run, engine, migrate=is_due))
        runtime = DBOSRuntime(
            polling_interval_sec=POLLING_SECONDS,
            run_migrations_on_launch=is_due,
            pool_size=RUNTIME_POOL_SIZE,
            pool_min_size=1,
            max_recovery_attempts=int(parameters.get("recoveries", RECOVERIES)),
        )
        workflow = ChargeWorkflow(
            steps,
            entering=lambda step: steps.recorded("charge") if step == "finalize" else None,
            payload=parameters.get("payload", "plain"),
            runtime=runtime,
        )
        await runtime.launch()
    return workflow, runtime


def _config(run: str, engine: sqlalchemy.Engine, *, migrate: bool) -> DBOSConfig:
    return DBOSConfig(
        name="killpoint",
        # The runtime hands this to asyncpg, which knows no other driver's name.
        system_database_url=engine.url.set(drivername="postgresql").render_as_string(hide_password=False),
        system_database_engine=engine,
        run_migrations=migrate,
        # Pending runs go to every live worker of their version: with a version per run, none executes another's.
        application_version=run,
        executor_id=EXECUTOR,
        # No conductor (that needs a key), no admin server on its fixed port, no traces: Postgres is the only peer.
        run_admin_server=False,
        enable_otlp=False,
        # Its warning that a run's version is not the latest one would come with nearly every attempt.
        console_log_level=logging.getLevelName(logging.ERROR),
    )
