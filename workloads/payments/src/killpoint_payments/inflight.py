"""How many requests of each run are in the service's hands. In memory: a process that is gone has none."""

from __future__ import annotations


class InFlight:
    """A count for each run, from the reading of a request's body to the end of its transaction."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def enter(self, run: str) -> None:
        """A request of ``run`` has been read."""
        self._counts[run] = self._counts.get(run, 0) + 1

    def leave(self, run: str) -> None:
        """The transaction of a request of ``run`` has ended, either way."""
        left = self._counts[run] - 1
        if left:
            self._counts[run] = left
        else:
            del self._counts[run]

    def of(self, run: str) -> int:
        """How many requests of ``run`` are in flight now."""
        return self._counts.get(run, 0)

    def total(self) -> int:
        """How many requests are in flight now."""
        return sum(self._counts.values())
