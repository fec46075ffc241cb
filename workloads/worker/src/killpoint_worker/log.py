"""The termination log: what an attempt leaves behind, in at most 3,072 bytes, readable at every instant."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from killpoint_worker.assignment import CONTRACT

LIMIT_BYTES = 3072
"""The kubelet keeps the last 4,096 bytes of a termination message; this stays clear of it."""

POINTS_RESERVE_BYTES = 640
"""What an outcome leaves to the points before it, however long its error or its claims are."""

LEFT_OUT = "*"
"""Stands in place of a point's name in the line that counts lines left out altogether."""


class OutcomeTooLongError(ValueError):
    """The outcome does not fit into the log, and nothing in it may be cut."""


class LogSealedError(RuntimeError):
    """The outcome was written: it is the last line, nothing comes after it."""


@dataclass(frozen=True, slots=True)
class PointLine:
    """A passing of a point. ``folded`` counts passings before this one that have no line any more."""

    point: str
    n: int
    t: int | None
    folded: int = 0

    def encode(self) -> bytes:
        document: dict[str, object] = {"point": self.point}
        if self.point != LEFT_OUT:
            document["n"] = self.n
        if self.folded:
            document["folded"] = self.folded
        elif self.t is not None:
            document["t"] = self.t
        return encode(document)


class TerminationLog:
    """The open termination log of one attempt. Lines may come from several threads.

    The file descriptor is opened once and written with ``pwrite`` at a known length: no line is ever in a buffer.
    """

    def __init__(self, path: Path, *, attempt: str, nonce: str, limit_bytes: int = LIMIT_BYTES) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        self._limit = limit_bytes
        self._lock = threading.RLock()
        self._header = encode({"killpoint": CONTRACT, "attempt": attempt, "nonce": nonce})
        self._points: tuple[PointLine, ...] = ()
        self._length = 0
        self._sealed = False
        self._append(self._header)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep every other thread from writing a line."""
        with self._lock:
            yield

    def passed(self, point: str, n: int, t: int) -> None:
        """Write a passing. Older passings are folded into counts where it would not fit otherwise."""
        line = PointLine(point, n, t)
        data = line.encode()
        with self._lock:
            self._refuse_when_sealed()
            self._make_room(len(data))
            self._append(data)
            self._points += (line,)

    def outcome(self, document: Mapping[str, Any]) -> None:
        """Write the last line. A long error is cut before anything else is given up. Raises OutcomeTooLongError."""
        with self._lock:
            self._refuse_when_sealed()
            reserve = POINTS_RESERVE_BYTES if self._points else 0
            data = shortened(document, self._limit - len(self._header) - reserve)
            self._make_room(len(data))
            self._append(data)
            self._sealed = True

    def _refuse_when_sealed(self) -> None:
        if self._sealed:
            raise LogSealedError("the outcome stands in the termination log already")

    def _make_room(self, needed: int) -> None:
        if self._length + needed <= self._limit:
            return
        self._points = fold(self._points, self._limit - len(self._header) - needed)
        kept = self._header + b"".join(line.encode() for line in self._points)
        # One write over the old text, then the cut: a kill in between leaves blank lines, which a reader skips.
        os.pwrite(self._fd, kept.ljust(self._length, b"\n"), 0)
        os.ftruncate(self._fd, len(kept))
        self._length = len(kept)

    def _append(self, data: bytes) -> None:
        os.pwrite(self._fd, data, self._length)
        self._length += len(data)


def fold(lines: Sequence[PointLine], room: int) -> tuple[PointLine, ...]:
    """Fold passings until the lines take at most ``room`` bytes: gently first, then as far as is needed.

    First and last passing of a point are kept as long as possible; then only the last; then the oldest lines go,
    counted in one line of their own.
    """
    gently = _fold_repeated(lines, keep_first=True)
    if _size(gently) <= room:
        return gently
    folded = _fold_repeated(lines, keep_first=False)
    kept = [line for line in folded if line.point != LEFT_OUT]
    left_out = sum(line.folded for line in folded if line.point == LEFT_OUT)
    while True:
        result = (PointLine(LEFT_OUT, 0, None, left_out), *kept) if left_out else tuple(kept)
        if _size(result) <= room or not kept:
            return result
        left_out += 1 + kept.pop(0).folded


def _fold_repeated(lines: Sequence[PointLine], *, keep_first: bool) -> tuple[PointLine, ...]:
    last = {line.point: index for index, line in enumerate(lines)}
    waiting: dict[str, int] = {}
    seen: set[str] = set()
    result: list[PointLine] = []
    for index, line in enumerate(lines):
        is_first, is_last = line.point not in seen, last[line.point] == index
        seen.add(line.point)
        if is_last:
            folded = line.folded + waiting.get(line.point, 0)
            result.append(PointLine(line.point, line.n, line.t, folded))
        elif is_first and keep_first:
            result.append(line)
        else:
            waiting[line.point] = waiting.get(line.point, 0) + 1 + line.folded
    return tuple(result)


def _size(lines: Sequence[PointLine]) -> int:
    return sum(len(line.encode()) for line in lines)


def encode(document: Mapping[str, Any]) -> bytes:
    """One line of compact JSON with its newline."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    # A lone surrogate, as in an undecodable file name, becomes the escape that JSON has for it.
    return text.encode("utf-8", "backslashreplace") + b"\n"


def failed(error: BaseException) -> dict[str, Any]:
    """The outcome of an attempt that ended with an error."""
    return {"outcome": "failed", "error": {"class": type(error).__qualname__, "message": str(error)}}


def shortened(document: Mapping[str, Any], room: int) -> bytes:
    """Encode an outcome in at most ``room`` bytes: the error's message is cut, or the claims are left out as a whole.

    Some claims of many would read as a contradiction to the ledger; none at all says nothing. Raises
    OutcomeTooLongError.
    """
    data = encode(document)
    if len(data) <= room:
        return data
    if "error" in document:
        return _with_error_cut(document, room)
    if "claims" in document:
        rest = {name: value for name, value in document.items() if name != "claims"}
        return shortened({**rest, "claimsLeftOut": len(document["claims"])}, room)
    raise OutcomeTooLongError(
        f"the outcome takes {len(data)} bytes, {room} are left: describe fewer points or parameters"
    )


def _with_error_cut(document: Mapping[str, Any], room: int) -> bytes:
    error = {name: str(value) for name, value in document["error"].items()}
    for characters in (1024, 512, 256, 128, 64, 16):
        cut = {name: value if len(value) <= characters else value[:characters] + "…" for name, value in error.items()}
        data = encode({**document, "error": cut})
        if len(data) <= room:
            return data
    raise OutcomeTooLongError(f"not even a cut error fits into {room} bytes")
