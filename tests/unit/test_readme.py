"""The README: its experiment is valid, its links lead somewhere, its commands exist."""

from __future__ import annotations

import re
from pathlib import Path

from typer.testing import CliRunner

from killpoint.api.convert import experiment_of
from killpoint.api.load import load
from killpoint.cli.app import app
from killpoint.local.stack import installed_workloads

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_its_experiment_is_valid() -> None:
    block = re.search(r"```yaml\n(.*?)```", README, re.DOTALL)
    assert block is not None
    catalog = installed_workloads().catalog()
    experiment = experiment_of(load(block.group(1), catalog=catalog), catalog)
    assert {rule.expected.source for rule in experiment.rules} == {"spec.expect[0]", "spec.expect[1]"}


def test_its_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_its_commands_exist() -> None:
    named = set(re.findall(r"^    killpoint ([a-z]+)", README, re.MULTILINE))
    shown = CliRunner().invoke(app, ["--help"]).output
    assert named
    assert [name for name in named if not re.search(rf"^  {name} ", shown, re.MULTILINE)] == []


def test_its_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:^    |`)make ([a-z]+)", README, re.MULTILINE))
    assert {"demo", "test"} <= named
    assert [name for name in named if not re.search(rf"^{name}:", makefile, re.MULTILINE)] == []
