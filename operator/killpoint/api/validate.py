"""What only the catalog and the whole of a specification can show to be wrong. Pure."""

from __future__ import annotations

from killpoint.api.problems import Problem
from killpoint.api.v1alpha1.spec import CrashExperiment
from killpoint.model.catalog import Catalog


def problems_of(document: CrashExperiment, catalog: Catalog) -> tuple[Problem, ...]:
    """Everything that is wrong with a document that has the right form."""
    return ()
