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
    """Says once that the charge of this attempt is recorded, as soon as savers have committed all that holds it.

    A step's writes belong to the checkpoint before the step. Under durability ``async`` they may be committed earlier
    than that checkpoint, and are then found by nobody: both have to be there. What an earlier attempt recorded is read
    back and written again in later checkpoints; that is not this attempt's charge, so nothing is said of it.
    Savers call from threads of the graph's executor.
    """

    def __init__(self, recorded: Callable[[], None], timed: Callable[[], AbstractContextManager[None]]) -> None:
        self._recorded = recorded
        self._lock = threading.Lock()
        self._expected: dict[str, Any] | None = None
        self._checkpoints: set[str] = set()
        self._written_for: set[str] = set()
        self.timed = timed
        """Measures the block as time spent on checkpoints."""

    def expect(self, receipt: Receipt) -> None:
        """The charge step of this attempt is about to return ``receipt``."""
        with self._lock:
            self._expected = receipt.state()

    def found_checkpoint(self, checkpoint: str) -> None:
        """The store held this checkpoint when the attempt began."""
        with self._lock:
            self._checkpoints.add(checkpoint)

    def committed_checkpoint(self, checkpoint: str, values: Iterable[tuple[str, Any]]) -> None:
        """A saver has durably written a checkpoint with these values, by channel."""
        with self._lock:
            self._checkpoints.add(checkpoint)
            holds = self._is_expected_in(values) or checkpoint in self._written_for
        self._say_if(holds)

    def committed_writes(self, checkpoint: str, values: Iterable[tuple[str, Any]]) -> None:
        """A saver has durably written what a step returned, as belonging to ``checkpoint``."""
        with self._lock:
            if self._is_expected_in(values):
                self._written_for.add(checkpoint)
            holds = checkpoint in self._written_for and checkpoint in self._checkpoints
        self._say_if(holds)

    def _is_expected_in(self, values: Iterable[tuple[str, Any]]) -> bool:
        return self._expected is not None and (CHARGE_CHANNEL, self._expected) in values

    def _say_if(self, holds: bool) -> None:  # noqa: FBT001 - reads as its name
        with self._lock:
            if not holds or self._expected is None:
                return
            self._expected = None
        self._recorded()
