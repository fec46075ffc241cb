"""What `pip install killpoint` brings: built once from a copy, with the litter of a used checkout in it."""

import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[3]
PARTS = ("operator", "workloads", "experiments", "pyproject.toml", "README.md", "LICENSE", ".gitignore")
LITTER = ("workloads/x/.venv/pyvenv.cfg", "workloads/x/src/x/__pycache__/x.pyc", "workloads/x/x.egg-info/PKG-INFO")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    copy = tmp_path_factory.mktemp("checkout")
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns(".venv", "__pycache__"))
        elif (ROOT / part).is_file():
            shutil.copy(ROOT / part, copy / part)
    for path in (*LITTER, "workloads/x/src/x/x.py", "experiments/x.yaml"):
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).touch()
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel"], cwd=copy, check=True, capture_output=True
    )
    (built,) = (copy / "dist").glob("*.whl")
    return ZipFile(built)


def test_the_wheel_brings_the_package_with_its_types(wheel: ZipFile) -> None:
    assert {"killpoint/__init__.py", "killpoint/py.typed"} <= set(wheel.namelist())


def test_the_wheel_brings_what_run_needs_besides_code(wheel: ZipFile) -> None:
    assert "killpoint/_data/experiments/x.yaml" in wheel.namelist()
    assert "killpoint/_data/workloads/x/src/x/x.py" in wheel.namelist()
    assert "killpoint/_data/workloads/worker/pyproject.toml" in wheel.namelist()


def test_no_environment_or_cache_gets_into_the_wheel(wheel: ZipFile) -> None:
    litter = [name for name in wheel.namelist() if any(word in name for word in (".venv", "__pycache__", "egg-info"))]
    assert litter == []


def test_the_wheel_is_one_package_and_its_metadata(wheel: ZipFile) -> None:
    tops = {name.partition("/")[0].partition("-")[0] for name in wheel.namelist()}
    assert tops == {"killpoint"}


def test_the_wheel_installs_the_command(wheel: ZipFile) -> None:
    (entry_points,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert "killpoint = killpoint.cli:main" in wheel.read(entry_points).decode()
