"""killpoint_langgraph where the application fences its runs, or does not (FENCE): the owner of a run acts, nobody else.

``run.begun`` is passed before an executor claims the run, ``charge.begun`` before it is asked whether it still owns it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from typing import NoReturn, Protocol

import psycopg

from killpoint_langgraph import LangGraphProgram, program
from killpoint_langgraph.graph import build_graph
from killpoint_steps import Prepared, Steps
from killpoint_worker import Context, Outcome, Receipt, Stopped, run_worker


class LostRunError(Exception):
    """Another executor owns the run."""


class Fence(Protocol):
    """What stands between several executors of a run."""

    def claim(self) -> bool:
        """Become the run's owner; false where it has one."""

    def require(self) -> None:
        """Raises LostRunError where this executor is the owner no more."""


class NoFence:
    """The framework by itself: whoever comes acts."""

    def __init__(self, context: Context) -> None:
        pass

    def claim(self) -> bool:
        return True

    def require(self) -> None:
        pass


class Lease:
    """A row for each run: its owner, until when, and an epoch that counts owners. Each change compares and sets."""

    def __init__(self, context: Context) -> None:
        self._database_url = context.require_database_url()
        self._who = {"run": context.assignment.run, "owner": context.assignment.attempt}
        self._epoch: int | None = None

    def claim(self) -> bool:
        self._epoch = self._changed(
            "INSERT INTO run_owners (run, owner, epoch, until) VALUES (%(run)s, %(owner)s, 1, now() + '10 minutes')"
            " ON CONFLICT (run) DO UPDATE"
            " SET owner = excluded.owner, epoch = run_owners.epoch + 1, until = excluded.until"
            " WHERE run_owners.until < now() RETURNING epoch"
        )
        return self._epoch is not None

    def require(self) -> None:
        renewed = self._changed(
            "UPDATE run_owners SET until = now() + '10 minutes'"
            " WHERE run = %(run)s AND owner = %(owner)s AND epoch = %(epoch)s RETURNING epoch"
        )
        if renewed is None:
            raise LostRunError(f"epoch {self._epoch} of run {self._who['run']} is over")

    def _changed(self, statement: str) -> int | None:
        with closing(psycopg.connect(self._database_url, autocommit=True)) as connection:
            row = connection.execute(statement.encode(), {**self._who, "epoch": self._epoch}).fetchone()
        return None if row is None else int(row[0])


FENCES: dict[str, Callable[[Context], Fence]] = {"none": NoFence, "lease": Lease}


class FencedSteps(Steps):
    """The steps, each of which asks first."""

    def __init__(self, context: Context, fence: Fence) -> None:
        super().__init__(context)
        self._fence = fence

    def prepare(self) -> Prepared:
        self._fence.require()
        return super().prepare()

    def charge(self, saved_key: str | None) -> Receipt:
        self._points.passed("charge.begun")
        self._fence.require()
        return super().charge(saved_key)

    def finalize(self, receipt: Receipt) -> None:
        self._fence.require()
        super().finalize(receipt)


class FencedProgram(LangGraphProgram):
    """An executor that has no right to the run, or loses it, yields."""

    def execute(self, context: Context) -> Outcome:
        fence = FENCES[os.environ["FENCE"]](context)
        steps = FencedSteps(context, fence)
        program.build_graph = lambda _, *further: build_graph(steps, *further)  # type: ignore[attr-defined]
        context.points.passed("run.begun")
        if not fence.claim():
            return Stopped(word="yielded")
        try:
            return super().execute(context)
        except LostRunError:
            return Stopped(word="yielded")


def main() -> NoReturn:
    run_worker(FencedProgram())
