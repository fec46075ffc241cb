from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from killpoint.api.generate import main, stale, write
from killpoint.api.reference import experiment_reference, experiment_schema
from killpoint.api.schema import resolve, schema
from killpoint.api.v1alpha1.spec import Spec


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


def test_what_is_missing_or_changed_is_stale_until_it_is_written(repository: Path) -> None:
    assert len(stale(repository)) == 4
    assert write(repository) == (
        "crds/crashexperiments.killpoint.dev.yaml",
        "charts/killpoint/files/crds/crashexperiments.killpoint.dev.yaml",
        "docs/reference/experiment.md",
        "docs/reference/crashexperiment.schema.json",
    )
    assert stale(repository) == ()
    (repository / "docs/reference/experiment.md").write_text("changed by hand")
    assert stale(repository) == ("docs/reference/experiment.md",)


def test_the_check_fails_while_something_is_stale_and_writes_nothing(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--check"], repository) == 1
    assert "docs/reference/experiment.md is out of date" in capsys.readouterr().err
    assert not (repository / "docs").exists()
    assert main([], repository) == 0
    assert main(["--check"], repository) == 0


@pytest.mark.parametrize("arguments", [["--chek"], ["--check", "x"]])
def test_misuse_is_said(repository: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments, repository) == 2
    assert "usage" in capsys.readouterr().err


def test_an_installed_package_has_nothing_to_generate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([], tmp_path) == 2
    assert "no checkout" in capsys.readouterr().err


def test_the_reference_names_every_field_of_the_specification() -> None:
    text = experiment_reference()
    assert [field.alias for field in Spec.model_fields.values() if f"| `{field.alias}`" not in text] == []
    assert "`delivery`†" in text


def objects(node: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - any part of a JSON document
    """All types in a JSON Schema, whatever is around them."""
    if isinstance(node, list):
        return [found for item in node for found in objects(item)]
    if not isinstance(node, dict):
        return []
    inner = [found for value in node.values() for found in objects(value)]
    return [node, *inner] if isinstance(node.get("type"), str) or "anyOf" in node else inner


def test_every_list_map_and_string_has_a_limit_and_every_number_too() -> None:
    limits = {"array": "maxItems", "string": "maxLength", "integer": "maximum", "number": "maximum"}
    for node in objects(json.loads(experiment_schema())):
        kind = node.get("type")
        if kind in limits and "enum" not in node and "const" not in node:
            assert limits[kind] in node, node
        if kind == "object" and node.get("additionalProperties"):
            assert "maxProperties" in node, node


def test_the_schema_has_only_what_a_structural_schema_can_say() -> None:
    text = experiment_schema()
    for word in (
        "exclusiveMinimum",
        "patternProperties",
        "propertyNames",
        "prefixItems",
        "uniqueItems",
        "oneOf",
        "anyOf",
    ):
        assert f'"{word}"' not in text
    assert "(?" not in text, "no lookaheads"


def test_every_field_is_described() -> None:
    nodes = [resolve(node) for node in schema()["$defs"].values()]
    fields = [
        (node["title"], name, resolve(field)) for node in nodes for name, field in node.get("properties", {}).items()
    ]
    assert [(title, name) for title, name, field in fields if not field.get("description")] == []
