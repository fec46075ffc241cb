"""Workers and services that users bring, and the workflow that is run."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from killpoint.api.v1alpha1.base import Key, Labels, Model, Parameters, Point, Resume, Store, Text, Word

Command = Annotated[tuple[Text, ...], Field(max_length=64)]
Points = Annotated[tuple[Point, ...], Field(max_length=64)]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=253)]
Quantity = Annotated[
    str, StringConstraints(pattern=r"^([0-9]+([.][0-9]*)?|[.][0-9]+)(m|[kMGTPE]|[KMGTPE]i)?$", max_length=32)
]
Quantities = Annotated[dict[str, Quantity], Field(max_length=8)]


class ExpectedEffect(Model):
    """Effects that a run of the workflow orders."""

    action: Word
    """What is done: charge."""
    count: Annotated[int, Field(ge=1, le=100)] = 1
    """How many are ordered."""
    amount: Annotated[int, Field(ge=0, le=100_000_000)] = 0
    """Of each, in minor units of the currency."""


class Workflow(Model):
    """What is run."""

    name: Word = "charge"
    """charge (prepare → charge → finalize), or the user's own."""
    points: Points = ()
    """The points of a workflow of the user's own."""
    expects: Annotated[tuple[ExpectedEffect, ...], Field(max_length=16)] = ()
    """What a run of it orders."""


class Variable(Model):
    """An environment variable."""

    name: VariableName
    """Its name."""
    value: Text = ""
    """Its value."""


class Resources(Model):
    """What a container asks for and may take, as Kubernetes quantities."""

    requests: Quantities = Field(default={})
    """Resource → quantity asked for."""
    limits: Quantities = Field(default={})
    """Resource → quantity allowed."""


class Toleration(Model):
    """A taint that the pods tolerate."""

    key: Annotated[str, StringConstraints(max_length=317)] = ""
    """The taint's key."""
    operator: Literal["Equal", "Exists"] = "Equal"
    """How the value is compared."""
    value: Annotated[str, StringConstraints(max_length=63)] = ""
    """The taint's value."""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""
    """The taint's effect; empty for all."""


class PullSecret(Model):
    """A secret with a registry's credentials."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=253)]
    """Its name."""


class Worker(Model):
    """A worker program of the user's own: a setup that the catalog does not have."""

    setup: Word
    """The name by which the matrix chooses it."""
    command: Command = ()
    """The program and its arguments. It speaks the worker contract."""
    points: Points = ()
    """The points that it passes; the workflow's, unless given."""
    stores: Annotated[tuple[Store, ...], Field(min_length=1, max_length=3)] = ("postgres", "volume")
    """The stores that it can keep its state in."""
    keys: Annotated[tuple[Key, ...], Field(min_length=1, max_length=7)] = ("none", "fresh", "stable")
    """The keys that it can use."""
    resumes: Annotated[tuple[Resume, ...], Field(min_length=1, max_length=3)] = ("continue",)
    """The ways in which it can be resumed."""
    parameters: Parameters = Field(default={})
    """Its own axes: name → values, the default first."""
    image: Annotated[str, StringConstraints(max_length=512)] = ""
    """The container image, in a cluster."""
    env: Annotated[tuple[Variable, ...], Field(max_length=64)] = ()
    """Further environment variables."""
    resources: Resources = Resources()
    """What its container asks for and may take."""
    node_selector: Labels = Field(default={})
    """Labels of the nodes that its pods may run on."""
    tolerations: Annotated[tuple[Toleration, ...], Field(max_length=16)] = ()
    """Taints that its pods tolerate."""
    image_pull_secrets: Annotated[tuple[PullSecret, ...], Field(max_length=8)] = ()
    """Secrets to pull the image with."""
    labels: Labels = Field(default={})
    """Further labels of its pods."""


class Service(Model):
    """A program that the user's own workers need beside them."""

    name: Word
    """The host name by which workers reach it."""
    image: Annotated[str, StringConstraints(min_length=1, max_length=512)]
    """The container image."""
    command: Command = ()
    """The program and its arguments; the image's, unless given."""
    env: Annotated[tuple[Variable, ...], Field(max_length=64)] = ()
    """Environment variables."""
    port: Annotated[int, Field(ge=1, le=65_535)]
    """Where it listens."""
