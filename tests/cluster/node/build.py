"""Build the components from the Go module proxy, once for each state of their sources and each Go."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.node.commands import ClusterError, run, say

SOURCES = Path(__file__).resolve().parents[1] / "components"
KUBERNETES = "k8s.io/kubernetes"
HELM = "helm.sh/helm/v4"
BUILD_SECONDS_MAX = 3600.0


def binaries(cache: Path) -> Path:
    """The folder with ``kube`` and ``pause``, built if it is not in the cache. Raises ClusterError."""
    folder = cache / "bin" / digest()
    cache.mkdir(parents=True, exist_ok=True)
    with only_one(cache / "build.lock"):
        if not folder.is_dir():
            began = time.monotonic()
            say(f"building Kubernetes {version(KUBERNETES)} and Helm {version(HELM)} from Go modules (minutes, once)")
            _build(folder, cache)
            say(f"built in {time.monotonic() - began:.0f} s: {folder}")
    return folder


def digest() -> str:
    """Of all that decides what is built."""
    said = hashlib.sha256(run("go", "version").encode())
    said.update(" ".join(_linker_options()).encode())
    for source in sorted(SOURCES.rglob("*")):
        if source.is_file():
            said.update(f"\0{source.relative_to(SOURCES)}\0".encode() + source.read_bytes())
    return said.hexdigest()[:16]


def version(module: str) -> str:
    """As go.mod has it: v1.34.4."""
    text = (SOURCES / "go.mod").read_text(encoding="utf-8")
    found = re.search(rf"^\s*{re.escape(module)} (v\S+)", text, re.MULTILINE)
    if found is None:
        raise ClusterError(f"{SOURCES / 'go.mod'} does not require {module}")
    return found.group(1)


def _build(folder: Path, cache: Path) -> None:
    # Go's own caches don't hang on HOME either, and a second build after a change takes seconds with them.
    caches = {"GOCACHE": str(cache / "go" / "build"), "GOMODCACHE": str(cache / "go" / "modules")}
    environment = {**caches, **os.environ, "CGO_ENABLED": "0"}
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix="fresh-", dir=folder.parent))
    try:
        for name, package in (("kube", "."), ("pause", "./pause")):
            options: tuple[str | Path, ...] = ("-trimpath", "-ldflags", " ".join(_linker_options()), "-o", fresh / name)
            run("nice", "go", "build", *options, package, cwd=SOURCES, env=environment, seconds_max=BUILD_SECONDS_MAX)
        fresh.chmod(0o755)
        fresh.rename(folder)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def _linker_options() -> list[str]:
    """The versions, put in as the projects' own builds do. Helm has to know which Kubernetes it renders for."""
    kubernetes = version(KUBERNETES)
    major, minor, _ = kubernetes.removeprefix("v").split(".")
    base = "k8s.io/component-base/version"
    helm_reads = (
        f"{HELM}/internal/version.kubeClientVersion",
        f"{HELM}/pkg/chart/common.k8sVersion",
        f"{HELM}/pkg/chart/v2/lint/rules.k8sVersion",
    )
    values = {
        f"{base}.gitVersion": kubernetes,
        f"{base}.gitMajor": major,
        f"{base}.gitMinor": minor,
        f"{HELM}/internal/version.version": version(HELM),
        **{f"{variable}Major": major for variable in helm_reads},
        **{f"{variable}Minor": minor for variable in helm_reads},
    }
    return ["-s", "-w", *(f"-X {name}={value}" for name, value in values.items())]


@contextmanager
def only_one(lock: Path) -> Iterator[None]:
    """Wait while another process holds this lock; the kernel frees it when its holder dies."""
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
