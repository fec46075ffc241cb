"""Strategies: specifications that are valid for the sample catalog, and documents that are nearly so."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from killpoint.model.workflows import CHARGE
from tests.unit.api.samples import KEYS

SETUPS = ("langgraph", "llamaindex")


def some(words: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(words), min_size=1, unique=True)


kills = st.lists(
    st.lists(st.sampled_from([*CHARGE.points, "charge.after#2"]), min_size=1, max_size=3).map(tuple),
    max_size=4,
    unique=True,
).map(lambda chosen: [{"at": list(at)} for at in chosen])

axes = st.fixed_dictionaries(
    {"setup": some(SETUPS), "store": some(("postgres", "volume")), "key": some(KEYS), "kill": kills}
)


@st.composite
def matrices(draw: st.DrawFn) -> dict[str, Any]:
    """A matrix; with durability where a setup knows it."""
    matrix: dict[str, Any] = draw(axes)
    if "langgraph" in matrix["setup"]:
        matrix["resume"] = draw(st.sampled_from([["continue"], ["continue", "resend"]]))
        if draw(st.booleans()):
            matrix["parameters"] = {"durability": draw(some(("async", "sync", "exit")))}
    return matrix


@st.composite
def specs(draw: st.DrawFn) -> dict[str, Any]:
    """A specification whose rules are about the values that its matrix has."""
    matrix = draw(matrices())
    where = st.fixed_dictionaries(
        {},
        optional={axis: st.lists(st.sampled_from(matrix[axis]), min_size=1, unique=True) for axis in ("setup", "key")},
    )
    rule = st.fixed_dictionaries({"where": where, "verdict": some(("duplicate", "exactly-once", "lost"))})
    return {
        "matrix": matrix,
        "trials": draw(st.integers(1, 5)),
        "controls": draw(st.integers(1, 3)),
        "parallelism": draw(st.integers(1, 64)),
        "seed": draw(st.integers(0, 9)),
        "expect": draw(st.lists(rule, max_size=4)) if matrix["kill"] else [],
        "limits": {"cells": 5000, "trials": 100_000},
    }


scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "x", "charge.after", "*", "none"])
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


@st.composite
def damaged(draw: st.DrawFn) -> dict[str, Any]:
    """A document with something else in one or two places."""
    document: dict[str, Any] = {
        "apiVersion": "killpoint.dev/v1alpha1",
        "kind": "CrashExperiment",
        "metadata": {"name": "sample"},
        "spec": draw(specs()),
    }
    for _ in range(draw(st.integers(1, 3))):
        _damage(document, draw)
    return document


def _damage(node: Any, draw: st.DrawFn) -> None:  # noqa: ANN401 - any part of a JSON document
    while True:
        places = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not places or draw(st.integers(0, 5)) == 0:
            _add(node, draw)
            return
        place = draw(st.sampled_from(places))
        if not isinstance(node[place], dict | list) or draw(st.integers(0, 5)) == 0:
            node[place] = draw(values)
            return
        node = node[place]


def _add(node: Any, draw: st.DrawFn) -> None:  # noqa: ANN401 - any part of a JSON document
    if isinstance(node, dict):
        node[draw(st.sampled_from(["key", "kills", "name", "min"]) | st.text(max_size=4))] = draw(values)
    else:
        node.append(draw(values))
