"""CrashExperiment: the document that a user writes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from killpoint.api.v1alpha1.base import Labels, Model
from killpoint.api.v1alpha1.expect import Rule
from killpoint.api.v1alpha1.limits import Limits, Retention
from killpoint.api.v1alpha1.matrix import Matrix
from killpoint.api.v1alpha1.workers import Service, Worker, Workflow

API_VERSION = "killpoint.dev/v1alpha1"
KIND = "CrashExperiment"
SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"

MUTABLE = ("abort", "parallelism", "retention", "suspend")
"""Fields of the specification that may change while the experiment runs; none of them changes what it shows."""


class Metadata(Model):
    """Kubernetes' object metadata, as far as users write it."""

    name: Annotated[str, StringConstraints(pattern=SUBDOMAIN, max_length=253)]
    """The experiment's name."""
    namespace: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)] | None = (
        None
    )
    """The namespace, in a cluster."""
    labels: Labels = Field(default={})
    """Labels, in a cluster."""
    annotations: Annotated[dict[str, Annotated[str, StringConstraints(max_length=262_144)]], Field(max_length=64)] = (
        Field(default={})
    )
    """Annotations, in a cluster."""


class Spec(Model):
    """What is run, how often, and what is expected."""

    workflow: Workflow = Workflow()
    """What is run."""
    matrix: Matrix
    """The cells."""
    controls: Annotated[int, Field(ge=1, le=1000)] = 1
    """Trials of each control: the same cell with no kill. Controls run first."""
    trials: Annotated[int, Field(ge=1, le=1000)] = 5
    """Trials of each cell."""
    parallelism: Annotated[int, Field(ge=1, le=64)] = 4
    """How many trials run at once. Can be changed while it runs."""
    seed: Annotated[int, Field(ge=0, le=2_147_483_647)] = 1
    """What everything random is drawn from."""
    expect: Annotated[tuple[Rule, ...], Field(max_length=50)] = ()
    """Expectations. The last one that matches a cell holds; the first, built in, is exactly-once everywhere."""
    limits: Limits = Limits()
    """Bounds of everything that waits or repeats."""
    fail_fast: bool = False
    """Whether the first cell that is not as expected ends the experiment."""
    suspend: bool = False
    """Whether no further attempt is started for now. Can be changed while it runs."""
    abort: bool = False
    """Whether the experiment is ended. Can be set while it runs, and never be taken back."""
    retention: Retention = Retention()
    """What is deleted, and when. Can be changed while it runs."""
    retain_pods: Literal["Never", "OnFailure", "Always"] = "Never"
    """Whose pods are kept for a look into them."""
    workers: Annotated[tuple[Worker, ...], Field(max_length=16)] = ()
    """Worker programs of the user's own."""
    services: Annotated[tuple[Service, ...], Field(max_length=8)] = ()
    """Programs that these need beside them."""


class CrashExperiment(Model):
    """Kills a workflow's executors at named points, resumes them, and counts what happened outside."""

    api_version: Literal["killpoint.dev/v1alpha1"]
    """The version of this schema."""
    kind: Literal["CrashExperiment"]
    """The kind of object."""
    metadata: Metadata
    """Its name and labels."""
    spec: Spec
    """What is run, and what is expected."""
