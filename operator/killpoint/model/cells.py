"""Cells and trials: one combination of the matrix, and one run of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

CONTROL = "none"
"""The word that stands for "no kill" wherever a kill's name is shown or matched."""


class Method(StrEnum):
    """How an attempt is ended, or kept from going on, at a point."""

    SIGKILL = "sigkill"
    """It kills itself in the very line after the point."""
    EXIT = "exit"
    """It leaves at once with its own exit code; nothing is flushed or closed."""
    OUT_OF_MEMORY = "out-of-memory"
    """It takes memory until the kernel kills it."""
    DELETE_POD = "delete-pod"
    """It parks, and its pod is deleted."""
    EVICT = "evict"
    """It parks, and its pod is evicted through the eviction API."""
    FREEZE = "freeze"
    """It is stopped, another executor takes over, and then it goes on: the zombie with a stale fence."""

    @property
    def parks(self) -> bool:
        """Whether the attempt waits at the point for the harness to act."""
        return self in {Method.DELETE_POD, Method.EVICT, Method.FREEZE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """Where and how the attempts of a trial are killed.

    ``at[i]`` is the point at which attempt ``i + 1`` is killed, with an occurrence where it is not the first
    passing: ``"charge.after#2"``. An empty ``at`` is a control: nothing is killed.
    """

    at: tuple[str, ...] = ()
    method: Method = Method.SIGKILL
    name: str = CONTROL

    @property
    def is_control(self) -> bool:
        return not self.at


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinates:
    """A cell's place in the matrix. Axes that the setup lacks have collapsed to their defaults."""

    setup: str
    store: str = "postgres"
    key: str = "stable"
    resume: str = "continue"
    kill: Kill = Kill()
    parameters: tuple[tuple[str, str], ...] = ()
    """Further axes by name, sorted; only the worker interprets them."""

    def words(self) -> dict[str, str]:
        """Every coordinate as a word, by axis name, in the order in which people read them."""
        return {
            "setup": self.setup,
            "store": self.store,
            "key": self.key,
            "resume": self.resume,
            **dict(self.parameters),
            "kill": self.kill.name,
        }

    def non_default(self) -> dict[str, object]:
        """The coordinates that a cell's id is made of: an axis added later keeps the ids of old cells."""
        default = Coordinates(setup="")
        words: dict[str, object] = {"setup": self.setup}
        for axis in ("store", "key", "resume"):
            if getattr(self, axis) != getattr(default, axis):
                words[axis] = getattr(self, axis)
        if not self.kill.is_control:
            words["kill"] = {"at": list(self.kill.at), "method": self.kill.method.value}
        if self.parameters:
            words["parameters"] = dict(self.parameters)
        return words


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One combination of the matrix."""

    coordinates: Coordinates
    trials: int
    first: int = 1
    """The first trial's number: a replay runs one trial under the number that it had."""

    @property
    def numbers(self) -> range:
        """The numbers of its trials."""
        return range(self.first, self.first + self.trials)

    @property
    def id(self) -> str:
        """Eight hexadecimal digits from the non-default coordinates alone."""
        return _id_of(self.coordinates)

    @property
    def is_control(self) -> bool:
        return self.coordinates.kill.is_control


@lru_cache(maxsize=8192)
def _id_of(coordinates: Coordinates) -> str:
    """Kept: it is asked for many times in each pass over a run."""
    text = json.dumps(coordinates.non_default(), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:8]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class TrialId:
    """One run of a cell: ``7f31e2c0.3``; its second take after an infrastructure fault is ``7f31e2c0.3r1``."""

    cell: str
    number: int
    retry: int = 0

    def __str__(self) -> str:
        return f"{self.cell}.{self.number}" + (f"r{self.retry}" if self.retry else "")


class Role(StrEnum):
    """What a worker process is started for."""

    EXECUTOR = "executor"
    """Starts or resumes the run: an attempt."""
    INSPECTOR = "inspector"
    """Looks into the store, read-only, after an attempt was killed at a ``recorded`` point."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class AttemptId:
    """One executor of a trial: ``7f31e2c0.3.2``; the look into the store after it is ``7f31e2c0.3.2i``."""

    trial: TrialId
    number: int
    role: Role = Role.EXECUTOR

    def __str__(self) -> str:
        return f"{self.trial}.{self.number}" + ("i" if self.role is Role.INSPECTOR else "")
