"""A catalog that does not change with the workloads, and documents to try it on."""

from __future__ import annotations

import textwrap

from killpoint.api.convert import experiment_of
from killpoint.api.load import load
from killpoint.model.catalog import Catalog, Parameter, Setup
from killpoint.model.experiment import Experiment
from killpoint.model.workflows import CHARGE

KEYS = ("none", "fresh", "stable", "derived", "order", "run-scoped", "saved-random")


def setup(
    name: str,
    *,
    stores: tuple[str, ...] = ("postgres", "volume"),
    resumes: tuple[str, ...] = ("continue",),
    points: tuple[str, ...] = CHARGE.points,
    parameters: tuple[Parameter, ...] = (),
) -> Setup:
    return Setup(
        name=name,
        summary="",
        project=name,
        module=f"killpoint_{name}",
        stores=stores,
        resumes=resumes,
        keys=KEYS,
        workflows=("charge",),
        points=points,
        parameters=parameters,
    )


DURABILITY = Parameter(name="durability", values=("async", "sync", "exit"), default="async")
CATALOG: Catalog = (
    setup("langgraph", resumes=("continue", "resend"), parameters=(DURABILITY,)),
    setup("llamaindex"),
    setup("llamaindex-dbos", stores=("postgres",)),
    setup("shell", stores=("volume",), points=tuple(point for point in CHARGE.points if point != "charge.sent")),
)

HEAD = """\
apiVersion: killpoint.dev/v1alpha1
kind: CrashExperiment
metadata: {name: sample}
"""


def document(spec: str) -> str:
    """The text of an experiment with this specification."""
    return f"{HEAD}spec:\n{textwrap.indent(textwrap.dedent(spec), '  ')}"


def experiment(spec: str) -> Experiment:
    """The experiment with this specification. Raises ProblemsError."""
    return experiment_of(load(document(spec), catalog=CATALOG), CATALOG)
