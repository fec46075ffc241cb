"""The catalog as one experiment sees it: what is there, and the workers that its author brings."""

from __future__ import annotations

from dataclasses import replace

from killpoint.api.available import Where
from killpoint.api.v1alpha1.spec import Spec
from killpoint.api.v1alpha1.workers import Worker
from killpoint.model.catalog import Catalog, Parameter, Setup
from killpoint.model.workflows import WORKFLOWS

FILES = "pod"
"""The store of files where each attempt has a pod of its own."""


def catalog_with(spec: Spec, catalog: Catalog, where: Where = Where.LOCAL) -> Catalog:
    """The catalog with the specification's own workers after it, as it is in this place."""
    setups = (*catalog, *(_setup(worker, spec.workflow.name) for worker in spec.workers))
    return setups if where is Where.LOCAL else tuple(map(_in_pods, setups))


def _in_pods(setup: Setup) -> Setup:
    """A setup in a cluster: what it keeps in files is kept in the pod."""
    return replace(setup, stores=tuple(FILES if store == "volume" else store for store in setup.stores))


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
