"""Loading: an experiment's file for the place where it is meant to be run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from killpoint.api.available import Where
from killpoint.api.catalog import catalog_with
from killpoint.api.convert import experiment_of
from killpoint.api.load import load_file
from killpoint.api.v1alpha1.spec import CrashExperiment
from killpoint.cli.cluster.target import target_of
from killpoint.local.stack import installed_workloads
from killpoint.model.catalog import Catalog
from killpoint.model.experiment import Experiment


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A file that nothing is wrong with."""

    document: CrashExperiment
    experiment: Experiment
    catalog: Catalog
    """With the file's own workers, as it is in the place."""


def loaded(file: Path, where: Where = Where.LOCAL) -> Loaded:
    """Raises ProblemsError with everything that is wrong with the file."""
    catalog = _catalog(where)
    document = load_file(file, catalog, where)
    experiment = experiment_of(document, catalog, where)
    return Loaded(document=document, experiment=experiment, catalog=catalog_with(document.spec, catalog, where))


def meant_for(*, cluster: bool) -> Where:
    """Where a file is meant to be run that no cluster is asked about."""
    meant = target_of(cluster=cluster, namespace=None, context=None, kubeconfig=None)
    return Where.LOCAL if meant is None else Where.CLUSTER


def _catalog(where: Where) -> Catalog:
    """The setups that killpoint brings to this place: an operator refuses those that it has no image for."""
    known = installed_workloads().catalog()
    return known if where is Where.LOCAL else tuple(setup for setup in known if setup.has_image)
