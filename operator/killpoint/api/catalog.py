"""The catalog as one experiment sees it: what is there, and the workers that its author brings."""

from __future__ import annotations

from killpoint.api.v1alpha1.spec import Spec
from killpoint.api.v1alpha1.workers import Worker
from killpoint.model.catalog import Catalog, Parameter, Setup
from killpoint.model.workflows import WORKFLOWS


def catalog_with(spec: Spec, catalog: Catalog) -> Catalog:
    """The catalog with the specification's own workers after it."""
    return (*catalog, *(_setup(worker, spec.workflow.name) for worker in spec.workers))


def _setup(worker: Worker, workflow: str) -> Setup:
    return Setup(
        name=worker.setup,
        summary="The experiment's own worker",
        project="",
        command=worker.command,
        stores=worker.stores,
        resumes=worker.resumes,
        keys=worker.keys,
        workflows=(workflow,),
        points=worker.points or points_of(workflow),
        parameters=tuple(
            Parameter(name=name, values=values, default=values[0]) for name, values in sorted(worker.parameters.items())
        ),
    )


def points_of(workflow: str) -> tuple[str, ...]:
    """The points of a workflow that is built in; none for any other."""
    return next((known.points for known in WORKFLOWS if known.name == workflow), ())
