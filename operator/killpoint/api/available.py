"""What the specification has words for and this version, or this place, cannot do. It is refused, never ignored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from killpoint.api.problems import Problem, forbidden, quoted, unsupported
from killpoint.api.v1alpha1.base import Model
from killpoint.api.v1alpha1.matrix import Axes
from killpoint.api.v1alpha1.spec import Spec
from killpoint.api.v1alpha1.workers import Worker
from killpoint.model.cells import Method
from killpoint.model.workflows import WORKFLOWS


class Where(StrEnum):
    """Where an experiment is run. The value is how a sentence says it."""

    LOCAL = "on this machine"
    CLUSTER = "in a cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What there is in one place."""

    words: Mapping[str, tuple[str, ...]]
    """Axis → the words that can be asked for. ``method`` is an axis of kills."""
    spec_without: tuple[str, ...]
    """Fields of the specification that can only have their defaults."""
    worker_without: tuple[str, ...]
    """Fields of a worker that can only have their defaults."""
    worker_needs: str
    """The field by which a user's own worker is found."""


NOT_YET = "not available in this version"
REMOVE = "remove it"
RESUMES = ("continue", "resend")
LATER_AXES = ("delivery", "response", "guard", "target", "approval", "version")
LATER_FIELDS = ("retain_pods", "services")
LATER_WORKFLOW_FIELDS = ("points", "expects")
OFFERS: Mapping[Where, Offer] = {
    Where.LOCAL: Offer(
        words={
            "store": ("postgres", "volume"),
            "resume": RESUMES,
            "method": (Method.SIGKILL.value, Method.EXIT.value),
        },
        spec_without=("suspend", "abort", "retention", *LATER_FIELDS),
        worker_without=(
            "image",
            "env",
            "resources",
            "node_selector",
            "tolerations",
            "image_pull_secrets",
            "labels",
        ),
        worker_needs="command",
    ),
    Where.CLUSTER: Offer(
        words={
            "store": ("postgres", "pod"),
            "resume": RESUMES,
            "method": tuple(method.value for method in Method),
        },
        spec_without=LATER_FIELDS,
        worker_without=(),
        worker_needs="image",
    ),
}


def unavailable(spec: Spec, where: Where) -> Iterator[Problem]:
    """What a specification asks for and cannot get in this place."""
    offer = OFFERS[where]
    yield from _workflow(spec)
    yield from _axes("spec.matrix", spec.matrix, where)
    for number, include in enumerate(spec.matrix.include):
        yield from _axes(f"spec.matrix.include[{number}]", include, where)
    for name in offer.spec_without:
        if getattr(spec, name) != Spec.model_fields[name].default:
            yield _field_problem(f"spec.{alias(Spec, name)}", lacking_field(name, where))
    for number, worker in enumerate(spec.workers):
        for name in offer.worker_without:
            if getattr(worker, name) != Worker.model_fields[name].default:
                yield _field_problem(f"spec.workers[{number}].{alias(Worker, name)}", lacking_field(name, where))


def lacking(axis: str, word: str, where: Where) -> str:
    """The sentence for a word that cannot be asked for here."""
    elsewhere = any(word in offer.words[axis] for offer in OFFERS.values())
    return f'"{word}" is not available {where.value if elsewhere else "in this version"}'


def lacking_field(name: str, where: Where) -> str:
    """The sentence for a field that can only have its default here."""
    later = (*LATER_AXES, *LATER_FIELDS, *LATER_WORKFLOW_FIELDS)
    return NOT_YET if name in later else f"not available {where.value}"


def instead(axis: str, where: Where) -> str:
    """What to do about such a word."""
    return f"use one of {quoted(OFFERS[where].words[axis])}"


def alias(model: type[Model], name: str) -> str:
    """A field's name in a document."""
    return model.model_fields[name].alias or name


def _workflow(spec: Spec) -> Iterator[Problem]:
    known = tuple(workflow.name for workflow in WORKFLOWS)
    if spec.workflow.name not in known:
        yield unsupported("spec.workflow.name", spec.workflow.name, known)
    for name in LATER_WORKFLOW_FIELDS:
        if getattr(spec.workflow, name):
            yield _field_problem(f"spec.workflow.{name}", NOT_YET)


def _axes(path: str, axes: Axes, where: Where) -> Iterator[Problem]:
    yield from _words(f"{path}.store", "store", axes.store, where)
    yield from _words(f"{path}.resume", "resume", axes.resume, where)
    for number, kill in enumerate(axes.kill):
        yield from _word(f"{path}.kill[{number}].method", "method", kill.method, where)
    if any(delivery.mode != "once" for delivery in axes.delivery):
        yield _field_problem(f"{path}.delivery", NOT_YET)
    later = (axis for axis in LATER_AXES if axis != "delivery" and getattr(axes, axis))
    yield from (_field_problem(f"{path}.{axis}", NOT_YET) for axis in later)


def _words(path: str, axis: str, words: Sequence[str], where: Where) -> Iterator[Problem]:
    for number, word in enumerate(words):
        yield from _word(f"{path}[{number}]", axis, word, where)


def _word(path: str, axis: str, word: str, where: Where) -> Iterator[Problem]:
    if word not in OFFERS[where].words[axis]:
        yield forbidden(path, lacking(axis, word, where), instead(axis, where))


def _field_problem(path: str, reason: str) -> Problem:
    return forbidden(path, reason, REMOVE)
