"""Claims about cells that hold for every specification."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from killpoint.api.convert import digest_of, experiment_of
from killpoint.api.load import load
from killpoint.api.v1alpha1.spec import CrashExperiment
from killpoint.model.cells import Cell, Kill
from killpoint.model.experiment import Experiment
from killpoint.model.rules import BUILT_IN, rule_for
from tests.unit.api.samples import CATALOG, experiment
from tests.unit.api.specs import matrices, specs

PUBLISHED = [
    ("9a0ca237", "langgraph", "postgres", "none", "continue", "sync", "none"),
    ("dda6c7c6", "langgraph", "postgres", "stable", "continue", "sync", "none"),
    ("f1c89851", "llamaindex", "postgres", "none", "continue", "none"),
    ("165de045", "llamaindex", "postgres", "stable", "continue", "none"),
    ("abc6154a", "langgraph", "postgres", "none", "continue", "sync", "charge.after"),
    ("fb55ed13", "langgraph", "postgres", "none", "continue", "sync", "charge.after+charge.after#2"),
]
"""Reports, stored runs and people's notes name cells by these: they must never change."""


def loaded(spec: dict[str, Any]) -> CrashExperiment:
    head = {"apiVersion": "killpoint.dev/v1alpha1", "kind": "CrashExperiment", "metadata": {"name": "sample"}}
    return CrashExperiment.model_validate_json(json.dumps({**head, "spec": spec}))


def converted(spec: dict[str, Any]) -> Experiment:
    return experiment_of(loaded(spec), CATALOG)


def ids(cells: Iterable[Cell]) -> set[str]:
    return {cell.id for cell in cells}


def test_ids_are_what_they_were_when_they_were_first_published() -> None:
    cells = experiment("""
        matrix:
          setup: [langgraph, llamaindex]
          key: [none, stable]
          parameters: {durability: [sync]}
          kill: [{at: [charge.after]}, {at: [charge.after, "charge.after#2"]}]
    """).cells
    assert [(cell.id, *cell.coordinates.words().values()) for cell in cells][:6] == PUBLISHED


@given(specs())
def test_no_cell_stands_twice(spec: dict[str, Any]) -> None:
    cells = converted(spec).cells
    assert len(ids(cells)) == len(cells)
    assert len({cell.coordinates for cell in cells}) == len(cells)


@given(specs())
def test_every_killed_cell_has_its_control_and_every_control_stands_before_it(spec: dict[str, Any]) -> None:
    made = converted(spec)
    controls = [cell for cell in made.cells if cell.is_control]
    assert made.cells[: len(controls)] == tuple(controls)
    assert all(cell.trials == (made.controls if cell.is_control else made.trials) for cell in made.cells)
    for cell in made.cells:
        assert replace(cell.coordinates, kill=Kill()) in {control.coordinates for control in controls}


@given(specs(), st.sampled_from(["key", "store"]))
def test_another_value_on_an_axis_changes_no_other_cell(spec: dict[str, Any], axis: str) -> None:
    before = ids(converted({**spec, "expect": []}).cells)
    everything = {"key": ["none", "fresh", "stable", "derived", "order", "run-scoped", "saved-random"]}
    more = everything.get(axis, ["postgres", "volume"])
    after = ids(converted({**spec, "expect": [], "matrix": {**spec["matrix"], axis: more}}).cells)
    assert before <= after


@given(matrices())
def test_collapsing_what_is_collapsed_changes_nothing(matrix: dict[str, Any]) -> None:
    limits = {"cells": 5000, "trials": 100_000}
    made = converted({"matrix": matrix, "limits": limits})
    for cell in made.cells[:20]:
        place = cell.coordinates
        alone: dict[str, Any] = {
            "setup": [place.setup],
            "store": [place.store],
            "key": [place.key],
            "resume": [place.resume],
            "parameters": {name: [value] for name, value in place.parameters},
            "kill": [] if cell.is_control else [{"at": list(place.kill.at)}],
        }
        assert cell.coordinates in {again.coordinates for again in converted({"matrix": alone}).cells}


@given(specs())
def test_the_last_rule_that_matches_holds(spec: dict[str, Any]) -> None:
    made = converted(spec)
    for cell in made.cells[:40]:
        words = cell.coordinates.words()
        expected = "built-in"
        for number, rule in enumerate(spec["expect"]):
            if not cell.is_control and all(words[axis] in allowed for axis, allowed in rule["where"].items()):
                expected = f"spec.expect[{number}]"
        assert rule_for(cell, made.rules).source == expected


@given(specs())
def test_the_digest_is_of_what_is_said_not_of_how(spec: dict[str, Any]) -> None:
    shuffled = {key: spec[key] for key in reversed(spec)}
    written_out = loaded(spec).spec.model_dump(mode="json", exclude_none=True)
    assert digest_of(loaded(shuffled).spec) == digest_of(loaded(spec).spec)
    assert digest_of(loaded(written_out).spec) == digest_of(loaded(spec).spec)


@given(specs())
def test_the_digest_is_without_what_may_change_and_with_all_else(spec: dict[str, Any]) -> None:
    digest = digest_of(loaded(spec).spec)
    assert digest_of(loaded({**spec, "parallelism": 65 - spec["parallelism"]}).spec) == digest
    assert digest_of(loaded({**spec, "seed": spec["seed"] + 1}).spec) != digest
    assert digest_of(loaded({**spec, "trials": spec["trials"] + 1}).spec) != digest


@given(specs())
def test_what_is_loaded_and_dumped_is_the_same_when_it_is_loaded_again(spec: dict[str, Any]) -> None:
    document = loaded(spec)
    fields = document.model_dump(mode="json", exclude_none=True)
    assert load(yaml.safe_dump(fields)) == document
    assert load(json.dumps(fields)) == document


def test_a_value_that_a_setup_lacks_is_left_out_for_it_where_another_applies() -> None:
    made = experiment("""
        matrix:
          setup: [langgraph, llamaindex, shell]
          store: [volume, postgres]
          resume: [continue, resend]
          parameters: {durability: [sync, exit]}
          kill: [{at: [charge.sent]}, {at: [charge.after]}]
    """)
    by_setup = {
        name: [cell.coordinates for cell in made.cells if cell.coordinates.setup == name and not cell.is_control]
        for name in ("langgraph", "llamaindex", "shell")
    }
    assert len(by_setup["langgraph"]) == 2 * 2 * 2 * 2
    assert {place.parameters for place in by_setup["llamaindex"]} == {()}
    assert {place.resume for place in by_setup["llamaindex"]} == {"continue"}
    assert [(place.store, place.kill.name) for place in by_setup["shell"]] == [("volume", "charge.after")]
    assert "shell does not pass charge.sent" in made.left_out
    assert "shell has no store postgres" in made.left_out
    assert "llamaindex has no durability" in made.left_out


def test_an_include_has_the_values_of_the_matrix_where_it_names_none() -> None:
    made = experiment("""
        matrix:
          setup: [llamaindex]
          key: [none, fresh]
          kill: [{at: [charge.after]}]
          include: [{setup: [langgraph], parameters: {durability: [exit]}, key: [stable]}]
    """)
    assert [tuple(cell.coordinates.words().values()) for cell in made.cells if not cell.is_control] == [
        ("llamaindex", "postgres", "none", "continue", "charge.after"),
        ("llamaindex", "postgres", "fresh", "continue", "charge.after"),
        ("langgraph", "postgres", "stable", "continue", "exit", "charge.after"),
    ]


def test_an_exclude_takes_cells_and_the_controls_that_nothing_needs_any_more() -> None:
    made = experiment("""
        matrix:
          setup: [langgraph]
          key: [none, stable]
          kill: [{at: [charge.before]}, {at: [charge.after]}]
          exclude: [{key: [stable]}, {kill: [charge.before]}]
    """)
    assert [(cell.coordinates.key, cell.coordinates.kill.name) for cell in made.cells] == [
        ("none", "none"),
        ("none", "charge.after"),
    ]


def test_every_point_stays_a_template_until_a_control_has_shown_the_points() -> None:
    made = experiment("""
        matrix: {setup: [langgraph], kill: [{at: ["*"]}, {at: ["*", charge.after]}]}
        expect: [{where: {kill: [charge.after, "charge.after#3"]}, verdict: [duplicate]}]
    """)
    assert [cell.coordinates.kill.name for cell in made.cells] == ["none", "*", "*+charge.after"]


def test_a_rule_for_controls_is_for_controls_only() -> None:
    made = experiment("""
        matrix: {setup: [langgraph], kill: [{at: [charge.after]}]}
        expect: [{where: {control: true}, verdict: [lost]}]
    """)
    control, killed = made.cells
    assert rule_for(control, made.rules).source == "spec.expect[0]"
    assert rule_for(killed, made.rules) == BUILT_IN


def test_a_rule_without_verdicts_allows_those_that_it_gives_a_share() -> None:
    made = experiment("""
        matrix: {setup: [langgraph], kill: [{at: [charge.after]}]}
        expect:
        - {share: {exactly-once: {min: 0.1}, duplicate: {max: 0.8}}}
        - {frameworkErrors: {match: changed size, max: 2}}
    """)
    shared, errors = (rule.expected for rule in made.rules)
    assert [verdict.value for verdict in shared.verdicts] == ["duplicate", "exactly-once"]
    assert [(share.verdict.value, share.least, share.most) for share in shared.shares] == [
        ("duplicate", 0.0, 0.8),
        ("exactly-once", 0.1, 1.0),
    ]
    assert [verdict.value for verdict in errors.verdicts] == ["exactly-once"]
    assert errors.framework_errors is not None
    assert errors.framework_errors.most == 2


def test_a_worker_of_the_user_s_own_is_a_setup_like_any_other() -> None:
    made = experiment("""
        matrix:
          setup: [langgraph, mine]
          key: [none, order]
          parameters: {mode: [fast]}
          kill: [{at: [charge.after]}, {at: [pay.sent]}]
        workers:
        - setup: mine
          command: [./worker, --contract]
          points: [pay.before, pay.sent, charge.after]
          keys: [none, order]
          stores: [postgres]
          parameters: {mode: [slow, fast]}
    """)
    mine = [cell.coordinates for cell in made.cells if cell.coordinates.setup == "mine" and not cell.is_control]
    assert [(place.key, place.kill.name, place.parameters) for place in mine] == [
        ("none", "charge.after", (("mode", "fast"),)),
        ("none", "pay.sent", (("mode", "fast"),)),
        ("order", "charge.after", (("mode", "fast"),)),
        ("order", "pay.sent", (("mode", "fast"),)),
    ]
