"""What is wrong with a matrix and its rules together: too many cells, and what matches none. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from killpoint.api.problems import Problem, invalid, meant, quoted
from killpoint.api.product import (
    blocks_of,
    combinations_of,
    controls_of,
    point_of,
    product_of,
    selects,
    size_of,
    where_of,
)
from killpoint.api.v1alpha1.limits import Limits
from killpoint.api.v1alpha1.matrix import Selector
from killpoint.api.v1alpha1.spec import Spec
from killpoint.model.catalog import Catalog
from killpoint.model.cells import CONTROL, Coordinates
from killpoint.model.experiment import is_template

COMBINATIONS_MAX = 50_000
"""More than this many are not even made, to be counted or to be excluded."""


Words = Mapping[str, str]
"""A cell's coordinates: axis, or parameter, → word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """The combinations of a matrix, as far as they are known before a control has shown its points."""

    controls: tuple[Words, ...]
    killed: tuple[Words, ...]
    """One at each point of its setup where every point is asked for."""
    discovered: bool
    """Whether every point is asked for somewhere."""


def cell_problems(spec: Spec, catalog: Catalog) -> Iterator[Problem]:
    """What is wrong with the cells. The parts of the specification must be right each for itself."""
    size = size_of(spec.matrix, catalog)
    if size > COMBINATIONS_MAX:
        yield _too_many("spec.matrix", f"{size} combinations", COMBINATIONS_MAX, "leave values out")
        return
    cells = _cells_of(spec, catalog)
    yield from _count_problems(spec, cells)
    yield from _exclude_problems(spec, catalog)
    yield from _include_problems(spec, catalog)
    for number, rule in enumerate(spec.expect):
        yield from _where_problems(f"spec.expect[{number}].where", rule.where, cells)


def _cells_of(spec: Spec, catalog: Catalog) -> Cells:
    places = combinations_of(spec.matrix, catalog)
    points = {setup.name: setup.points for setup in catalog}
    killed = (place for place in places if not place.kill.is_control)
    foreseen = dict.fromkeys(known for place in killed for known in _foreseen(place, points[place.setup]))
    return Cells(
        controls=tuple(place.words() for place in controls_of(places)),
        killed=tuple(place.words() for place in foreseen),
        discovered=any(is_template(place.kill) for place in places),
    )


def _foreseen(place: Coordinates, points: Sequence[str]) -> Iterator[Coordinates]:
    """The cells that a template will probably come to; any other cell itself."""
    if not is_template(place.kill):
        yield place
        return
    for point in points:
        at = (point, *place.kill.at[1:])
        yield replace(place, kill=replace(place.kill, at=at, name="+".join(at)))


def _count_problems(spec: Spec, cells: Cells) -> Iterator[Problem]:
    limits = spec.limits
    if not cells.controls:
        yield invalid("spec.matrix.exclude", len(spec.matrix.exclude), "no cell is left", "exclude less")
    count = len(cells.controls) + len(cells.killed)
    if count > limits.cells:
        yield _too_many("spec.matrix", f"{count} cells, controls included", limits.cells, _raise("cells", limits.cells))
    trials = len(cells.controls) * spec.controls + len(cells.killed) * spec.trials
    if trials > limits.trials:
        yield _too_many("spec.trials", f"{trials} trials in all cells", limits.trials, _raise("trials", limits.trials))


def _too_many(path: str, what: str, most: int, suggestion: str) -> Problem:
    return Problem(path=path, message=f"Too many: {what}: must have at most {most}", suggestion=suggestion)


def _raise(name: str, now: int) -> str:
    top = next(item.le for item in Limits.model_fields[name].metadata if hasattr(item, "le"))
    return "leave values out" + (f", or raise spec.limits.{name} (at most {top})" if now < top else "")


def _exclude_problems(spec: Spec, catalog: Catalog) -> Iterator[Problem]:
    main, *_ = blocks_of(spec.matrix)
    product = [place.words() for place in product_of(main, catalog)]
    for number, exclude in enumerate(spec.matrix.exclude):
        yield from _selector_problems(f"spec.matrix.exclude[{number}]", exclude, product)


def _include_problems(spec: Spec, catalog: Catalog) -> Iterator[Problem]:
    matrix = spec.matrix
    for number, block in enumerate(blocks_of(matrix)[1:]):
        earlier = matrix.model_copy(update={"include": matrix.include[:number]})
        if set(product_of(block, catalog)) <= set(combinations_of(earlier, catalog)):
            message = "Invalid value: it adds no cell: the matrix has them all"
            yield Problem(path=block.path, message=message, suggestion="remove it")


def _where_problems(path: str, where: Selector, cells: Cells) -> Iterator[Problem]:
    control = bool(getattr(where, "control", False))
    if control:
        yield from _selector_problems(path, where, cells.controls)
    elif not cells.killed:
        message = "Invalid value: it matches no cell: there are only controls"
        yield Problem(path=path, message=message, suggestion="add control: true to it, or a kill to the matrix")
    elif CONTROL in where.kill:
        yield invalid(f"{path}.kill", CONTROL, "a rule is about killed cells", "write control: true for the controls")
    else:
        foreseen = _without_occurrences(where) if cells.discovered else where
        yield from _selector_problems(path, foreseen, cells.killed)


def _without_occurrences(where: Selector) -> Selector:
    """Which passings of a point there are is known only when a control has run."""
    names = ("+".join(point_of(point) for point in name.split("+")) for name in where.kill)
    return where.model_copy(update={"kill": tuple(names)})


def _selector_problems(path: str, selector: Selector, cells: Sequence[Words]) -> Iterator[Problem]:
    """Words that no cell has, else that no cell has all of them."""
    found = False
    for axis, words in where_of(selector):
        there = tuple(dict.fromkeys(word for cell in cells if (word := cell.get(axis))))
        place = f"{path}.parameters.{axis}" if axis in selector.parameters else f"{path}.{axis}"
        for number, word in enumerate(words):
            if word not in there:
                found = True
                reason = f"no cell has it: they have {quoted(there)}" if there else f"no cell has a {axis}"
                yield invalid(f"{place}[{number}]", word, reason, meant(word, there) or "remove it")
    if not found and not any(selects(selector, cell) for cell in cells):
        message = "Invalid value: it matches no cell: no cell has all of these together"
        yield Problem(path=path, message=message, suggestion="leave one of them out, or remove it")
