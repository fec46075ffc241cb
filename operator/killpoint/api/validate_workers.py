"""What is wrong with the workers that a user brings. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from killpoint.api.available import OFFERS, Where, alias
from killpoint.api.problems import Problem, forbidden
from killpoint.api.rules import (
    LABEL_DOMAINS,
    LABELS_ARE_FREE,
    LABELS_ARE_NAMED,
    PARAMETERS_ARE_NO_AXES,
    PARAMETERS_ARE_WORDS,
    TOLERATION_HAS_KEY,
    TOLERATION_HAS_VALUE,
    VARIABLE_IS_FREE,
    WORKER_HAS_COMMAND,
    WORKER_HAS_IMAGE,
)
from killpoint.api.v1alpha1.base import LABEL_KEY, WORD, WORD_CHARACTERS_MAX
from killpoint.api.v1alpha1.matrix import Axes
from killpoint.api.v1alpha1.spec import Spec
from killpoint.api.v1alpha1.workers import Toleration, Worker
from killpoint.model.catalog import Catalog


def worker_problems(spec: Spec, catalog: Catalog, where: Where) -> Iterator[Problem]:
    """What is wrong with each worker, given the setups that are there already."""
    built_in = {setup.name for setup in catalog}
    for number, worker in enumerate(spec.workers):
        path = f"spec.workers[{number}]"
        if worker.setup in built_in:
            reason = f'"{worker.setup}" is a setup that killpoint brings'
            yield forbidden(f"{path}.setup", reason, "give your worker a name of its own")
        yield from _start_problems(path, worker, where)
        yield from parameter_name_problems(f"{path}.parameters", worker.parameters)
        for name in ("node_selector", "labels"):
            for key in getattr(worker, name):
                if not re.fullmatch(LABEL_KEY, key):
                    yield LABELS_ARE_NAMED.problem(f"{path}.{alias(Worker, name)}", at=f".{key}")
        if any(key.startswith(f"{domain}/") for key in worker.labels for domain in LABEL_DOMAINS):
            yield LABELS_ARE_FREE.problem(f"{path}.labels")
        for place, variable in enumerate(worker.env):
            if variable.name.startswith("KILLPOINT_"):
                yield VARIABLE_IS_FREE.problem(f"{path}.env[{place}]")
        for place, toleration in enumerate(worker.tolerations):
            yield from _toleration_problems(f"{path}.tolerations[{place}]", toleration)


def parameter_name_problems(path: str, parameters: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    """Names that no parameter can have."""
    for name in parameters:
        if name in Axes.model_fields:
            yield PARAMETERS_ARE_NO_AXES.problem(path, at=f".{name}")
        elif len(name) > WORD_CHARACTERS_MAX or not re.fullmatch(WORD, name):
            yield PARAMETERS_ARE_WORDS.problem(path, at=f".{name}")


def _start_problems(path: str, worker: Worker, where: Where) -> Iterator[Problem]:
    match OFFERS[where].worker_needs:
        case "image" if not worker.image:
            yield WORKER_HAS_IMAGE.problem(path)
        case "command" if not worker.command:
            yield WORKER_HAS_COMMAND.problem(path)


def _toleration_problems(path: str, toleration: Toleration) -> Iterator[Problem]:
    if toleration.operator == "Equal" and not toleration.key:
        yield TOLERATION_HAS_KEY.problem(path)
    if toleration.operator == "Exists" and toleration.value:
        yield TOLERATION_HAS_VALUE.problem(path)
