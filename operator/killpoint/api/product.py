"""The product of a matrix: which combinations there are, given what each setup can do. Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from killpoint.api.v1alpha1.matrix import Axes, Matrix, Selector
from killpoint.api.v1alpha1.matrix import Kill as KillSpec
from killpoint.model.catalog import Catalog, Setup
from killpoint.model.cells import Coordinates, Kill, Method
from killpoint.model.experiment import EVERY_POINT, is_template

WORD_AXES = ("store", "key", "resume")
"""Axes of words that each setup supports or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The matrix, or one of its includes with the axes that it takes from the matrix filled in."""

    path: str
    axes: Axes
    inherited: frozenset[str] = frozenset()
    """Axes that the include does not name."""

    def path_of(self, axis: str) -> str:
        return f"spec.matrix.{axis}" if axis in self.inherited else f"{self.path}.{axis}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """What a setup makes of the values that a block has on one axis."""

    axis: str
    """``key``, or a parameter's name."""
    wanted: tuple[str, ...]
    possible: tuple[str, ...]
    """What the setup can do."""

    @property
    def kept(self) -> tuple[str, ...]:
        return tuple(word for word in self.wanted if word in self.possible)

    @property
    def lacking(self) -> tuple[str, ...]:
        return tuple(word for word in self.wanted if word not in self.possible)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What a block comes to for one of its setups."""

    block: Block
    setup: Setup
    words: tuple[Support, ...]
    """One for each of WORD_AXES, in that order."""
    parameters: tuple[Support, ...]
    """Sorted by name. Those that the setup lacks are dropped."""

    @property
    def axes(self) -> tuple[Support, ...]:
        return self.words + self.parameters

    @property
    def kills(self) -> tuple[Kill, ...]:
        return tuple(kill_of(kill) for kill in self.block.axes.kill if can_kill(self.setup, kill))

    @property
    def size(self) -> int:
        """How many killed cells it makes, with one at each point of the setup where every point is asked for."""
        kills = sum(len(self.setup.points) if is_template(kill) else 1 for kill in self.kills)
        return math.prod(len(axis.kept) for axis in self.axes) * max(kills, 1)

    def coordinates(self) -> Iterator[Coordinates]:
        """Its combinations; with no kill where the block has none at all."""
        kills = self.kills if self.block.axes.kill else (Kill(),)
        names = [axis.axis for axis in self.parameters]
        for (store, key, resume, *rest), kill in itertools.product(
            itertools.product(*(axis.kept for axis in self.axes)), kills
        ):
            yield Coordinates(
                setup=self.setup.name,
                store=store,
                key=key,
                resume=resume,
                kill=kill,
                parameters=tuple(zip(names, rest, strict=True)),
            )

    def left_out(self) -> Iterator[str]:
        """What the setup can't do of what was asked for, one sentence each."""
        name = self.setup.name
        for axis in self.axes:
            yield from (f"{name} has no {axis.axis} {word}" for word in axis.lacking)
        yield from (f"{name} has no {lost}" for lost in self.block.axes.parameters if not self.setup.parameter(lost))
        lost_kills = (kill for kill in self.block.axes.kill if not can_kill(self.setup, kill))
        yield from (f"{name} does not pass {'+'.join(kill.at)}" for kill in lost_kills)


def blocks_of(matrix: Matrix) -> tuple[Block, ...]:
    """The matrix and its includes."""
    main = Block(path="spec.matrix", axes=matrix)
    return (main, *(_included(matrix, number) for number in range(len(matrix.include))))


def _included(matrix: Matrix, number: int) -> Block:
    include = matrix.include[number]
    missing = frozenset(name for name in Axes.model_fields if not getattr(include, name))
    filled = include.model_copy(update={name: getattr(matrix, name) for name in missing})
    return Block(path=f"spec.matrix.include[{number}]", axes=filled, inherited=missing)


def parts_of(block: Block, catalog: Catalog) -> tuple[Part, ...]:
    """What a block comes to, setup by setup, in the order of the file. Setups must be known."""
    by_name = {setup.name: setup for setup in catalog}
    return tuple(_part(block, by_name[name]) for name in block.axes.setup)


def _part(block: Block, setup: Setup) -> Part:
    possible = {"store": setup.stores, "key": setup.keys, "resume": setup.resumes}
    return Part(
        block=block,
        setup=setup,
        words=tuple(
            Support(axis=axis, wanted=getattr(block.axes, axis), possible=possible[axis]) for axis in WORD_AXES
        ),
        parameters=tuple(
            Support(axis=name, wanted=values, possible=parameter.values)
            for name, values in sorted(block.axes.parameters.items())
            if (parameter := setup.parameter(name)) is not None
        ),
    )


def point_of(at: str) -> str:
    """A point without its occurrence."""
    return at.partition("#")[0]


def kill_of(kill: KillSpec) -> Kill:
    """A kill as the core knows it: the first occurrence has no number, and it has a name."""
    at = tuple(point.removesuffix("#1") for point in kill.at)
    return Kill(at=at, method=Method(kill.method), name=kill.name or "+".join(at))


def can_kill(setup: Setup, kill: KillSpec) -> bool:
    """Whether the setup passes every point of the kill."""
    return all(point == EVERY_POINT or point_of(point) in setup.points for point in kill.at)


def where_of(selector: Selector) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The axes and parameters that a selector names, with their words."""
    axes = ((axis, getattr(selector, axis)) for axis in Selector.model_fields if axis != "parameters")
    return tuple((axis, words) for axis, words in axes if words) + tuple(sorted(selector.parameters.items()))


def selects(selector: Selector, words: Mapping[str, str]) -> bool:
    """Whether a cell with these words has one of those that the selector allows, on each axis that it names."""
    return all(words.get(axis) in allowed for axis, allowed in where_of(selector))


def product_of(block: Block, catalog: Catalog) -> tuple[Coordinates, ...]:
    """A block's combinations, each once, exclude not counted."""
    return tuple(dict.fromkeys(place for part in parts_of(block, catalog) for place in part.coordinates()))


def combinations_of(matrix: Matrix, catalog: Catalog) -> tuple[Coordinates, ...]:
    """All combinations, each once: the matrix less exclude, then the includes."""
    main, *includes = (product_of(block, catalog) for block in blocks_of(matrix))
    kept = (place for place in main if not any(selects(exclude, place.words()) for exclude in matrix.exclude))
    return tuple(dict.fromkeys(itertools.chain(kept, *includes)))


def controls_of(places: Sequence[Coordinates]) -> tuple[Coordinates, ...]:
    """The controls of these combinations: the same with no kill, each once."""
    return tuple(dict.fromkeys(replace(place, kill=Kill()) for place in places))


def size_of(matrix: Matrix, catalog: Catalog) -> int:
    """How many combinations there can be, exclude not counted. Does not make them."""
    return sum(part.size for block in blocks_of(matrix) for part in parts_of(block, catalog))


def left_out_of(matrix: Matrix, catalog: Catalog) -> tuple[str, ...]:
    """What was asked for and some setup can't do, one sentence each."""
    parts = (part for block in blocks_of(matrix) for part in parts_of(block, catalog))
    return tuple(dict.fromkeys(sentence for part in parts for sentence in part.left_out()))
