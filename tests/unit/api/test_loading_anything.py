"""Whatever a file holds, it becomes an experiment or problems with places: never a traceback."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from killpoint.api.convert import experiment_of
from killpoint.api.load import load
from killpoint.api.problems import Problem, ProblemsError
from tests.unit.api.samples import CATALOG, document
from tests.unit.api.specs import damaged, specs


def problems_of(data: bytes | str) -> tuple[Problem, ...]:
    try:
        loaded = load(data, catalog=CATALOG)
    except ProblemsError as error:
        return error.problems or pytest.fail("refused without a reason")
    assert experiment_of(loaded, CATALOG).cells, "what is loaded with a catalog can be converted with it"
    return ()


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    assert all(problem.message for problem in problems_of(data))


@given(st.text(alphabet="ab:-[]{}#&*!|>'\"%@`,? \n\t0", max_size=60))
@example("? [a]\n: b")
@example("&a [*a]")
@example("!!python/object/apply:os.system [ls]")
@example("a: !!binary x")
@example("- - - - - a\n")
@example("<<: {a: 1}")
def test_any_yaml(text: str) -> None:
    assert all(problem.message for problem in problems_of(text))


@given(damaged())
def test_any_damaged_experiment(value: dict[str, Any]) -> None:
    problems = problems_of(yaml.safe_dump(value, allow_unicode=True))
    assert all(problem.position is not None for problem in problems)
    assert [problem.position for problem in problems] == sorted(
        problem.position for problem in problems if problem.position is not None
    )
    assert len({(problem.path, problem.position) for problem in problems}) == len(problems), "each place once"


@given(specs())
def test_an_experiment_in_json_is_the_same_experiment(spec: dict[str, Any]) -> None:
    text = document("matrix: {setup: [langgraph]}")
    head = yaml.safe_load(text)
    assert load(json.dumps({**head, "spec": spec}), catalog=CATALOG) == load(
        yaml.safe_dump({**head, "spec": spec}), catalog=CATALOG
    )
