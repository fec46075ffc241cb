"""The chart, rendered without a cluster."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.node.layout import ROOT, Layout

CHART = ROOT / "charts" / "killpoint"
NAMESPACE = "here"
Manifest = Mapping[str, Any]


class Refused(Exception):
    """Helm does not render it; the message is Helm's."""


def find_helm() -> Path:
    """The one of the tests' own node, or else the machine's. Skips the test where there is none."""
    layout = Layout.from_environment()
    ours = layout.binaries / "helm"
    found = str(ours) if ours.exists() else shutil.which("helm")
    if found is not None:
        return Path(found)
    reason = "helm is not installed, and there is no cluster of our own that brings it: run `make cluster`"
    if os.environ.get("KILLPOINT_REQUIRE_CLUSTER") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """All objects of a release, hooks included."""

    manifests: Sequence[Manifest]

    def of(self, *kinds: str) -> list[Manifest]:
        return [one for one in self.manifests if one["kind"] in kinds]

    def one(self, kind: str, name: str) -> Manifest:
        (found,) = [one for one in self.of(kind) if one["metadata"]["name"] == name]
        return found

    def pods(self) -> Iterator[tuple[str, Manifest]]:
        """Kind/name and the pod's specification, of everything that makes pods."""
        for one in self.of("Deployment", "StatefulSet", "Job", "Pod"):
            spec = one["spec"] if one["kind"] == "Pod" else one["spec"]["template"]["spec"]
            yield f"{one['kind']}/{one['metadata']['name']}", spec

    def pod(self, called: str) -> Manifest:
        return dict(self.pods())[called]


def render(*settings: str, release: str = "killpoint") -> Rendered:
    """With ``--set`` settings. Raises Refused."""
    command = [str(find_helm()), "template", release, str(CHART), f"--namespace={NAMESPACE}"]
    done = subprocess.run(
        [*command, *(f"--set={setting}" for setting in settings)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode != 0:
        raise Refused(done.stderr)
    return Rendered(manifests=[one for one in yaml.safe_load_all(done.stdout) if one])


def environment(container: Manifest, secrets: Mapping[str, str]) -> dict[str, str]:
    """A container's variables as the kubelet makes them; a Secret's key is looked up in ``secrets``."""
    made: dict[str, str] = {}
    for variable in container["env"]:
        source = variable.get("valueFrom", {})
        if "secretKeyRef" in source:
            value = secrets[source["secretKeyRef"]["key"]]
        elif "fieldRef" in source:
            value = NAMESPACE
        else:
            value = variable["value"]
            for name, known in made.items():
                value = value.replace(f"$({name})", known)
        made[variable["name"]] = value
    return made
