"""Two ways to build an image from its Dockerfile: by a Docker engine, or by buildah where none runs."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.cluster.images import base
from tests.cluster.images.catalog import TAG, Image
from tests.cluster.node import preconditions
from tests.cluster.node.commands import ClusterError, answers, run
from tests.cluster.node.layout import ROOT

BUILD_SECONDS_MAX = 3600.0
DOCKER_BASE = "python:3.11-slim-bookworm"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


class Builder(Protocol):
    """Builds images and hands them over as archives."""

    @property
    def base(self) -> str:
        """The base image's name: part of an image's digest."""
        ...

    def has(self, image: Image, digest: str) -> bool:
        """Whether it was built from just this."""
        ...

    def build(self, image: Image, digest: str) -> None:
        """Build it, tagged with its digest and with `TAG`. Raises ClusterError."""
        ...

    def save(self, image: Image, digest: str, archive: Path) -> None:
        """Write it as an archive that `ctr images import` and `kind load image-archive` take. Raises ClusterError."""
        ...


def engine_answers() -> bool:
    """A Docker engine, not the client alone."""
    return shutil.which("docker") is not None and answers("docker", "version", "--format", "{{.Server.Version}}")


def builder(cache: Path) -> Builder:
    """The one that this machine can use. Raises ClusterError if it can use neither."""
    return DockerBuilder() if engine_answers() else BuildahBuilder(cache=cache)


@dataclass(frozen=True, slots=True, kw_only=True)
class DockerBuilder:
    """What users do."""

    base: str = DOCKER_BASE

    def has(self, image: Image, digest: str) -> bool:
        return answers("docker", "image", "inspect", f"{image.repository}:{digest}")

    def build(self, image: Image, digest: str) -> None:
        tags = (f"--tag={image.repository}:{tag}" for tag in (digest, TAG))
        base_argument = f"--build-arg=BASE={self.base}"
        file = f"--file={image.dockerfile}"
        run("docker", "build", *tags, base_argument, file, ROOT / image.context, seconds_max=BUILD_SECONDS_MAX)

    def save(self, image: Image, digest: str, archive: Path) -> None:
        names = (f"{image.repository}:{tag}" for tag in (digest, TAG))
        run("docker", "save", f"--output={archive}", *names, seconds_max=BUILD_SECONDS_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildahBuilder:
    """As root, with no daemon and no registry: the base image is Debian's.

    Builds run in a mount namespace of their own, so that one that is killed leaves no mount behind.
    """

    cache: Path

    @property
    def base(self) -> str:
        return base.reference()

    def has(self, image: Image, digest: str) -> bool:
        return self._has(f"{image.repository}:{digest}")

    def build(self, image: Image, digest: str) -> None:
        self._ensure_base()
        with _settings_of_this_machine() as settings:
            mounts = (f"--volume={source}:{target}:ro" for target, source in settings.items())
            tags = (f"--tag={image.repository}:{tag}" for tag in (digest, TAG))
            self._buildah(
                "build", "--isolation=chroot", "--format=docker", "--layers", "--pull=never",
                f"--build-arg=BASE={self.base}", *mounts, *tags, f"--file={image.dockerfile}",
                str(ROOT / image.context),
            )  # fmt: skip
        for reference in self._buildah("images", "--format={{.Name}}:{{.Tag}}").splitlines():
            repository, _, tag = reference.rpartition(":")
            if repository == image.repository and tag not in (digest, TAG):
                self._buildah("rmi", reference)

    def save(self, image: Image, digest: str, archive: Path) -> None:
        """Not compressed: it is read once, on this machine."""
        archive.unlink(missing_ok=True)
        source = f"{image.repository}:{digest}"
        self._buildah("push", "--disable-compression", source, f"docker-archive:{archive}:{image.repository}:{TAG}")

    def _ensure_base(self) -> None:
        if self._has(self.base):
            return
        with tempfile.TemporaryDirectory(prefix="killpoint-base-") as folder:
            base.write_archive(Path(folder, "base.tar"))
            Path(folder, "Dockerfile").write_text("FROM scratch\nADD base.tar /\n", encoding="ascii")
            self._buildah("build", "--isolation=chroot", "--format=docker", f"--tag={self.base}", folder)

    def _has(self, reference: str) -> bool:
        try:
            self._buildah("inspect", "--type=image", reference)
        except ClusterError:
            return False
        return True

    def _buildah(self, *arguments: str) -> str:
        if os.geteuid() != 0:
            raise ClusterError(
                "no Docker engine answers, and buildah needs root to build without one: run it with sudo"
            )
        preconditions.install([name for name in ("buildah", "debootstrap") if shutil.which(name) is None])
        stores = (f"--root={self.cache / 'buildah' / 'root'}", f"--runroot={self.cache / 'buildah' / 'run'}")
        command = ("unshare", "--mount", "--", "nice", "buildah", *stores, "--storage-driver=overlay", *arguments)
        return run(*command, seconds_max=BUILD_SECONDS_MAX)


@contextmanager
def _settings_of_this_machine() -> Iterator[Mapping[str, Path]]:
    """What pip and uv need in a build to reach the index that this machine uses, laid over files of the same path.

    The authorities that this machine trusts (a proxy's may be among them) and the indexes that its environment names.
    None of it stays in the image.
    """
    with tempfile.TemporaryDirectory(prefix="killpoint-build-") as folder:
        pip, uv = Path(folder, "pip.conf"), Path(folder, "uv.toml")
        index = os.environ.get("PIP_INDEX_URL")
        uv_index = os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("UV_INDEX_URL") or index
        certificates = (CERTIFICATES,) if CERTIFICATES.exists() else ()
        pip.write_text(
            "[global]\n"
            + "".join(f"cert = {path}\n" for path in certificates)
            + (f"index-url = {index}\n" if index else ""),
            encoding="utf-8",
        )
        uv.write_text(
            "native-tls = true\n" + (f'[[index]]\nurl = "{uv_index}"\ndefault = true\n' if uv_index else ""),
            encoding="utf-8",
        )
        yield {"/etc/pip.conf": pip, "/etc/uv/uv.toml": uv, **{str(path): path for path in certificates}}
