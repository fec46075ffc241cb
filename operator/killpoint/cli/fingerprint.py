"""A fingerprint of the programs that a run is about: evidence of two different programs must never be mixed."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from pathlib import Path

from killpoint.local.workloads import Workloads
from killpoint.model.catalog import Catalog

SHARED = ("worker", "steps", "payments")
"""The workloads that every run works with."""
PATTERNS = ("*.lock", "*.toml", "*.sh", "src/**/*.py", "src/**/*.sql")


def fingerprint(workloads: Workloads, catalog: Catalog, setups: Collection[str], own_folder: Path) -> str:
    """SHA-256 over the sources and locks of the setups' workloads, and over the files that own commands name."""
    digest = hashlib.sha256()
    used = [setup for setup in catalog if setup.name in setups]
    projects = sorted({*SHARED, *(setup.project for setup in used if setup.project)})
    own = {own_folder / word for setup in used if not setup.project for word in setup.command}
    for path in (*_sources(workloads, projects), *sorted(path for path in own if path.is_file())):
        digest.update(f"{path.name}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _sources(workloads: Workloads, projects: Collection[str]) -> Iterator[Path]:
    for project in projects:
        folder = workloads.project(project)
        yield from sorted({path for pattern in PATTERNS for path in folder.glob(pattern) if path.is_file()})
