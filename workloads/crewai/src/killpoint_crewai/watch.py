"""Looks at what gets durable, measures it, and says when the charge's result is among it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection
    from contextlib import AbstractContextManager

    from killpoint_steps import Steps
    from killpoint_worker import Context

CHARGE = "charge"


class Watch:
    """Passes ``charge.recorded`` once, as soon as a write that holds charge's result is durable.

    Only in an attempt that ran the charge: a resume that found it recorded and writes it again records nothing new.
    May be used from several threads.
    """

    def __init__(self, context: Context, steps: Steps) -> None:
        self._context = context
        self._steps = steps
        self._lock = threading.Lock()
        self._due = False

    def charged(self) -> None:
        """The charge step ran and its result is on its way into the store."""
        with self._lock:
            self._due = True

    def writing(self) -> AbstractContextManager[None]:
        """Measures a write to the store."""
        return self._context.time("checkpoint")

    def committed(self, methods: Collection[str]) -> None:
        """A write is durable that holds the results of ``methods``."""
        if CHARGE not in methods:
            return
        with self._lock:
            due, self._due = self._due, False
        if due:
            self._steps.recorded(CHARGE)
