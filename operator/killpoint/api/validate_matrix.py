"""What is wrong with a matrix, or an include of it, given what each setup can do. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from killpoint.api.problems import (
    Problem,
    invalid,
    meant,
    nearest,
    quoted,
    unsupported,
)
from killpoint.api.product import Block, Part, can_kill, parts_of, point_of
from killpoint.api.rules import (
    EVERY_POINT_FIRST,
    KILL_NAMED_BY_POINTS,
    KILL_NAMES_DIFFER,
    KILL_NOT_NONE,
    KILLS_DIFFER,
)
from killpoint.api.v1alpha1.matrix import Kill
from killpoint.api.v1alpha1.spec import Spec
from killpoint.api.validate_workers import parameter_name_problems
from killpoint.model.catalog import Catalog, Setup
from killpoint.model.cells import CONTROL
from killpoint.model.experiment import EVERY_POINT


def block_problems(block: Block, catalog: Catalog, spec: Spec) -> Iterator[Problem]:
    """What is wrong with the axes that a block names itself, and with what it leaves of each setup."""
    yield from _setup_problems(block, catalog, spec.workflow.name)
    known = [setup for setup in catalog if setup.name in block.axes.setup]
    if "kill" not in block.inherited:
        yield from _kill_problems(block, known)
    if "parameters" not in block.inherited:
        yield from _parameter_problems(block, known)
    if len(known) == len(set(block.axes.setup)):
        parts = parts_of(block, catalog)
        yield from _word_problems(block, parts)
        yield from (problem for part in parts for problem in _empty_axes(part, parts))


def _setup_problems(block: Block, catalog: Catalog, workflow: str) -> Iterator[Problem]:
    by_name = {setup.name: setup for setup in catalog}
    for number, name in enumerate(block.axes.setup if "setup" not in block.inherited else ()):
        path = f"{block.path}.setup[{number}]"
        if name not in by_name:
            yield unsupported(path, name, by_name)
        elif workflow not in by_name[name].workflows:
            yield invalid(
                path, name, f'it does not have the workflow "{workflow}"', "leave it out, or name its workflow"
            )


def _kill_problems(block: Block, known: Sequence[Setup]) -> Iterator[Problem]:
    points = tuple(dict.fromkeys(point for setup in known for point in setup.points))
    kills: dict[tuple[tuple[str, ...], str], int] = {}
    names: dict[str, int] = {}
    for number, kill in enumerate(block.axes.kill):
        path = f"{block.path}.kill[{number}]"
        yield from _point_problems(path, kill, points)
        yield from _kill_name_problems(path, kill)
        at = tuple(point.removesuffix("#1") for point in kill.at)
        name = kill.name or "+".join(at)
        if (at, kill.method) in kills:
            yield KILLS_DIFFER.problem(
                path, remedy=f"{block.path}.kill[{kills[at, kill.method]}] is the same: remove one"
            )
        elif name in names:
            remedy = f"{block.path}.kill[{names[name]}] is named {name}, too: give one another name"
            yield KILL_NAMES_DIFFER.problem(path, at=".name", remedy=remedy)
        kills.setdefault((at, kill.method), number)
        names.setdefault(name, number)


def _point_problems(path: str, kill: Kill, points: Sequence[str]) -> Iterator[Problem]:
    for number, at in enumerate(kill.at):
        place = f"{path}.at[{number}]"
        if at == EVERY_POINT and number > 0:
            yield EVERY_POINT_FIRST.problem(path, at=f"[{number}]")
        elif at != EVERY_POINT and points and point_of(at) not in points:
            near = nearest(point_of(at), points)
            meaning = f'did you mean "{near}{at[len(point_of(at)) :]}"?' if near else None
            yield Problem(
                path=place,
                message=f'Unsupported value: "{at}": supported values: {quoted(points)}',
                suggestion=meaning,
            )


def _kill_name_problems(path: str, kill: Kill) -> Iterator[Problem]:
    if kill.name == CONTROL:
        yield KILL_NOT_NONE.problem(path)
    elif kill.name is not None and EVERY_POINT in kill.at:
        yield KILL_NAMED_BY_POINTS.problem(path)


def _parameter_problems(block: Block, known: Sequence[Setup]) -> Iterator[Problem]:
    wrong = tuple(parameter_name_problems(f"{block.path}.parameters", block.axes.parameters))
    yield from wrong
    if wrong or not known:
        return
    for name, values in block.axes.parameters.items():
        path = f"{block.path}.parameters.{name}"
        parameters = [parameter for setup in known if (parameter := setup.parameter(name)) is not None]
        if not parameters:
            yield _unknown_parameter(path, name, known)
        else:
            supported = tuple(dict.fromkeys(value for parameter in parameters for value in parameter.values))
            for number, value in enumerate(values):
                if value not in supported:
                    yield unsupported(f"{path}[{number}]", value, supported)


def _unknown_parameter(path: str, name: str, known: Sequence[Setup]) -> Problem:
    names = tuple(dict.fromkeys(parameter.name for setup in known for parameter in setup.parameters))
    there = f"they know {quoted(names)}" if names else "they know none"
    return invalid(
        path, name, f"no setup of this matrix knows this parameter: {there}", meant(name, names) or "remove it"
    )


def _word_problems(block: Block, parts: Sequence[Part]) -> Iterator[Problem]:
    """Values that none of the setups supports."""
    for supports in zip(*(part.words for part in parts), strict=True):
        axis = supports[0].axis
        supported = tuple(dict.fromkeys(word for support in supports for word in support.possible))
        given = axis in block.axes.model_fields_set
        for number, word in enumerate(supports[0].wanted if axis not in block.inherited else ()):
            if word in supported:
                continue
            if given:
                yield unsupported(f"{block.path}.{axis}[{number}]", word, supported)
            else:
                message = f'Unsupported value: "{word}", the default of {axis}: supported values: {quoted(supported)}'
                suggestion = f"add {axis}: [{supported[0]}]" if supported else None
                yield Problem(path=f"{block.path}.{axis}[{number}]", message=message, suggestion=suggestion)


def _empty_axes(part: Part, parts: Sequence[Part]) -> Iterator[Problem]:
    """Axes of which one setup supports no value though others do, so that none of its cells could be run."""
    name = part.setup.name
    path = f"{part.block.path_of('setup')}[{part.block.axes.setup.index(name)}]"
    others = {axis.axis: word for other in parts for axis in other.axes for word in axis.kept}
    for axis in part.axes:
        if axis.axis in others and not axis.kept:
            reason = f"it supports none of the matrix's values of {axis.axis}: it supports {quoted(axis.possible)}"
            yield invalid(path, name, reason, f"add one of these, or give {name} an include of its own")
    points = {point for other in parts for point in other.setup.points}
    kills = [kill for kill in part.block.axes.kill if points.issuperset(_points(kill))]
    if kills and not any(can_kill(part.setup, kill) for kill in kills):
        reason = f"it cannot be killed as any kill of the matrix asks: it passes {quoted(part.setup.points)}"
        yield invalid(path, name, reason, f"add one of these, or give {name} an include of its own")


def _points(kill: Kill) -> set[str]:
    return {point_of(at) for at in kill.at if at != EVERY_POINT}
