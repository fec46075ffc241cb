"""A cluster as tests see it: kubectl with one kubeconfig and one namespace."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

END_SECONDS_MAX = 120.0
NO_IMAGE = frozenset({"ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff", "InvalidImageName"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubectl:
    """Commands in one namespace."""

    program: Path
    kubeconfig: Path
    namespace: str

    def __call__(self, *arguments: str, manifest: object = None) -> str:
        """Standard output. Fails the test with what kubectl said. ``manifest`` goes to standard input, for ``-f -``."""
        done = subprocess.run(
            (str(self.program), f"--kubeconfig={self.kubeconfig}", f"--namespace={self.namespace}", *arguments),
            input=json.dumps(manifest) if manifest is not None else None,
            stdin=subprocess.DEVNULL if manifest is None else None,
            capture_output=True,
            text=True,
            check=False,
            timeout=END_SECONDS_MAX,
            env={name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
        )
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr.strip()}"
        return done.stdout

    def get(self, *arguments: str) -> dict[str, Any]:
        """The object, or the list, as JSON has it."""
        found: dict[str, Any] = json.loads(self("get", *arguments, "--output=json"))
        return found

    def apply(self, *manifests: object) -> None:
        self("apply", "--filename=-", manifest={"apiVersion": "v1", "kind": "List", "items": manifests})

    def ended(self, pod: str) -> dict[str, Any]:
        """The ``terminated`` state of the pod's only container, once it has ended."""
        deadline = time.monotonic() + END_SECONDS_MAX
        while True:
            status = self.get("pod", pod)["status"]
            for container in status.get("containerStatuses", []):
                state: dict[str, Any] = container["state"]
                if "terminated" in state:
                    terminated: dict[str, Any] = state["terminated"]
                    return terminated
                reason = state.get("waiting", {}).get("reason")
                assert reason not in NO_IMAGE, f"{pod}: {reason} of {container['image']}: make images"
            assert time.monotonic() < deadline, f"{pod} has not ended: {json.dumps(status, indent=1)}"
            time.sleep(0.2)
