"""Idempotency keys: the kinds that applications use, the sound and the unsound."""

from __future__ import annotations

import uuid

KEYS = ("none", "fresh", "stable", "derived", "order", "run-scoped", "saved-random")

CHARGE = "charge"


class MissingSavedKeyError(RuntimeError):
    """The key that ``prepare`` saved did not come back from the framework's state."""


def saved_key_for(kind: str, *, run: str) -> str | None:
    """The key that ``prepare`` makes, for the framework to keep; None for the kinds that save none."""
    if kind == "stable":
        return f"{run}:{CHARGE}"
    if kind == "saved-random":
        return uuid.uuid4().hex
    return None


def key_for(kind: str, *, run: str, order: str, saved: str | None) -> str | None:
    """The key of one execution of the charge step. ``saved`` is what came back from the framework's state.

    Raises MissingSavedKeyError rather than charging without the key that was meant.
    """
    if kind == "none":
        return None
    if kind == "fresh":
        return uuid.uuid4().hex
    if kind == "derived":
        return f"{run}:{CHARGE}"
    if kind == "order":
        return f"{order}:{CHARGE}"
    if kind == "run-scoped":
        return run
    if kind not in KEYS:
        raise ValueError(f"key {kind!r} is unknown: one of {', '.join(KEYS)} is wanted")
    if saved is None:
        raise MissingSavedKeyError(f"key {kind} is saved by prepare, and the state that came back holds none")
    return saved
