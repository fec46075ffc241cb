"""Parkings: what the substrate needs of the app where workers park. ``killpoint.control.parkings`` has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class Parked(Protocol):
    """An attempt that waits at a point, or has been let go on."""

    @property
    def point(self) -> str:
        """With its occurrence where that is not the first: ``charge.after#2``."""

    @property
    def released(self) -> bool: ...


class Parkings(Protocol):
    """Who is parked. Every call is bounded and may be repeated."""

    async def parked(self, runs: Sequence[str]) -> Mapping[tuple[str, str], Parked]:
        """Who is parked, or was released, in these runs: by run and attempt."""

    async def release(self, run: str, attempt: str) -> None:
        """Let an attempt go on. One that is not parked, or was released before, stays as it is."""
