"""Experiments that killpoint brings, run in a cluster: the chart in a namespace of its own, and a status at the end."""

from __future__ import annotations

import faulthandler
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from tests.cluster.helm import Release, find_helm
from tests.cluster.kubectl import Kubectl
from tests.cluster.namespaces import namespace
from tests.cluster.node.layout import ROOT, Layout
from tests.cluster.providers import Node, Provider

FOLDER = ROOT / "experiments"
POLL_SECONDS = 2.0


@contextmanager
def installed(provider: Provider) -> Iterator[Kubectl]:
    """The chart in a namespace that enforces restricted Pod Security, and kubectl in it. Both go in the end.

    What runs there are images: those of other sources than the test is read from would show nothing about these.
    """
    if isinstance(provider, Node):
        assert provider.outdated() == [], "these images are not of this checkout's sources: make images"
    with namespace(provider, "kp-table") as kubectl:
        release = Release(program=find_helm(Layout.from_environment()), kubectl=kubectl)
        release.install()
        try:
            yield kubectl
        finally:
            release.uninstall()


def apply(kubectl: Kubectl, name: str, **spec: object) -> None:
    """An experiment of the folder, with these fields of its specification instead of its own."""
    document = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    document["spec"] |= spec
    kubectl.apply(document)


def completed(kubectl: Kubectl, name: str, *, seconds_max: float) -> dict[str, Any]:
    """The status at the end.

    It has a deadline of its own, later than that of pytest's watchdog, which ends the process and cleans nothing up.
    """
    faulthandler.cancel_dump_traceback_later()
    deadline = time.monotonic() + seconds_max
    while True:
        status: dict[str, Any] = kubectl.get("cexp", name).get("status", {})
        if status.get("phase") == "Complete":
            return status
        assert time.monotonic() < deadline, f"{name} is at {json.dumps(status, indent=1)[:4000]}"
        time.sleep(POLL_SECONDS)


def assert_passed(status: dict[str, Any]) -> None:
    """As expected, with every kill proven; otherwise what the status says about it."""
    told = json.dumps({name: status.get(name) for name in ("reasons", "failures")}, indent=1)
    assert status["result"] == "Pass", told
    assert status["kills"]["confirmed"] == status["kills"]["planned"] > 0, told
    assert [cell for cell in status["cells"] if cell["met"] != "True"] == []


def effects(cell: dict[str, Any], action: str) -> dict[int, int]:
    """How many trials of a cell had how many effects of an action."""
    return {entry["count"]: entry["trials"] for entry in cell["effects"] if entry["action"] == action}
