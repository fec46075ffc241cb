"""Python environments for workloads, made on first use with uv from the workload's own lock.

An environment is known by the digest of its lock and of the Python that it is made for, so a changed lock makes a new
one and never changes one that somebody uses. It counts only once its marker is written.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import importlib.metadata
import os
import platform
import shutil
import signal
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import uv

from killpoint.local.errors import DISK_FULL, EnvironmentNotMade, indented
from killpoint.local.home import Home
from killpoint.local.locks import LockTimeout, exclusive
from killpoint.local.progress import Progress, Report, Stage, silent
from killpoint.local.workloads import SHARED, Workloads

MAKE_SECONDS_MAX = 1200.0
LOCK_FILE = "requirements.lock"
MARKER = "killpoint-complete"
_TAIL_LINES = 12
_FAULTS = (
    (("no space left", "disk quota", "os error 28"), DISK_FULL),
    (
        ("hash mismatch", "--require-hashes"),
        "The package index serves other files than the lock names. Check which index uv is told to use.",
    ),
    (
        ("requires-python", "requires python", "no wheels with a matching python", "does not satisfy python"),
        "The workload's packages do not support this Python. Run killpoint with another one (3.11 to 3.13).",
    ),
    (
        ("dns error", "error sending request", "failed to fetch", "timed out", "connect", "offline", "network",
         "tls", "certificate"),
        "The package index could not be reached. Check network, proxy and the index that uv is told to use.",
    ),
    (("permission denied", "os error 13", "read-only"), "Set KILLPOINT_CACHE to a folder that can be written."),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEnvironment:
    """A Python that has what a workload needs."""

    project: str
    python: Path
    sources: tuple[Path, ...]
    """What goes onto PYTHONPATH: the workload's own packages are not installed."""
    path: str = ""
    """PATH, where that is not the environment's own programs and the system's."""

    def versions(self, distributions: Sequence[str]) -> Mapping[str, str]:
        """The installed versions of these distributions; those that are not installed are left out."""
        places = [str(place) for place in self.python.parent.parent.glob("lib*/python*/site-packages")]
        wanted = {_normal(name): name for name in distributions}
        return {
            wanted[_normal(found.name)]: found.version
            for found in importlib.metadata.distributions(path=places)
            if found.name and _normal(found.name) in wanted
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Environments:
    """The environments of this machine's cache."""

    home: Home
    workloads: Workloads
    user: Mapping[str, str] = field(repr=False)
    """The harness's environment: it says where indexes and proxies are."""
    report: Report = field(default=silent, repr=False)

    async def ensure(self, project: str) -> WorkerEnvironment:
        """The environment of a workload, made if need be. Raises EnvironmentNotMade.

        A workload without a lock needs nothing but Python, and gets the one that runs killpoint.
        """
        sources = self.workloads.sources(project)
        lock = self.workloads.project(project) / LOCK_FILE
        if not lock.exists():
            return WorkerEnvironment(project=project, python=Path(sys.executable), sources=sources)
        try:
            folder = self.home.environments / f"{project}-{_digest(lock.read_bytes())}"
            python = folder / "bin" / "python"
            if not _is_whole(folder):
                await self._make_alone(project, lock, folder)
        except OSError as error:
            raise not_made(project, "its files", [str(error)]) from error
        return WorkerEnvironment(project=project, python=python, sources=sources)

    def of_user(self) -> WorkerEnvironment:
        """For a worker that the user brings: the user's own programs, and ours to import."""
        sources = tuple(self.workloads.project(name) / "src" for name in SHARED)
        return WorkerEnvironment(
            project="", python=Path(sys.executable), sources=sources, path=self.user.get("PATH", os.defpath)
        )

    async def _make_alone(self, project: str, lock: Path, folder: Path) -> None:
        """Make it while no other killpoint does; another may have made it meanwhile."""
        try:
            async with exclusive(
                folder.with_name(folder.name + ".lock"),
                seconds=MAKE_SECONDS_MAX,
                on_wait=lambda: self._tell(project, "another killpoint is making it"),
            ):
                if not _is_whole(folder):
                    await self._make(project, lock, folder)
        except LockTimeout as error:
            raise EnvironmentNotMade(
                f"the environment of workload {project}: {error}",
                remedy="Another killpoint is making it; look for it, and end it.",
            ) from error

    async def _make(self, project: str, lock: Path, folder: Path) -> None:
        began = time.monotonic()
        self._tell(project, "making its Python environment")
        # One that was begun and not finished: whoever made it was killed.
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        await self._uv(project, "venv", "--quiet", "--no-project", "--python", sys.executable, str(folder))
        await self._uv(
            project, "pip", "install", "--python", str(folder / "bin" / "python"), "--require-hashes",
            "--compile-bytecode", "--requirements", str(lock),
        )  # fmt: skip
        (folder / MARKER).touch()
        self._tell(project, f"environment made in {time.monotonic() - began:.0f} s", done=True)

    async def _uv(self, project: str, *arguments: str) -> None:
        command = (_find_uv(), *arguments)
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE, cwd=self.home.environments, env=_uv_environment(self.user),
            start_new_session=True,
        )  # fmt: skip
        tail: deque[str] = deque(maxlen=_TAIL_LINES)
        try:
            async with asyncio.timeout(MAKE_SECONDS_MAX):
                code = await self._follow(project, process, tail)
        except TimeoutError as error:
            raise not_made(
                project, " ".join(command), [*tail, f"not done after {MAKE_SECONDS_MAX:.0f} s: timed out"]
            ) from error
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):  # it may end at this very moment
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if code != 0:
            raise not_made(project, " ".join(command), list(tail))

    async def _follow(self, project: str, process: asyncio.subprocess.Process, tail: deque[str]) -> int:
        """Pass uv's lines on, keep the last ones, and return its exit code."""
        assert process.stderr is not None  # noqa: S101 - it was asked for as a pipe
        async for raw in process.stderr:
            line = raw.decode(errors="replace").strip()
            if line:
                tail.append(line)
            if line and not line.startswith("+"):
                self._tell(project, line)
        return await process.wait()

    def _tell(self, project: str, text: str, *, done: bool = False) -> None:
        self.report(Progress(stage=Stage.ENVIRONMENT, subject=project, text=text, done=done))


def _is_whole(folder: Path) -> bool:
    """Made to its end, and the Python that it was made from is still there."""
    return (folder / MARKER).exists() and (folder / "bin" / "python").exists()


def _digest(lock: bytes) -> str:
    python = f"{sys.implementation.cache_tag} {sys.platform} {platform.machine()}"
    return hashlib.sha256(python.encode() + b"\0" + lock).hexdigest()[:16]


def _find_uv() -> str:
    try:
        return uv.find_uv_bin()
    except FileNotFoundError as error:
        raise EnvironmentNotMade(
            "uv is not where its package says", remedy="pip install --force-reinstall uv"
        ) from error


def _uv_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The user's own, for indexes and proxies, without what would point uv at another environment."""
    ours = {name: value for name, value in environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")}
    return {**ours, "NO_COLOR": "1", "UV_NO_PROGRESS": "1"}


def not_made(project: str, command: str, tail: list[str]) -> EnvironmentNotMade:
    """The error for what uv said: the command, its last lines, and the remedy for what it seems to be."""
    text = " ".join(tail).lower()
    remedy = next(
        (remedy for words, remedy in _FAULTS if any(word in text for word in words)),
        "Run the command by itself to see more.",
    )
    return EnvironmentNotMade(
        f"the environment of workload {project} could not be made: {command}", detail=indented(tail), remedy=remedy
    )


def _normal(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")
