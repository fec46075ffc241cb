"""Runs a worker program for one assignment: header, action, outcome, exit."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Mapping
from typing import Any, NoReturn, get_args

from killpoint_worker.assignment import Assignment, AssignmentError, Do, Environment
from killpoint_worker.control import ControlClient
from killpoint_worker.ends import EXIT_FAILED
from killpoint_worker.freeze import Freezer
from killpoint_worker.log import TerminationLog, encode, failed
from killpoint_worker.payments import PaymentsClient
from killpoint_worker.points import Points
from killpoint_worker.program import Context, Finished, Outcome, WorkerProgram
from killpoint_worker.reach import wait_until_reachable


def run_worker(program: WorkerProgram) -> NoReturn:
    """Carry out the assignment in the environment and end the process: 0, or 1 for a failed outcome.

    The process ends at once after the outcome's line: threads that a framework left behind neither delay it nor
    write after it.
    """
    environment = Environment.from_environment()
    try:
        assignment = Assignment.from_environment()
    except AssignmentError as error:
        sys.stderr.write(f"killpoint-worker: {error}\n")
        _leave_without_header(environment, error)
    log = TerminationLog(environment.termination_log, attempt=assignment.attempt, nonce=assignment.nonce)
    _leave(perform(program, assignment, environment, log))


def perform(program: WorkerProgram, assignment: Assignment, environment: Environment, log: TerminationLog) -> int:
    """Do what the assignment asks for, write the outcome and return the exit code."""
    try:
        log.outcome(_document(program, assignment, environment, log))
    except BaseException as error:  # noqa: BLE001 - the one supervision point: whatever ends an attempt is its outcome
        traceback.print_exc()
        log.outcome(failed(error))
        return EXIT_FAILED
    return 0


def _document(
    program: WorkerProgram, assignment: Assignment, environment: Environment, log: TerminationLog
) -> dict[str, Any]:
    if assignment.action == "describe":
        return _described(program)
    wait_until_reachable([environment.payments_url, environment.database_url, environment.control_url])
    context = _context(assignment, environment, log)
    if assignment.action == "inspect":
        return {"outcome": "inspected", "recorded": dict(program.inspect(context))}
    began = time.monotonic()
    with context.time("run"):
        outcome = program.execute(context)
    first = context.points.first_passed_seconds
    if assignment.action == "resume" and first is not None:
        context.timings.add("resume", (first - began) * 1000)
    return _ended(outcome, context.timings.milliseconds())


def _context(assignment: Assignment, environment: Environment, log: TerminationLog) -> Context:
    token = environment.token or ""
    parking, freezing = None, None
    if environment.control_url:
        parking = ControlClient(environment.control_url, token, attempt=assignment.attempt)
        if any(item.do == "freeze" for item in assignment.schedule):
            freezing = Freezer(environment.control_url, token, attempt=assignment.attempt)
    return Context(
        assignment=assignment,
        points=Points(log, assignment.schedule, parking=parking, freezing=freezing),
        payments=PaymentsClient(environment.payments_url, token) if environment.payments_url else None,
        database_url=environment.database_url,
        volume=environment.volume,
    )


def _described(program: WorkerProgram) -> dict[str, Any]:
    description = program.describe()
    return {
        "outcome": "described",
        "worker": description.worker,
        "points": list(description.points),
        "parameters": {name: list(values) for name, values in description.parameters.items()},
        "versions": description.versions(),
        "does": list(get_args(Do)),
    }


def _ended(outcome: Outcome, timings: Mapping[str, float]) -> dict[str, Any]:
    claims = [{"action": claim.action, "order": claim.order, "effect": claim.effect} for claim in outcome.claims]
    return {
        "outcome": "finished" if isinstance(outcome, Finished) else outcome.word,
        "resumedFrom": outcome.resumed_from,
        "claims": claims,
        "timings": timings,
    }


def _leave_without_header(environment: Environment, error: AssignmentError) -> NoReturn:
    """Without an assignment there is no nonce, so this line proves nothing; it helps whoever reads the file."""
    try:
        environment.termination_log.write_bytes(encode(failed(error)))
    except OSError as unwritable:
        sys.stderr.write(f"killpoint-worker: no termination log: {unwritable}\n")
    _leave(EXIT_FAILED)


def _leave(code: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            # The reader of our output is gone; the outcome stands in the log, so the exit code is still right.
            continue
    os._exit(code)
