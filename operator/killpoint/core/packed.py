"""Packed: the trials of a run, with what is over kept small.

A trial that is judged is not looked at again but for reports; of many thousand, their evidence as objects would be most
of what an operator holds. Its judgement stays at hand in ``RunState.judgements``. Pure: what goes in comes out.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

LEVEL = 1
"""Of zlib: the fastest one. It leaves less than half of a trial, and the higher ones hardly less."""


@dataclass(frozen=True, slots=True)
class Packed(Generic[Value]):
    """A value in little room."""

    data: bytes

    @classmethod
    def of(cls, value: Value) -> Packed[Value]:
        return cls(zlib.compress(pickle.dumps(value, pickle.HIGHEST_PROTOCOL), LEVEL))

    def value(self) -> Value:
        found: Value = pickle.loads(zlib.decompress(self.data))  # noqa: S301 - made above, in this very process
        return found


class Unpacking(Mapping[Key, Value]):
    """A mapping some of whose values are packed. To look one up unpacks it; to ask whether it is there does not."""

    __slots__ = ("_held",)

    def __init__(self, held: Mapping[Key, Value | Packed[Value]]) -> None:
        """``held`` is not changed from now on."""
        self._held = held

    @property
    def held(self) -> Mapping[Key, Value | Packed[Value]]:
        return self._held

    def __getitem__(self, key: Key) -> Value:
        held = self._held[key]
        return held.value() if isinstance(held, Packed) else held

    def __contains__(self, key: object) -> bool:
        return key in self._held

    def __iter__(self) -> Iterator[Key]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)
