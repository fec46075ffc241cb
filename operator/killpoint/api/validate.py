"""What only the catalog and the whole of a specification can show to be wrong. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from killpoint.api.available import Where, unavailable
from killpoint.api.catalog import catalog_with
from killpoint.api.problems import Location, Problem, duplicate, path_of
from killpoint.api.product import blocks_of
from killpoint.api.rules import ATTEMPTS_SUFFICE
from killpoint.api.v1alpha1.lists import MAP_KEYS, ORDERED
from killpoint.api.v1alpha1.spec import CrashExperiment, Spec
from killpoint.api.validate_cells import cell_problems
from killpoint.api.validate_matrix import block_problems
from killpoint.api.validate_metadata import metadata_problems
from killpoint.api.validate_rules import rule_problems
from killpoint.api.validate_workers import parameter_name_problems, worker_problems
from killpoint.model.catalog import Catalog


def problems_of(document: CrashExperiment, catalog: Catalog, where: Where = Where.LOCAL) -> tuple[Problem, ...]:
    """Everything that is wrong with a document that has the right form, each mistake once.

    Cells are looked at only when each part of the specification is right for itself: a typing mistake in a setup's
    name shall not be followed by a list of the rules that now match nothing.
    """
    spec = document.spec
    own = own_problems(document, catalog, where)
    return own or tuple(dict.fromkeys(cell_problems(spec, catalog_with(spec, catalog, where))))


def own_problems(document: CrashExperiment, catalog: Catalog, where: Where = Where.LOCAL) -> tuple[Problem, ...]:
    """What is wrong with the parts of a specification, each taken for itself. Of each path, the first mistake."""
    spec = document.spec
    fields = spec.model_dump(mode="json", exclude_none=True)
    setups = catalog_with(spec, catalog, where)
    found = [
        *metadata_problems(document.metadata),
        *unavailable(spec, where),
        *_repeated(("spec",), fields),
        *worker_problems(spec, catalog, where),
        *(problem for block in blocks_of(spec.matrix) for problem in block_problems(block, setups, spec)),
        *_exclude_names(spec),
        *(problem for number, rule in enumerate(spec.expect) for problem in rule_problems(rule, number)),
        *_attempts(spec),
    ]
    return tuple({problem.path: problem for problem in reversed(found)}.values())[::-1]


def _exclude_names(spec: Spec) -> Iterator[Problem]:
    for number, exclude in enumerate(spec.matrix.exclude):
        yield from parameter_name_problems(f"spec.matrix.exclude[{number}].parameters", exclude.parameters)


def _repeated(location: Location, value: Any) -> Iterator[Problem]:  # noqa: ANN401 - a JSON document
    """Values that stand twice in a list that is a set, and names in a list of what has names."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _repeated((*location, name), member)
    elif isinstance(value, list):
        keys = [_key(str(location[-1]), item) for item in value]
        for number, (item, key) in enumerate(zip(value, keys, strict=True)):
            if key is not None and key in keys[:number]:
                yield duplicate(path_of((*location, number)), key)
            yield from _repeated((*location, number), item)


def _key(name: str, item: Any) -> str | None:  # noqa: ANN401 - a JSON document
    """What may be in a list of this name once: words, and in maps the keys. As the server shows it."""
    if name in MAP_KEYS:
        return json.dumps({MAP_KEYS[name]: item[MAP_KEYS[name]]}, separators=(",", ":"))
    return json.dumps(item) if isinstance(item, str) and name not in ORDERED else None


def _attempts(spec: Spec) -> Iterator[Problem]:
    kills: Sequence[int] = [len(kill.at) for block in blocks_of(spec.matrix) for kill in block.axes.kill]
    needed = max(kills, default=0) + 1
    if spec.limits.attempts < needed:
        yield ATTEMPTS_SUFFICE.problem("spec", remedy=f"set it to {needed} or more, or kill less often")
