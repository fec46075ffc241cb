"""From a specification and the catalog to the values that the core works with. Pure."""

from __future__ import annotations

import hashlib
import json

from killpoint.api.available import Where
from killpoint.api.catalog import catalog_with
from killpoint.api.expectations import rules_of
from killpoint.api.problems import ProblemsError
from killpoint.api.product import combinations_of, controls_of, left_out_of
from killpoint.api.v1alpha1 import limits
from killpoint.api.v1alpha1.spec import MUTABLE, CrashExperiment, Spec
from killpoint.api.validate import problems_of
from killpoint.model.catalog import Catalog
from killpoint.model.cells import Cell
from killpoint.model.experiment import Experiment
from killpoint.model.limits import Limits


def experiment_of(document: CrashExperiment, catalog: Catalog, where: Where = Where.LOCAL) -> Experiment:
    """The experiment that a document describes, to be run there. Raises ProblemsError with all that is wrong."""
    problems = problems_of(document, catalog, where)
    if problems:
        raise ProblemsError(problems)
    spec = document.spec
    setups = catalog_with(spec, catalog, where)
    places = combinations_of(spec.matrix, setups)
    controls = (Cell(coordinates=place, trials=spec.controls) for place in controls_of(places))
    killed = (Cell(coordinates=place, trials=spec.trials) for place in places if not place.kill.is_control)
    return Experiment(
        name=document.metadata.name,
        digest=digest_of(spec),
        seed=spec.seed,
        trials=spec.trials,
        controls=spec.controls,
        parallelism=spec.parallelism,
        workflow=spec.workflow.name,
        cells=(*controls, *killed),
        rules=rules_of(spec.expect),
        limits=_limits(spec.limits),
        fail_fast=spec.fail_fast,
        suspended=spec.suspend,
        aborted=spec.abort,
        left_out=left_out_of(spec.matrix, setups),
    )


def digest_of(spec: Spec) -> str:
    """SHA-256 of the specification with its defaults, in hexadecimal. What may change while it runs is not in it."""
    fields = spec.model_dump(mode="json", exclude=set(MUTABLE), exclude_none=True)
    return hashlib.sha256(json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _limits(given: limits.Limits) -> Limits:
    return Limits(**{name: getattr(given, name) for name in limits.Limits.model_fields})
