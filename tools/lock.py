"""Make the lock files, and say without a resolver whether they are still those of what they were made from.

A lock is a ``requirements.lock`` beside a project's ``pyproject.toml``: every distribution by exact version with the
hashes of its files, for every platform. Its second line is the hash of the inputs that it was made from, so that
``--check`` needs no network: a changed dependency table gives another hash. No line names an index: which one is
asked is the affair of whoever installs.

    python -m tools.lock                make all locks; versions that still fit stay
    python -m tools.lock --upgrade      make all locks with the newest versions
    python -m tools.lock --check        say which locks are missing or stale; exit 1 if any is
    python -m tools.lock workloads/x    only this project's (with any of the above)
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

LOCK = "requirements.lock"
BOOTSTRAP = "requirements-bootstrap.lock"
"""uv alone, cut out of the root's lock: what pip installs so that uv can install the rest."""
BOOTSTRAPS = (BOOTSTRAP, f"workloads/{BOOTSTRAP}")
"""Twice: images of workloads are built from workloads/, and nothing outside of it is theirs to see."""
HEADER = "# Made by `make lock` from {source}. Don't edit.\n# inputs sha256:{inputs}\n"
INPUTS = re.compile(r"^# inputs sha256:([0-9a-f]{64})$", re.MULTILINE)
PYTHON = "3.11"
OPTIONS = ("--universal", "--generate-hashes", "--python-version", PYTHON, "--no-header", "--quiet")
SHARED = ("worker", "steps", "payments")
"""The workloads that the root's environment holds as well: they get along with the root, as the frameworks do not."""
OURS = re.compile(r"^killpoint(?:[-_.][a-z-]+)?$")
"""Our own projects are installed from the checkout or the wheel, never from an index: no lock names them."""


class LockError(Exception):
    """A lock could not be made. The message says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A folder with a lock of its own."""

    folder: Path
    is_root: bool

    @property
    def lock(self) -> Path:
        return self.folder / LOCK

    @property
    def pyproject(self) -> Path:
        return self.folder / "pyproject.toml"


def projects(root: Path) -> list[Project]:
    """The root's project and every workload that depends on anything outside of this repository."""
    workloads = sorted(path.parent for path in (root / "workloads").glob("*/pyproject.toml"))
    found = [Project(folder=root, is_root=True)]
    found += [Project(folder=folder, is_root=False) for folder in workloads]
    return [project for project in found if project.is_root or requirements(project)]


def requirements(project: Project) -> list[str]:
    """What the lock is resolved from, in PEP 508.

    The root's has every extra, the dev group and what the shared workloads depend on: one environment to develop in.
    """
    names = stated(project.pyproject) | listed(project.folder / "requirements.in")
    if project.is_root:
        for workload in SHARED:
            names |= stated(project.folder / "workloads" / workload / "pyproject.toml")
    return sorted(name for name in names if not OURS.match(distribution(name)))


def stated(pyproject: Path) -> set[str]:
    """What a project asks for: its dependencies, every extra and its dev group. Nothing where there is no project."""
    if not pyproject.is_file():
        return set()
    table = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    lists = [
        table["project"].get("dependencies", []),
        *table["project"].get("optional-dependencies", {}).values(),
        table.get("dependency-groups", {}).get("dev", []),
    ]
    return {name for names in lists for name in names}


def listed(requirements_in: Path) -> set[str]:
    """Further requirements, a line each: what a worker runs on without being a dependency of its package."""
    if not requirements_in.is_file():
        return set()
    lines = (line.partition(" #")[0].strip() for line in requirements_in.read_text(encoding="utf-8").splitlines())
    return {line for line in lines if line and not line.startswith(("#", "-"))}


def distribution(requirement: str) -> str:
    """``psycopg`` of ``psycopg[binary]>=3.3 ; python_version > "3.11"``, in lower case."""
    return re.split(r"[\s\[<>=!~;@(]", requirement.strip(), maxsplit=1)[0].lower()


def inputs(project: Project) -> str:
    """The hash of all that decides what a lock should hold, but for what the index offers."""
    text = json.dumps({"requirements": requirements(project), "options": OPTIONS}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def staleness(project: Project) -> str | None:
    """Why the project's lock has to be made again, or None."""
    if not project.lock.is_file():
        return "is missing"
    line = INPUTS.search(project.lock.read_text(encoding="utf-8"))
    if line is None:
        return "does not say what it was made from"
    if line.group(1) != inputs(project):
        return f"was made from other dependencies than {project.pyproject.name} now states"
    return None


def bootstrap(lock: str) -> str:
    """The part of the root's lock that installs uv."""
    block = re.search(r"^uv==.*?(?=^\S)", lock + "end\n", re.MULTILINE | re.DOTALL)
    if block is None:
        raise LockError("the root's lock does not hold uv: keep it among the project's dependencies")
    lines = [line for line in block.group().splitlines() if not line.lstrip().startswith("#")]
    return "# Made by `make lock` from requirements.lock. Don't edit.\n" + "\n".join(lines) + "\n"


def compile_lock(project: Project, *, upgrade: bool) -> None:
    """Resolve and write the project's lock. Versions of the old one are kept where they still fit, unless upgraded.

    Raises LockError with the resolver's words.
    """
    command = ["uv", "pip", "compile", *OPTIONS, *(["--upgrade"] if upgrade else []), "--output-file", LOCK, "-"]
    done = subprocess.run(
        command, cwd=project.folder, input="\n".join(requirements(project)), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise LockError(f"{project.lock}: {done.stderr.strip()}")
    pins = re.sub(r"^    # via -r -\n", "", project.lock.read_text(encoding="utf-8"), flags=re.MULTILINE)
    header = HEADER.format(source=project.pyproject.name, inputs=inputs(project))
    project.lock.write_text(header + pins, encoding="utf-8")
    if project.is_root:
        for first in bootstraps(project.folder):
            if not (first.is_file() and first.read_text("utf-8") == bootstrap(pins)):
                first.write_text(bootstrap(pins), encoding="utf-8")


def bootstraps(root: Path) -> list[Path]:
    """Where a bootstrap belongs, there or not."""
    return [root / place for place in BOOTSTRAPS if (root / place).parent.is_dir()]


def problems(root: Path) -> list[str]:
    """Every lock that is missing or stale, in words that say what to do."""
    found = [
        f"{project.lock.relative_to(root)}: {why}: run `make lock`"
        for project in projects(root)
        if (why := staleness(project)) is not None
    ]
    lock = root / LOCK
    if not lock.is_file():
        return found
    expected = bootstrap(lock.read_text("utf-8"))
    found += [
        f"{first.relative_to(root)}: is not the uv of {LOCK}: run `make lock`"
        for first in bootstraps(root)
        if not first.is_file() or first.read_text("utf-8") != expected
    ]
    return found


def main(arguments: list[str] | None = None) -> int:
    """The exit code: 0 done or fresh, 1 stale or not to be made."""
    parser = argparse.ArgumentParser(prog="tools.lock", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("folders", nargs="*", type=Path, help="only these projects")
    parser.add_argument("--check", action="store_true", help="only say which are missing or stale")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    options = parser.parse_args(arguments)
    root = Path.cwd()
    if options.check:
        found = problems(root)
        print("\n".join(found), end="\n" if found else "")
        return 1 if found else 0
    wanted = {(root / folder).resolve() for folder in options.folders}
    for project in projects(root):
        if not wanted or project.folder.resolve() in wanted:
            print(f"{project.lock.relative_to(root)} …", flush=True)
            compile_lock(project, upgrade=options.upgrade)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LockError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
