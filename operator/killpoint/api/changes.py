"""What may not be changed of an experiment that is there already. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from killpoint.api.problems import Problem
from killpoint.api.rules import ABORT_STAYS, IMMUTABLE, immutable
from killpoint.api.v1alpha1.spec import Spec


def change_problems(before: Spec, after: Spec) -> Iterator[Problem]:
    """What the API server refuses when ``after`` is to replace ``before``."""
    for name in IMMUTABLE:
        if getattr(before, name) != getattr(after, name):
            yield immutable(name).problem("spec")
    if before.abort and not after.abort:
        yield ABORT_STAYS.problem("spec")
