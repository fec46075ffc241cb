"""The layers in pyproject.toml catch what they are there for: one breach of each kind, in a package made up for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ROOMS = ("api", "cli", "controller", "core", "engine", "journal", "kubernetes", "local", "model", "payments", "report")


def lint(operator: Path, modules: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the project's own contracts over a killpoint that is made of these modules, by path, and empty rooms."""
    for room in ROOMS:
        modules.setdefault(f"{room}/__init__.py", "")
    for path, text in {"__init__.py": "", "ports.py": "", **modules}.items():
        (operator / "killpoint" / path).parent.mkdir(parents=True, exist_ok=True)
        (operator / "killpoint" / path).write_text(text, encoding="utf-8")
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--config", ROOT / "pyproject.toml", "--no-cache"],
        cwd=operator,
        env={**os.environ, "PYTHONPATH": str(operator), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_imports_downwards_and_by_the_one_importer_are_kept(tmp_path: Path) -> None:
    done = lint(
        tmp_path,
        {
            "cli/run.py": "import typer, rich\nfrom killpoint import engine, local\n",
            "controller/main.py": "import kopf\nfrom killpoint import kubernetes\n",
            "local/processes.py": "import asyncio, os, subprocess\nfrom killpoint import ports\n",
            "core/judge.py": "from killpoint import api, model\n",
        },
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("model/bad.py", "from killpoint import core", "killpoint.model is not allowed to import killpoint.core"),
        ("engine.py", "from killpoint import journal", "killpoint.engine is not allowed to import killpoint.journal"),
        (
            "local/bad.py",
            "import killpoint.kubernetes",
            "killpoint.local is not allowed to import killpoint.kubernetes",
        ),
        ("stray/__init__.py", "", "stray"),
        ("core/bad.py", "import asyncio", "killpoint.core is not allowed to import asyncio"),
        ("report/bad.py", "import pathlib", "killpoint.report is not allowed to import pathlib"),
        ("kubernetes/bad.py", "import kopf", "is not allowed to import kopf"),
        ("local/bad.py", "from rich import print", "is not allowed to import rich"),
    ],
)
def test_a_breach_is_found(tmp_path: Path, path: str, text: str, words: str) -> None:
    done = lint(tmp_path, {path: text + "\n"})
    assert done.returncode == 1, done.stdout
    assert words in " ".join(done.stdout.split())


def test_purity_holds_through_what_a_pure_module_imports(tmp_path: Path) -> None:
    done = lint(tmp_path, {"core/judge.py": "from killpoint.api import files\n", "api/files.py": "import pathlib\n"})
    assert "killpoint.core is not allowed to import pathlib" in done.stdout
