import re
from pathlib import Path

import pytest

from tools import lock
from tools.lock import Project, bootstrap, distribution, inputs, problems, requirements, staleness

ROOT = """
[project]
name = "killpoint"
dependencies = ["httpx>=0.28"]
[project.optional-dependencies]
local = ["embedded>=1"]
[dependency-groups]
dev = ["pytest>=9"]
[tool.ruff]
line-length = 120
"""
WORKLOAD = '[project]\nname = "killpoint-x"\ndependencies = ["framework>=1", "killpoint-worker"]\n'
UV = "uv==1.0 \\\n    --hash=sha256:aa\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A root, a worker program without dependencies, a payments service and a framework's project, all locked."""
    write(tmp_path / "pyproject.toml", ROOT)
    write(tmp_path / "workloads/worker/pyproject.toml", '[project]\nname = "killpoint-worker"\n')
    write(tmp_path / "workloads/payments/pyproject.toml", '[project]\nname = "p"\ndependencies = ["starlette"]\n')
    write(tmp_path / "workloads/x/pyproject.toml", WORKLOAD)
    for project in lock.projects(tmp_path):
        write(project.lock, lock.HEADER.format(source="pyproject.toml", inputs=inputs(project)) + UV)
    for place in lock.BOOTSTRAPS:
        write(tmp_path / place, bootstrap(UV))
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def project(checkout: Path, folder: str = "workloads/x") -> Project:
    return Project(folder=checkout / folder, is_root=False)


def test_locks_made_from_what_the_projects_state_are_fresh(checkout: Path) -> None:
    assert problems(checkout) == []


def test_a_changed_dependency_makes_its_lock_stale_and_no_other(checkout: Path) -> None:
    write(checkout / "workloads/x/pyproject.toml", WORKLOAD.replace("framework>=1", "framework>=2"))
    (found,) = problems(checkout)
    assert found.startswith("workloads/x/requirements.lock: was made from other dependencies")


def test_what_payments_needs_is_in_the_roots_lock_too(checkout: Path) -> None:
    write(checkout / "workloads/payments/pyproject.toml", '[project]\nname = "p"\ndependencies = ["starlette>=1"]\n')
    assert [problem.partition(":")[0] for problem in problems(checkout)] == [
        "requirements.lock",
        "workloads/payments/requirements.lock",
    ]


def test_a_change_that_is_no_dependency_leaves_the_lock_fresh(checkout: Path) -> None:
    write(checkout / "pyproject.toml", ROOT.replace("120", "100"))
    assert problems(checkout) == []


def test_a_lock_from_elsewhere_does_not_pass_for_fresh(checkout: Path) -> None:
    write(checkout / "workloads/x/requirements.lock", UV)
    assert staleness(project(checkout)) == "does not say what it was made from"


def test_requirements_beside_the_project_count_and_their_comments_do_not(checkout: Path) -> None:
    write(checkout / "workloads/x/requirements.in", "# why\nextra>=1  # and why\n")
    assert requirements(project(checkout)) == ["extra>=1", "framework>=1"]
    assert staleness(project(checkout)) is not None


def test_a_missing_lock_is_found(checkout: Path) -> None:
    (checkout / "workloads/x/requirements.lock").unlink()
    assert staleness(project(checkout)) == "is missing"


@pytest.mark.parametrize("place", lock.BOOTSTRAPS)
def test_each_bootstrap_is_the_uv_of_the_lock(checkout: Path, place: str) -> None:
    write(checkout / place, bootstrap(UV).replace("1.0", "0.9"))
    (found,) = problems(checkout)
    assert found.startswith(f"{place}: is not the uv")


def test_the_bootstrap_holds_uv_with_its_hashes_and_nothing_else() -> None:
    text = bootstrap(
        "rich==15 \\\n    --hash=sha256:bb\n" + UV + "    # via killpoint\nuvicorn==1 \\\n    --hash=sha256:cc\n"
    )
    assert re.findall(r"^\S.*==.*$", text, re.MULTILINE) == ["uv==1.0 \\"]
    assert "sha256:aa" in text
    assert "sha256:cc" not in text


def test_a_lock_without_uv_cannot_start_an_environment() -> None:
    with pytest.raises(lock.LockError, match="does not hold uv"):
        bootstrap("rich==15 \\\n    --hash=sha256:bb\n")


def test_our_own_projects_are_in_no_lock(checkout: Path) -> None:
    assert requirements(project(checkout)) == ["framework>=1"]


def test_a_project_without_dependencies_has_no_lock(checkout: Path) -> None:
    assert [found.folder.name for found in lock.projects(checkout)] == [checkout.name, "payments", "x"]


@pytest.mark.parametrize(
    ("requirement", "name"),
    [
        ("psycopg[binary]>=3.3 ; python_version > '3.11'", "psycopg"),
        ("PyYAML", "pyyaml"),
        ("uv==1", "uv"),
        ("killpoint-worker @ file:///x", "killpoint-worker"),
    ],
)
def test_a_requirement_is_known_by_its_distribution(requirement: str, name: str) -> None:
    assert distribution(requirement) == name
