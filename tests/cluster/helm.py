"""Helm as tests use it: one release in one namespace."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.images.catalog import TAG
from tests.cluster.kubectl import Kubectl
from tests.cluster.node.commands import ClusterError, sanitized
from tests.cluster.node.layout import ROOT, Layout

CHART = ROOT / "charts" / "killpoint"
NAME = "killpoint"
IMAGES = ("--set=images.registry=localhost", f"--set=images.tag={TAG}")
TAKE_OVER = ("--take-ownership", "--force-conflicts")
"""The CRD, whoever brought it: another release, or kubectl."""
WAIT = ("--wait", "--timeout=240s")
END_SECONDS_MAX = 280.0


def find_helm(layout: Layout) -> Path:
    """The one that was built with the node, or else the machine's. Raises ClusterError."""
    ours = layout.binaries / "helm"
    found = str(ours) if ours.exists() else shutil.which("helm")
    if found is None:
        raise ClusterError("helm is not installed")
    return Path(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The chart in a namespace."""

    program: Path
    kubectl: Kubectl

    def install(self, *settings: str) -> str:
        return self("install", NAME, str(CHART), *TAKE_OVER, *WAIT, *IMAGES, *settings)

    def upgrade(self, *settings: str) -> str:
        return self("upgrade", NAME, str(CHART), *TAKE_OVER, *WAIT, *IMAGES, *settings)

    def test(self) -> str:
        return self("test", NAME, "--logs", "--timeout=150s")

    def uninstall(self) -> str:
        return self("uninstall", NAME, *WAIT)

    def __call__(self, *arguments: str) -> str:
        """Standard output. Fails the test with what helm said."""
        done = subprocess.run(
            (
                str(self.program),
                f"--kubeconfig={self.kubectl.kubeconfig}",
                f"--namespace={self.kubectl.namespace}",
                *arguments,
            ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=END_SECONDS_MAX,
            env=sanitized(os.environ),
        )
        assert done.returncode == 0, f"helm {' '.join(arguments)}: {done.stderr.strip()}\n{done.stdout}"
        return done.stdout
