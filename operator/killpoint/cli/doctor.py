"""Doctor: what a run needs on this machine, checked one by one."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from killpoint.local.home import Home
from killpoint.local.stack import installed_workloads, local_postgres
from killpoint.ports import Impediment

FREE_BYTES_MIN = 3 << 30
"""The environments of all setups take about 1.5 GB; Postgres and the runs' files the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str


async def examine(home: Home, dsn: str | None) -> list[Check]:
    """Look at everything; a check that fails doesn't keep the others from being made."""

    async def postgres() -> str:
        async with local_postgres(home, dsn) as databases:
            return f"Postgres {databases.server.version}"

    return [
        Check(name="python", ok=sys.version_info >= (3, 11), detail=f"{sys.version.split()[0]} at {sys.executable}"),
        await _checked("workloads", _workloads),
        _writable("state", home.state),
        _writable("cache", home.cache),
        await _checked("database", postgres),
    ]


def text(checks: list[Check]) -> str:
    """The checks as lines; what is wrong says what to do."""
    width = max(len(check.name) for check in checks)
    return "\n".join(f"{'ok  ' if check.ok else 'FAIL'}  {check.name.ljust(width)}  {check.detail}" for check in checks)


async def _workloads() -> str:
    return ", ".join(setup.name for setup in installed_workloads().catalog())


async def _checked(name: str, look: Callable[[], Awaitable[str]]) -> Check:
    try:
        return Check(name=name, ok=True, detail=await look())
    except Impediment as error:
        return Check(name=name, ok=False, detail=str(error))


def _writable(name: str, folder: Path) -> Check:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
    except OSError as error:
        remedy = f"set KILLPOINT_{'HOME' if name == 'state' else 'CACHE'} to a folder that you may write to"
        return Check(name=name, ok=False, detail=f"{folder}: {error.strerror}; {remedy}")
    if not os.access(folder, os.W_OK):
        return Check(name=name, ok=False, detail=f"{folder} is not writable")
    enough = free >= FREE_BYTES_MIN
    return Check(
        name=name, ok=enough, detail=f"{folder}, {free / (1 << 30):.1f} GiB free" + ("" if enough else "; free some")
    )
