"""Expectations: what the trials of a cell have to show."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from killpoint.api.v1alpha1.base import Model
from killpoint.api.v1alpha1.matrix import Selector
from killpoint.model.findings import Verdict

Outcome = Literal["finished", "waiting", "held", "dead-lettered", "rejected", "refused", "yielded", "failed", "none"]
Part = Annotated[float, Field(ge=0, le=1)]


class Where(Selector):
    """The cells that a rule is about. With nothing said: all that are killed."""

    control: bool = False
    """Whether it is about controls, and about these only."""


class Share(Model):
    """How large a part of a cell's trials may have a verdict."""

    min: Part = 0.0
    """At least this part, from 0 to 1."""
    max: Part = 1.0
    """At most this part."""


class FrameworkErrors(Model):
    """Failures that are the framework's own: such trials are set apart, with their reason."""

    match: Annotated[str, StringConstraints(min_length=1, max_length=512)]
    """Text that "class: message" of the failed outcome contains. Not a pattern: none can stall the operator."""
    max: Annotated[int, Field(ge=0, le=1000)]
    """How many trials of a cell may be set apart."""


class Rule(Model):
    """An expectation. The last rule that matches a cell holds; the first, built in, is exactly-once everywhere."""

    where: Where = Where()
    """The cells that it is about."""
    verdict: Annotated[tuple[Verdict, ...], Field(max_length=9)] = ()
    """The verdicts that its trials may have. Where none is named: those of share, else exactly-once."""
    outcome: Annotated[tuple[Outcome, ...], Field(max_length=9)] = ()
    """The outcomes with which its runs may end; none, where no attempt said how it ended. With nothing named: any."""
    effects: Annotated[dict[str, Annotated[int, Field(ge=0, le=1000)]], Field(max_length=16)] = Field(default={})
    """Action → how many effects each trial has, exactly."""
    share: Annotated[dict[str, Share], Field(max_length=9)] = Field(default={})
    """Verdict → its part of the trials, for cells that are races."""
    framework_errors: FrameworkErrors | None = None
    """Failures that are the framework's own."""
