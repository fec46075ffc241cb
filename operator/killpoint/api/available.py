"""What the specification has words for and this version cannot do yet. Everything of it is refused, never ignored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from killpoint.api.problems import Problem, forbidden, quoted, unsupported
from killpoint.api.v1alpha1.matrix import Axes
from killpoint.api.v1alpha1.spec import Spec
from killpoint.api.v1alpha1.workers import Worker
from killpoint.model.cells import Method
from killpoint.model.workflows import WORKFLOWS

STORES = ("postgres", "volume")
RESUMES = ("continue", "resend")
METHODS = (Method.SIGKILL.value,)
LATER_AXES = ("delivery", "response", "guard", "target", "approval", "version")
LATER_FIELDS = ("suspend", "abort", "retention", "retain_pods", "services")
LATER_WORKER_FIELDS = (
    "image",
    "env",
    "resources",
    "node_selector",
    "tolerations",
    "image_pull_secrets",
    "labels",
)


def unavailable(spec: Spec) -> Iterator[Problem]:
    """What a specification asks for and cannot get in this version."""
    yield from _workflow(spec)
    yield from _axes("spec.matrix", spec.matrix)
    for number, include in enumerate(spec.matrix.include):
        yield from _axes(f"spec.matrix.include[{number}]", include)
    for name in LATER_FIELDS:
        if getattr(spec, name) != Spec.model_fields[name].default:
            yield _not_yet(f"spec.{_alias(Spec, name)}")
    for number, worker in enumerate(spec.workers):
        yield from _worker(f"spec.workers[{number}]", worker)


def _workflow(spec: Spec) -> Iterator[Problem]:
    known = tuple(workflow.name for workflow in WORKFLOWS)
    if spec.workflow.name not in known:
        yield unsupported("spec.workflow.name", spec.workflow.name, known)
    if spec.workflow.points:
        yield _not_yet("spec.workflow.points")
    if spec.workflow.expects:
        yield _not_yet("spec.workflow.expects")


def _axes(path: str, axes: Axes) -> Iterator[Problem]:
    yield from _words(f"{path}.store", axes.store, STORES)
    yield from _words(f"{path}.resume", axes.resume, RESUMES)
    for number, kill in enumerate(axes.kill):
        yield from _word(f"{path}.kill[{number}].method", kill.method, METHODS)
    if any(delivery.mode != "once" for delivery in axes.delivery):
        yield _not_yet(f"{path}.delivery")
    yield from (_not_yet(f"{path}.{axis}") for axis in LATER_AXES if axis != "delivery" and getattr(axes, axis))


def _worker(path: str, worker: Worker) -> Iterator[Problem]:
    yield from _words(f"{path}.stores", worker.stores, STORES)
    yield from _words(f"{path}.resumes", worker.resumes, RESUMES)
    for name in LATER_WORKER_FIELDS:
        if getattr(worker, name) != Worker.model_fields[name].default:
            yield _not_yet(f"{path}.{_alias(Worker, name)}")


def _words(path: str, words: Sequence[str], today: Sequence[str]) -> Iterator[Problem]:
    for number, word in enumerate(words):
        yield from _word(f"{path}[{number}]", word, today)


def _word(path: str, word: str, today: Sequence[str]) -> Iterator[Problem]:
    if word not in today:
        yield forbidden(path, f'"{word}" is not available in this version', f"use one of {quoted(today)}")


def _not_yet(path: str) -> Problem:
    return forbidden(path, "not available in this version", "remove it")


def _alias(model: type[Spec | Worker], name: str) -> str:
    fields: Mapping[str, object] = model.model_fields
    return getattr(fields[name], "alias", None) or name
