"""What only the catalog and the whole of a specification can show to be wrong. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from killpoint.api.available import unavailable
from killpoint.api.catalog import catalog_with
from killpoint.api.problems import Problem, duplicate, forbidden, invalid, path_of
from killpoint.api.product import blocks_of
from killpoint.api.v1alpha1.spec import CrashExperiment, Spec
from killpoint.api.validate_cells import cell_problems
from killpoint.api.validate_matrix import block_problems
from killpoint.api.validate_rules import rule_problems
from killpoint.model.catalog import Catalog

ORDERED_LISTS = frozenset({"at", "command"})
"""Lists in which a value may stand twice."""


def problems_of(document: CrashExperiment, catalog: Catalog) -> tuple[Problem, ...]:
    """Everything that is wrong with a document that has the right form, each mistake once.

    Cells are looked at only when each part of the specification is right for itself: a typing mistake in a setup's
    name shall not be followed by a list of the rules that now match nothing.
    """
    spec = document.spec
    own = tuple(own_problems(document, catalog))
    return own or tuple(dict.fromkeys(cell_problems(spec, catalog_with(spec, catalog))))


def own_problems(document: CrashExperiment, catalog: Catalog) -> tuple[Problem, ...]:
    """What is wrong with the parts of a specification, each taken for itself. Of each path, the first mistake."""
    spec = document.spec
    fields = spec.model_dump(mode="json", exclude_none=True)
    setups = catalog_with(spec, catalog)
    found = [
        *unavailable(spec),
        *_repeated(("spec",), fields),
        *_worker_problems(spec, catalog),
        *(problem for block in blocks_of(spec.matrix) for problem in block_problems(block, setups, spec)),
        *(problem for number, rule in enumerate(spec.expect) for problem in rule_problems(rule, number)),
        *_attempts(spec),
    ]
    return tuple({problem.path: problem for problem in reversed(found)}.values())[::-1]


def _repeated(location: tuple[str | int, ...], value: Any) -> Iterator[Problem]:  # noqa: ANN401 - a JSON document
    """Values that stand twice in a list that is a set."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _repeated((*location, name), member)
    elif isinstance(value, list) and location[-1] not in ORDERED_LISTS:
        for number, item in enumerate(value):
            if isinstance(item, str) and item in value[:number]:
                yield duplicate(path_of((*location, number)), item)
            yield from _repeated((*location, number), item)


def _worker_problems(spec: Spec, catalog: Catalog) -> Iterator[Problem]:
    built_in = {setup.name for setup in catalog}
    seen: set[str] = set()
    for number, worker in enumerate(spec.workers):
        path = f"spec.workers[{number}]"
        if worker.setup in built_in:
            reason = f'"{worker.setup}" is a setup that killpoint brings'
            yield forbidden(f"{path}.setup", reason, "give your worker a name of its own")
        if worker.setup in seen:
            yield duplicate(f"{path}.setup", worker.setup)
        if not worker.command:
            yield Problem(path=f"{path}.command", message="Required value", suggestion="say how your worker is started")
        seen.add(worker.setup)


def _attempts(spec: Spec) -> Iterator[Problem]:
    kills: Sequence[int] = [len(kill.at) for block in blocks_of(spec.matrix) for kill in block.axes.kill]
    needed = max(kills, default=0) + 1
    if spec.limits.attempts < needed:
        reason = f"{needed - 1} kills take {needed} attempts, counting the last resume"
        yield invalid(
            "spec.limits.attempts", spec.limits.attempts, reason, f"set it to {needed} or more, or kill less often"
        )
