"""The images: what each is built from, and the digest of that, by which a build that was made is known again."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.node.layout import ROOT

TAG = "dev"
"""The tag that tests use. A second one is the digest of what the image was built from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """One image. Paths are from the checkout's root."""

    name: str
    context: str
    sources: tuple[str, ...]
    """What it is built from, the Dockerfile first: files and folders. Anything else may change without a new build."""

    @property
    def repository(self) -> str:
        """localhost/…: no registry is ever asked for it."""
        return f"localhost/killpoint-{self.name}"

    @property
    def dockerfile(self) -> Path:
        return ROOT / self.sources[0]

    def digest(self, base: str) -> str:
        """Of its sources' names and contents, and of the base image's name."""
        said = hashlib.sha256(base.encode())
        for path in sorted(tracked(self.sources)):
            said.update(f"\0{path}\0".encode() + (ROOT / path).read_bytes())
        return said.hexdigest()[:16]


def tracked(sources: tuple[str, ...]) -> set[str]:
    """The files of these that git tracks or would track: neither caches nor environments."""
    command = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *sources)
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return {path for path in listed.split("\0") if path and (ROOT / path).is_file()}


def _of_workload(name: str, *shared: str) -> Image:
    folder = f"workloads/{name}"
    sources = (f"{folder}/Dockerfile", f"{folder}/requirements.lock", f"{folder}/src", *shared)
    return Image(name=name, context="workloads", sources=(*sources, "workloads/requirements-bootstrap.lock"))


_WORKER = ("workloads/worker/src", "workloads/steps/src")

IMAGES = (
    Image(
        name="operator",
        context=".",
        sources=(
            "operator/Dockerfile", "operator/killpoint", "workloads", "experiments", "pyproject.toml", "README.md",
            "LICENSE", "requirements.lock", "requirements-bootstrap.lock",
        ),
    ),
    _of_workload("payments"),
    _of_workload("langgraph", *_WORKER),
    _of_workload("llamaindex", *_WORKER),
    _of_workload("crewai", *_WORKER),
    Image(name="postgres", context="charts/killpoint/postgres", sources=("charts/killpoint/postgres/Dockerfile",)),
)  # fmt: skip


def named(names: list[str]) -> tuple[Image, ...]:
    """These images, or all if no name is given. Raises KeyError with the first name that no image has."""
    known = {image.name: image for image in IMAGES}
    return tuple(known[name] for name in names) if names else IMAGES
