"""What goes between the steps and what the context keeps: the framework's own types for the workflow ``charge``.

They are in a module of their own because snapshots and DBOS's records name them by module: the name must be the same in
every process that starts or resumes a run, so never ``__main__``.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict
from workflows.events import Event, StartEvent


class Job(StartEvent):
    """The input: which order to charge."""

    order: str


class Prepared(Event):
    """``prepare`` is done; what it saved is in the state."""


class Charged(Event):
    """``charge`` is done; the charge's id is in the state."""


class ChargeState(BaseModel):
    """The context's state store."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    key: str | None = None
    """The idempotency key that ``prepare`` saved for ``charge``."""
    effect: str | None = None
    """The charge's id as payments gave it."""
    attachment: Any = None
    """Something that does not serialize, where the experiment asks for it (parameter ``payload``)."""
