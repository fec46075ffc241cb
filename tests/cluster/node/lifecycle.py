"""Up, down and status of the one-node cluster, from the machine's side."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.node import archive, base_manifests, build, certificates, configuration, host, preconditions
from tests.cluster.node.commands import ClusterError, answers, last_lines, run, sanitized, say
from tests.cluster.node.layout import IMAGES_NAMESPACE, NODE, PAUSE_IMAGE, PROCESS, ROOT, Layout
from tests.cluster.node.processes import Process, remembered

LOAD_SECONDS_MAX = 600.0
KILL_SECONDS_MAX = 60.0
START_SECONDS_MAX = 10.0
API_SECONDS_MAX = 120.0
READY_SECONDS_MAX = 120.0
CALLED = ("kubectl", "helm")
FOLDERS = (
    "bin", "containerd", "etcd", "log", "run",
    "var/cache", "var/lib/kubelet", "var/lib/volumes", "var/log", "var/tmp",
)  # fmt: skip
"""Of the state folder. Its var/ is the node's /var."""
MARKER = "killpoint-cluster"
"""A file in each state folder: no folder without it is ever emptied."""


def up(layout: Layout) -> None:
    """Start the node if it does not run, and return when it is ready for pods. Raises ClusterError."""
    if is_up(layout):
        return
    preconditions.require()
    built = build.binaries(layout.cache)
    with build.only_one(layout.cache / "node.lock"):
        if not is_up(layout):
            _up(layout, built)


def _up(layout: Layout, built: Path) -> None:
    host.refuse_foreign_node(layout.state)
    down(layout)
    host.refuse_foreign_network()
    began = time.monotonic()
    _lay_out(layout, built)
    host.make_cgroups()
    try:
        _start(layout)
    except BaseException:
        _kill(layout)
        raise
    say(f"the node was up after {time.monotonic() - began:.1f} s")


def down(layout: Layout) -> None:
    """End the node and remove all it left, whatever state it is in. Raises ClusterError."""
    was_ours = _kill(layout)
    host.refuse_live_node(layout.state)
    if layout.state.exists():
        _empty(layout.state, is_ours=was_ours or (layout.state / MARKER).exists())
    if host.link_owner() is None:
        host.remove_cgroups()


def is_up(layout: Layout) -> bool:
    """Whether the node's process lives and its API answers."""
    return _node(layout) is not None and kubectl_answers(layout)


def kubectl_answers(layout: Layout) -> bool:
    return answers(*_kubectl(layout), "get", "--raw", "/readyz", env=sanitized(os.environ))


def ctr(layout: Layout, *arguments: str, stdin: Path = Path(os.devnull)) -> str:
    """Run containerd's client within the node: its socket is in the node's own /run. Raises ClusterError."""
    node = _node(layout)
    if node is None:
        raise ClusterError("the node does not run: make cluster")
    command = ("nsenter", f"--target={node.pid}", "--mount", "--", "ctr", "-n", IMAGES_NAMESPACE, *arguments)
    return run(*command, stdin=stdin, seconds_max=LOAD_SECONDS_MAX)


def _lay_out(layout: Layout, built: Path) -> None:
    """The state folder: binaries, certificates, configuration and empty folders for the rest."""
    state = layout.state
    state.mkdir(parents=True, exist_ok=True)
    (state / MARKER).touch()
    for folder in FOLDERS:
        (state / folder).mkdir(parents=True, exist_ok=True)
    (state / "etcd").chmod(0o700)
    (state / "var" / "run").symlink_to("/run")
    _place(built / "kube", layout.binaries / "kube")
    for name in CALLED:
        (layout.binaries / name).symlink_to("kube")
    archive.write_image(state / "pause.tar", name=PAUSE_IMAGE, program=built / "pause")
    certificates.make(state / "pki")
    for path, text in configuration.files().items():
        place = state / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    for name in ("kubelet", "controller-manager", "scheduler", "proxy"):
        _secret(state / "config" / f"{name}.kubeconfig", certificates.kubeconfig(state / "pki", name))
    _secret(layout.kubeconfig, certificates.kubeconfig(state / "pki", "admin"))


def _place(source: Path, target: Path) -> None:
    """A hard link where the cache is on the same file system, else a copy."""
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copy2(source, target)


def _secret(place: Path, text: str) -> None:
    place.touch(mode=0o600)
    place.write_text(text, encoding="utf-8")


def _start(layout: Layout) -> None:
    with (layout.logs / "init.log").open("ab") as log:
        unshare = subprocess.Popen(
            ("unshare", "--fork", "--pid", "--mount", "--net", "--",
             sys.executable, "-m", "tests.cluster.node.init", str(layout.state)),
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=ROOT, env=sanitized(os.environ),
            start_new_session=True,
        )  # fmt: skip
    start = _Start(layout=layout, unshare=unshare)
    start.wait_until("its first process runs", lambda: _node(layout) is not None, seconds_max=START_SECONDS_MAX)
    node = _node(layout)
    if node is None:
        raise ClusterError(f"the node ended at once:\n{start.told()}")
    host.connect(node, owner=layout.state)
    kubectl = _kubectl(layout)
    start.wait_until("its API answers", lambda: kubectl_answers(layout), seconds_max=API_SECONDS_MAX)
    run(*kubectl, "apply", "--server-side", "-f", layout.state / "config" / "base.json", env=sanitized(os.environ))
    start.wait_until("pods can run", lambda: _is_ready(layout), seconds_max=READY_SECONDS_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    """A node that is on its way up."""

    layout: Layout
    unshare: subprocess.Popen[bytes]
    """Its parent, which ends with it."""

    def wait_until(self, what: str, holds: Callable[[], bool], *, seconds_max: float) -> None:
        """Look until it holds. Raises ClusterError, with what the node told, when the node or the time ends before."""
        deadline = time.monotonic() + seconds_max
        while not holds():
            if self.unshare.poll() is not None:
                raise ClusterError(f"the node ended before {what}:\n{self.told()}")
            if time.monotonic() > deadline:
                raise ClusterError(f"not within {seconds_max:.0f} s: {what}; logs: {self.layout.logs}\n{self.told()}")
            time.sleep(0.1)

    def told(self) -> str:
        return last_lines((self.layout.logs / "init.log").read_bytes())


def _is_ready(layout: Layout) -> bool:
    """The node is Ready, the account that every pod gets is there, and DNS runs."""
    questions = (
        ("wait", f"node/{NODE}", "--for=condition=Ready", "--timeout=10s"),
        ("get", "serviceaccount", "default", "--namespace=default"),
        ("wait", f"deployment/{base_manifests.NAME}", f"--namespace={base_manifests.NAMESPACE}",
         "--for=condition=Available", "--timeout=10s"),
    )  # fmt: skip
    return all(answers(*_kubectl(layout), *question, env=sanitized(os.environ)) for question in questions)


def _kubectl(layout: Layout) -> tuple[str, ...]:
    return (str(layout.binaries / "kubectl"), f"--kubeconfig={layout.kubeconfig}")


def _node(layout: Layout) -> Process | None:
    return remembered(PROCESS, owner=layout.state)


def _kill(layout: Layout) -> bool:
    """End the node. False: there was none."""
    node = _node(layout)
    if node is None:
        return False
    node.kill(seconds_max=KILL_SECONDS_MAX)
    host.disconnect()
    PROCESS.unlink()
    return True


def _empty(state: Path, *, is_ours: bool) -> None:
    """Remove what a node put there. Its mounts were never visible here. Raises ClusterError."""
    if any(state.iterdir()) and not is_ours:
        raise ClusterError(f"{state} holds other things than a cluster: choose another KILLPOINT_CLUSTER_DIR")
    for place in state.iterdir():
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink()
