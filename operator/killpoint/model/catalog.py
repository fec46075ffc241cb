"""The catalog: what setups exist and what each can do. A setup's entry is ``setup.toml`` in its workload's folder."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A further axis that only the worker interprets."""

    name: str
    values: tuple[str, ...]
    default: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A worker program and how it keeps state."""

    name: str
    summary: str
    project: str
    """The folder of the workload that holds it."""
    module: str | None = None
    """The Python module that is the worker, or None where ``command`` is."""
    command: tuple[str, ...] = ()
    stores: tuple[str, ...]
    resumes: tuple[str, ...]
    keys: tuple[str, ...]
    workflows: tuple[str, ...]
    points: tuple[str, ...]
    parameters: tuple[Parameter, ...] = ()
    versions: tuple[str, ...] = ()
    """Distributions whose versions go into the report."""
    forkable: bool = False
    needs_database: bool = False
    has_image: bool = True
    """Whether an image is built of it. One without is for this machine only."""

    def parameter(self, name: str) -> Parameter | None:
        return next((parameter for parameter in self.parameters if parameter.name == name), None)


Catalog = tuple[Setup, ...]
