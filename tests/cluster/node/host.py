"""What the machine itself holds for a node: one end of a link, one route, and empty cgroups."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from tests.cluster.node.commands import ClusterError, answers, run
from tests.cluster.node.layout import (
    CGROUP,
    LINK,
    LINK_PREFIX,
    MACHINE_ADDRESS,
    NETWORK,
    NODE_ADDRESS,
    UPLINK,
)
from tests.cluster.node.processes import Process

GONE_SECONDS_MAX = 20.0


def connect(node: Process, *, owner: Path) -> None:
    """Lay the link into the node's network namespace. The interface's alias says whose it is."""
    run("ip", "link", "add", LINK, "type", "veth", "peer", "name", UPLINK, "netns", str(node.pid))
    run("ip", "link", "set", LINK, "alias", str(owner))
    run("ip", "address", "add", f"{MACHINE_ADDRESS}/{LINK_PREFIX}", "dev", LINK)
    run("ip", "link", "set", LINK, "up")
    run("ip", "route", "add", NETWORK, "via", NODE_ADDRESS)


def refuse_foreign_node(state: Path) -> None:
    """Raises ClusterError where a node of another folder runs: there is one name and one network for all."""
    owner = link_owner()
    if owner not in (None, str(state)):
        raise ClusterError(f"a machine has one node at a time, and here runs that of {owner}: end it first")


def refuse_foreign_network() -> None:
    """Raises ClusterError where this machine uses addresses of the node's network for something else."""
    ours = ipaddress.ip_network(NETWORK)
    for route in json.loads(run("ip", "-j", "-4", "route", "show", "table", "all") or "[]"):
        target = route.get("dst", "default")
        if target != "default" and ipaddress.ip_network(target, strict=False).overlaps(ours):
            raise ClusterError(f"this machine has a route to {target}, which the cluster's network {NETWORK} overlaps")


def refuse_live_node(state: Path) -> None:
    """Raises ClusterError where a node of this state folder still runs: nothing may be taken away under it."""
    if link_owner() == str(state):
        raise ClusterError(
            f"a node of {state} runs, but which process it is has been lost:\n"
            "look for one with `tests.cluster.node.init` in its command line, and kill its child"
        )


def link_owner() -> str | None:
    """The state folder of the node that runs on this machine; None if none does."""
    if not answers("ip", "link", "show", LINK):
        return None
    owner: str = json.loads(run("ip", "-j", "link", "show", LINK))[0].get("ifalias", "something else")
    return owner


def disconnect() -> None:
    """Wait until the link has gone, as it does shortly after the node's network namespace."""
    deadline = time.monotonic() + GONE_SECONDS_MAX
    while answers("ip", "link", "show", LINK):
        if time.monotonic() > deadline:
            raise ClusterError(f"the interface {LINK} is still there {GONE_SECONDS_MAX:.0f} s after its node ended")
        time.sleep(0.1)


def make_cgroups() -> None:
    """A cgroup for all pods in each hierarchy, with the controllers that kubelet wants."""
    for hierarchy, version in cgroup_hierarchies():
        ours = hierarchy / CGROUP
        ours.mkdir(exist_ok=True)
        if version == 2:
            _delegate(hierarchy)
            _delegate(ours)
        elif (ours / "cpuset.cpus").exists():
            for name in ("cpuset.cpus", "cpuset.mems"):
                (ours / name).write_text((hierarchy / name).read_text(encoding="ascii"), encoding="ascii")


def _delegate(cgroup: Path) -> None:
    controllers = (cgroup / "cgroup.controllers").read_text(encoding="ascii").split()
    for controller in controllers:
        (cgroup / "cgroup.subtree_control").write_text(f"+{controller}", encoding="ascii")


def remove_cgroups() -> None:
    """Remove them from the leaves up. Raises ClusterError when a process keeps one in use."""
    for hierarchy, _ in cgroup_hierarchies():
        deadline = time.monotonic() + GONE_SECONDS_MAX
        while (hierarchy / CGROUP).exists():
            for folder, _, _ in os.walk(hierarchy / CGROUP, topdown=False):
                with contextlib.suppress(
                    OSError
                ):  # busy for a moment after its last process ended: the loop comes back
                    Path(folder).rmdir()
            if time.monotonic() > deadline:
                raise ClusterError(f"a process is still in {hierarchy / CGROUP}")
            time.sleep(0.05)


def cgroup_hierarchies() -> Iterator[tuple[Path, int]]:
    """Each mounted hierarchy with its version: one of version 2 on most machines, several of version 1 on some."""
    for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines():
        _, place, kind, *_ = line.split()
        if kind in ("cgroup", "cgroup2"):
            yield Path(place), 2 if kind == "cgroup2" else 1
