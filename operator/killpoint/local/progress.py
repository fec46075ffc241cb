"""Progress: what is being prepared, told to whoever shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Stage(StrEnum):
    """What is being prepared."""

    ENVIRONMENT = "environment"
    POSTGRES = "postgres"
    PAYMENTS = "payments"
    WORKERS = "workers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A stage of the preparation went on."""

    stage: Stage
    subject: str
    """Of what: a workload's name, or the stage's own where there is only one."""
    text: str
    done: bool = False


Report = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """Show nothing."""
