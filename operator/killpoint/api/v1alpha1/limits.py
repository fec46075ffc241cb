"""Limits, and what is kept of an experiment."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from killpoint.api.v1alpha1.base import Model

Duration = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,4}[smhd]$", max_length=6)]


class Limits(Model):
    """Bounds of everything that waits or repeats."""

    attempts: Annotated[int, Field(ge=1, le=32)] = 8
    """Of one trial: the start and every resume."""
    attempt_seconds: Annotated[int, Field(ge=1, le=3600)] = 60
    """How long an attempt may live."""
    startup_seconds: Annotated[int, Field(ge=1, le=600)] = 30
    """How long an attempt may take to begin."""
    settle_seconds: Annotated[int, Field(ge=1, le=600)] = 15
    """How long the connections and requests of a killed attempt may take to be gone."""
    inconclusive_retries: Annotated[int, Field(ge=0, le=10)] = 2
    """How often a trial is run again that infrastructure spoiled."""
    deadline_seconds: Annotated[int, Field(ge=10, le=604_800)] = 3600
    """How long the whole experiment may take."""
    cells: Annotated[int, Field(ge=1, le=5000)] = 500
    """How many cells the matrix may have, controls included."""
    trials: Annotated[int, Field(ge=1, le=100_000)] = 10_000
    """How many trials all cells may have together."""


class Retention(Model):
    """What is deleted, and when."""

    children_after: Duration | None = None
    """How long after the end its pods are kept."""
    experiment_after: Duration | None = None
    """How long after the end the experiment is kept."""
