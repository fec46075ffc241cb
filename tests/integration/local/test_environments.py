"""Environments, made by the real uv from a lock and a folder of wheels: no network."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from killpoint.local.environments import MARKER, Environments
from killpoint.local.errors import EnvironmentNotMade
from killpoint.local.home import Home
from killpoint.local.progress import Progress
from killpoint.local.workloads import Workloads

pytestmark = [pytest.mark.anyio, pytest.mark.integration]


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    return folder


@pytest.fixture
def workloads(tmp_path: Path) -> Workloads:
    folder = tmp_path / "workloads"
    for name in ("worker", "steps", "sample"):
        (folder / name / "src").mkdir(parents=True)
    return Workloads(folder=folder)


@pytest.fixture
def environments(tmp_path: Path, wheels: Path, workloads: Workloads) -> Environments:
    return _environments(tmp_path, wheels, workloads)


async def test_an_environment_is_made_once_from_the_lock(
    environments: Environments, workloads: Workloads, wheels: Path
) -> None:
    _lock(workloads, _wheel(wheels, "1.0"))
    first, second = await asyncio.gather(environments.ensure("sample"), environments.ensure("sample"))
    made = (first.python.parent.parent / MARKER).stat().st_mtime_ns
    third = await environments.ensure("sample")

    assert first == second == third
    assert (first.python.parent.parent / MARKER).stat().st_mtime_ns == made
    assert first.versions(["A-Sample", "not-there"]) == {"A-Sample": "1.0"}
    assert list(first.python.parent.parent.glob("lib/python*/site-packages/__pycache__/a_sample*.pyc"))
    assert first.sources == tuple(workloads.folder / name / "src" for name in ("sample", "steps", "worker"))


async def test_another_lock_makes_another_environment_and_leaves_the_first(
    environments: Environments, workloads: Workloads, wheels: Path
) -> None:
    _lock(workloads, _wheel(wheels, "1.0"))
    old = await environments.ensure("sample")
    _lock(workloads, _wheel(wheels, "2.0"))
    new = await environments.ensure("sample")

    assert old.python != new.python
    assert (old.versions(["a-sample"]), new.versions(["a-sample"])) == ({"a-sample": "1.0"}, {"a-sample": "2.0"})


async def test_one_that_was_not_finished_is_made_again(
    environments: Environments, workloads: Workloads, wheels: Path
) -> None:
    _lock(workloads, _wheel(wheels, "1.0"))
    folder = (await environments.ensure("sample")).python.parent.parent
    (folder / MARKER).unlink()
    shutil.rmtree(folder / "lib")

    again = await environments.ensure("sample")
    assert again.versions(["a-sample"]) == {"a-sample": "1.0"}


async def test_a_file_that_is_not_the_locks_is_refused(
    environments: Environments, workloads: Workloads, wheels: Path
) -> None:
    _lock(workloads, _wheel(wheels, "1.0"), digest="0" * 64)
    with pytest.raises(EnvironmentNotMade) as failed:
        await environments.ensure("sample")

    assert "the environment of workload sample could not be made" in failed.value.what
    assert "pip install" in failed.value.what
    assert "a-sample" in failed.value.detail
    assert "other files than the lock names" in failed.value.remedy


async def test_no_network_is_said(tmp_path: Path, workloads: Workloads, wheels: Path) -> None:
    _lock(workloads, _wheel(wheels, "1.0"))
    away = {"UV_INDEX_URL": "http://127.0.0.1:9/simple", "UV_HTTP_RETRIES": "0", "UV_NO_CACHE": "1"}
    with pytest.raises(EnvironmentNotMade) as failed:
        await _environments(tmp_path, wheels, workloads, index=away).ensure("sample")

    assert "The package index could not be reached" in str(failed.value)


async def test_a_workload_without_a_lock_gets_killpoints_own_python(environments: Environments) -> None:
    assert (await environments.ensure("sample")).python == Path(sys.executable)


async def test_what_uv_does_is_told(tmp_path: Path, workloads: Workloads, wheels: Path) -> None:
    told: list[Progress] = []
    _lock(workloads, _wheel(wheels, "1.0"))
    environments = Environments(
        home=Home(state=tmp_path / "state", cache=tmp_path / "cache"),
        workloads=workloads,
        user=_offline(wheels),
        report=told.append,
    )
    await environments.ensure("sample")

    assert {progress.subject for progress in told} == {"sample"}
    assert [progress.done for progress in told] == [False] * (len(told) - 1) + [True]
    assert any("Installed 1 package" in progress.text for progress in told)


def _environments(
    folder: Path, wheels: Path, workloads: Workloads, *, index: Mapping[str, str] | None = None
) -> Environments:
    return Environments(
        home=Home(state=folder / "state", cache=folder / "cache"),
        workloads=workloads,
        user={**os.environ, **index} if index else _offline(wheels),
    )


def _offline(wheels: Path) -> dict[str, str]:
    return {**os.environ, "UV_NO_INDEX": "1", "UV_FIND_LINKS": str(wheels), "UV_OFFLINE": "1"}


def _wheel(folder: Path, version: str) -> Path:
    """The smallest wheel that there is."""
    wheel = folder / f"a_sample-{version}-py3-none-any.whl"
    info = f"a_sample-{version}.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("a_sample.py", f"VERSION = {version!r}\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: a-sample\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return wheel


def _lock(workloads: Workloads, wheel: Path, *, digest: str | None = None) -> None:
    version = wheel.name.split("-")[1]
    found = digest or hashlib.sha256(wheel.read_bytes()).hexdigest()
    (workloads.project("sample") / "requirements.lock").write_text(
        f"a-sample=={version} \\\n    --hash=sha256:{found}\n"
    )
