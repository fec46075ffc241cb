"""When the charge is recorded: a fact about what a saver has committed, not about control flow."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

from killpoint_worker import Receipt

CHARGE_CHANNEL = "receipt"
"""The channel that only the charge step writes."""


class Recording:
    """Says once that the charge of this attempt is recorded, as soon as a saver has committed it.

    What an earlier attempt recorded is read back and written again in later checkpoints; that is not this attempt's
    charge, so nothing is said of it. Savers call from threads of the graph's executor.
    """

    def __init__(self, recorded: Callable[[], None], timed: Callable[[], AbstractContextManager[None]]) -> None:
        self._recorded = recorded
        self._lock = threading.Lock()
        self._expected: dict[str, Any] | None = None
        self.timed = timed
        """Measures the block as time spent on checkpoints."""

    def expect(self, receipt: Receipt) -> None:
        """The charge step of this attempt is about to return ``receipt``."""
        with self._lock:
            self._expected = receipt.state()

    def committed(self, values: Iterable[tuple[str, Any]]) -> None:
        """A saver has durably written these values, by channel."""
        found = [value for channel, value in values if channel == CHARGE_CHANNEL]
        with self._lock:
            if self._expected is None or self._expected not in found:
                return
            self._expected = None
        self._recorded()
