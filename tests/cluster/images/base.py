"""The base image where none can be pulled: Debian bookworm with its Python 3.11, made from Debian's packages."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path

from tests.cluster.node.commands import ClusterError, run, say

SUITE = "bookworm"
PACKAGES = ("ca-certificates", "python3", "python3-venv")
NEEDLESS = (
    "var/cache/apt", "var/lib/apt/lists", "var/log", "usr/share/doc", "usr/share/man", "usr/share/locale",
    "usr/share/info",
)  # fmt: skip
"""What nothing in a container reads."""
LINKS = {"usr/local/bin/python": "/usr/bin/python3", "usr/local/bin/python3": "/usr/bin/python3"}
"""The names under which the usual Python images have it."""
DEBOOTSTRAP_SECONDS_MAX = 1800.0


def reference() -> str:
    """The image's name: its tag is the digest of this recipe."""
    recipe = repr((SUITE, PACKAGES, NEEDLESS, sorted(LINKS.items())))
    return f"localhost/killpoint-base:{hashlib.sha256(recipe.encode()).hexdigest()[:16]}"


def write_archive(archive: Path) -> None:
    """Write the file system as a tar. Raises ClusterError where it cannot be made."""
    mirror = debian_mirror()
    say(f"making a base image of Debian {SUITE} (about a minute, once)")
    with tempfile.TemporaryDirectory(prefix="killpoint-base-") as folder:
        root = Path(folder, "root")
        run(
            "nice", "debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, root, mirror,
            seconds_max=DEBOOTSTRAP_SECONDS_MAX,
        )  # fmt: skip
        for path in NEEDLESS:
            shutil.rmtree(root / path)
            (root / path).mkdir()
        for path, target in LINKS.items():
            (root / path).symlink_to(target)
        run("tar", "--create", "--file", archive, "--numeric-owner", "--directory", root, ".")


def debian_mirror() -> str:
    """The mirror that this machine's own apt uses: whichever it is, it can be reached."""
    listed = run("apt-get", "indextargets", "--format", "$(LABEL) $(COMPONENT) $(SITE)", "Created-By: Packages")
    debian = "Debian main "
    found = [line.removeprefix(debian) for line in listed.splitlines() if line.startswith(debian)]
    if not found:
        raise ClusterError(
            "no Docker engine answers, and this machine's apt has no Debian mirror to make a base image from:\n"
            "start a Docker engine, or build on Debian"
        )
    return found[0]
