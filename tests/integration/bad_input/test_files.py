"""A file that is no experiment, or not the one that was meant: every mistake with its place, and nothing is run."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.integration.bad_input.saying import assert_refused
from tests.integration.runs.rig import EXPERIMENTS, Command

pytestmark = pytest.mark.integration

TABLE = (EXPERIMENTS / "crash-table.yaml").read_text()


def _with(**spec: object) -> str:
    document = yaml.safe_load(TABLE)
    document["spec"] |= spec
    return yaml.safe_dump(document, sort_keys=False)


def _with_axes(**axes: object) -> str:
    return _with(matrix=yaml.safe_load(TABLE)["spec"]["matrix"] | axes)


BAD = {
    "not YAML": ("spec: [unclosed\n", ("bad.yaml:2:1: ",)),
    "not even text": ("a\0b", ("bad.yaml: not a text file; an experiment is YAML in UTF-8",)),
    "another kind": (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {}\n",
        ('kind: Unsupported value: "Deployment"', '"CrashExperiment"'),
    ),
    "an unknown axis": (
        TABLE.replace("    key: [none, fresh, stable]", "    keys: [none, fresh, stable]", 1),
        ('unknown field "spec.matrix.keys"; did you mean key?',),
    ),
    "an unknown value": (
        _with_axes(key=["none", "fersh"]),
        ('spec.matrix.key[1]: Unsupported value: "fersh"', "fresh"),
    ),
    "an unknown setup": (_with_axes(setup=["langraph"]), ("spec.matrix.setup[0]: ", '"langraph"', "langgraph")),
    "an unknown point": (
        _with_axes(kill=[{"at": ["charge.afterwards"]}]),
        ("spec.matrix.kill[0].at[0]", "charge.after"),
    ),
    "more cells than allowed": (_with(limits={"cells": 10}), ("spec.limits.cells", "10", "48")),
    "a rule that matches nothing": (
        _with(expect=[{"where": {"key": ["order"]}, "verdict": ["duplicate"]}]),
        ("spec.expect[0].where.key[0]", '"order"', "no cell has it"),
    ),
    "what is not available yet": (_with(suspend=1), ("spec.suspend",)),
}


@pytest.mark.parametrize("name", BAD)
def test_it_is_refused_before_anything_is_run(name: str, command: Command, tmp_path: Path) -> None:
    text, words = BAD[name]
    (tmp_path / "bad.yaml").write_text(text)
    home = Command(home=tmp_path / "home", cache=command.cache, scratch=tmp_path)
    message = assert_refused(home("run", tmp_path / "bad.yaml"), code=2, words=words)
    assert message.startswith(f"{tmp_path}/bad.yaml:")
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "nowhere.yaml"), ("nowhere.yaml: the file cannot be read: no such file or directory",)),
        (("run", "/"), ("/: the file cannot be read: is a directory",)),
        (("run", EXPERIMENTS / "dbos.yaml", "--filter", "key=nome"), ("no cell of dbos is left by --filter key=nome",)),
        (("run", EXPERIMENTS / "dbos.yaml", "--filter", "kex=none"), ("--filter kex=none: expected axis=word",)),
        (("run", EXPERIMENTS / "dbos.yaml", "--mode", "warm"), ("'warm' is not one of", "--help")),
        (("run",), ("Missing argument 'file'", "--help")),
        (("rnu",), ("No such command 'rnu'", "--help")),
    ],
)
def test_a_command_that_cannot_be_meant_is_refused(
    command: Command, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    assert_refused(command(*arguments), code=2, words=words)
