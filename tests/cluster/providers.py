"""Where a cluster for tests comes from: what KUBECONFIG names, kind where Docker runs, or the one-node cluster."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.cluster.images import builders
from tests.cluster.images.builders import Builder
from tests.cluster.images.catalog import IMAGES, TAG, Image
from tests.cluster.node import lifecycle, preconditions
from tests.cluster.node.commands import ClusterError, answers, run
from tests.cluster.node.layout import Layout

KIND_NAME = "killpoint"
KIND_SECONDS_MAX = 900.0


class Provider(Protocol):
    """A cluster that is there or can be brought up."""

    @property
    def kubeconfig(self) -> Path: ...

    def up(self) -> None:
        """Return when it answers. Raises ClusterError."""
        ...

    def is_up(self) -> bool: ...

    def down(self) -> None:
        """End it and all it left; nothing, if somebody else brought it up. Raises ClusterError."""
        ...

    def load(self, image: Image, digest: str, builder: Builder) -> bool:
        """Make a built image known to its nodes, unless it is. False: it takes none from here. Raises ClusterError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Somebody else's, named by KUBECONFIG."""

    kubeconfig: Path

    def up(self) -> None:
        if not self.is_up():
            raise ClusterError(
                f"the cluster of KUBECONFIG={self.kubeconfig} does not answer (kubectl get --raw /readyz)"
            )

    def is_up(self) -> bool:
        kubectl = (find_kubectl(Layout.from_environment()), f"--kubeconfig={self.kubeconfig}")
        return answers(*kubectl, "get", "--raw", "/readyz", env=dict(os.environ))

    def down(self) -> None:
        return

    def load(self, image: Image, digest: str, builder: Builder) -> bool:  # noqa: ARG002 - as in Provider
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Kubernetes in Docker."""

    layout: Layout

    @property
    def kubeconfig(self) -> Path:
        return self.layout.kubeconfig

    def up(self) -> None:
        self.kubeconfig.parent.mkdir(parents=True, exist_ok=True)
        if self.is_up():
            run("kind", "export", "kubeconfig", f"--name={KIND_NAME}", f"--kubeconfig={self.kubeconfig}")
        else:
            run(
                "kind", "create", "cluster", f"--name={KIND_NAME}", f"--kubeconfig={self.kubeconfig}", "--wait=120s",
                seconds_max=KIND_SECONDS_MAX,
            )  # fmt: skip

    def is_up(self) -> bool:
        return KIND_NAME in run("kind", "get", "clusters").split()

    def down(self) -> None:
        run("kind", "delete", "cluster", f"--name={KIND_NAME}")
        self.kubeconfig.unlink(missing_ok=True)

    def load(self, image: Image, digest: str, builder: Builder) -> bool:  # noqa: ARG002 - both sit on one Docker engine
        names = (f"{image.repository}:{tag}" for tag in (TAG, digest))
        run("kind", "load", "docker-image", f"--name={KIND_NAME}", *names, seconds_max=KIND_SECONDS_MAX)
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The project's own: see node/."""

    layout: Layout

    @property
    def kubeconfig(self) -> Path:
        return self.layout.kubeconfig

    def up(self) -> None:
        lifecycle.up(self.layout)

    def is_up(self) -> bool:
        return lifecycle.is_up(self.layout)

    def down(self) -> None:
        lifecycle.down(self.layout)

    def load(self, image: Image, digest: str, builder: Builder) -> bool:
        built = f"{image.repository}:{digest}"
        if built not in lifecycle.ctr(self.layout, "images", "ls", "-q").split():
            archive = self._archive(image, digest, builder)
            lifecycle.ctr(self.layout, "images", "import", "-", stdin=archive)
        lifecycle.ctr(self.layout, "images", "tag", "--force", built, f"{image.repository}:{TAG}")
        return True

    def outdated(self) -> list[str]:
        """The images that are not there, or were built from other sources than those of this checkout."""
        base = builders.builder(self.layout.cache).base
        listed = (line.split() for line in lifecycle.ctr(self.layout, "images", "ls").splitlines())
        known = {fields[0]: fields[2] for fields in listed}
        return [
            image.name
            for image in IMAGES
            if (meant := known.get(f"{image.repository}:{image.digest(base)}")) is None
            or meant != known.get(f"{image.repository}:{TAG}")
        ]

    def _archive(self, image: Image, digest: str, builder: Builder) -> Path:
        """The image as a file of the cache: the next node needs it again. Those of its former builds go."""
        folder = self.layout.cache / "images"
        folder.mkdir(parents=True, exist_ok=True)
        archive = folder / f"{image.name}-{digest}.tar"
        if not archive.exists():
            for former in folder.glob(f"{image.name}-*.tar*"):
                former.unlink()
            fresh = archive.with_suffix(".tar.new")
            builder.save(image, digest, fresh)
            fresh.rename(archive)
        return archive


def choose(layout: Layout) -> Provider:
    """The cluster that is there or can be had. Raises ClusterError with all that stands in the way of each kind."""
    named = os.environ.get("KUBECONFIG", "")
    if named and Path(named).resolve() != layout.kubeconfig:
        return Given(kubeconfig=Path(named).resolve())
    has_engine, has_kind = builders.engine_answers(), shutil.which("kind") is not None
    if has_engine and has_kind:
        return Kind(layout=layout)
    if problems := preconditions.unmet():
        kind = "kind is not installed" if has_engine else "no Docker engine answers, so kind cannot help"
        reasons = ("KUBECONFIG is not set", kind, *(f"one-node cluster: {problem}" for problem in problems))
        raise ClusterError("no cluster can be had here:\n" + "\n".join(f"  - {reason}" for reason in reasons))
    return Node(layout=layout)


def find_kubectl(layout: Layout) -> Path:
    """The one that was built with the node, or else the machine's. Raises ClusterError."""
    ours = layout.binaries / "kubectl"
    found = str(ours) if ours.exists() else shutil.which("kubectl")
    if found is None:
        raise ClusterError("kubectl is not installed")
    return Path(found)
