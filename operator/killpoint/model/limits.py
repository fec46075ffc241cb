"""Limits: what an experiment may take. Everything that waits or repeats is bounded by one of these."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds of an experiment. Their defaults are the specification's, so there are none here."""

    attempts: int
    """Of one trial: the start and every resume."""
    attempt_seconds: int
    """How long an attempt may live once it has started."""
    startup_seconds: int
    """How long an attempt may take until its first line in the termination log."""
    settle_seconds: int
    """How long a killed attempt's connections and requests may take to be gone."""
    inconclusive_retries: int
    """How often a trial that infrastructure spoiled is run again."""
    deadline_seconds: int
    """How long the whole experiment may take."""
    cells: int
    """Controls and killed cells together."""
    trials: int
    """Of all cells together, retries not counted."""
