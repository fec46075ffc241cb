"""What the one-node cluster needs of a machine, and how to come by it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from tests.cluster.node.commands import ClusterError, run, say
from tests.cluster.node.configuration import cni_plugins

PACKAGES = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "ipset": "ipset",
    "ip": "iproute2",
    "openssl": "openssl",
    "unshare": "util-linux",
    "nsenter": "util-linux",
}
"""Debian's package for each program. The CNI plugins are none: see `missing_packages`."""
INSTALL_SECONDS_MAX = 900.0


def unmet() -> list[str]:
    """What stands in the way and cannot be installed from here, each with what to do; empty if nothing does."""
    if sys.platform != "linux":
        return [f"the one-node cluster runs on Linux only (this is {sys.platform})"]
    found = []
    if os.geteuid() != 0:
        found.append("it needs root, for namespaces, mounts and cgroups: run it with sudo")
    if shutil.which("go") is None:
        found.append("it needs Go 1.24 or newer on the PATH, to build Kubernetes")
    if not any(Path("/sys/fs/cgroup").glob("*")):
        found.append("no cgroups are mounted at /sys/fs/cgroup")
    lacking = missing_packages()
    if lacking and shutil.which("apt-get") is None:
        found.append(f"install these; there is no apt-get here to do it: {' '.join(lacking)}")
    return found


def missing_packages() -> list[str]:
    """The packages of all that is not installed yet, named as in Debian and Ubuntu."""
    lacking = {package for program, package in PACKAGES.items() if shutil.which(program) is None}
    if not (cni_plugins() / "ptp").exists():
        lacking.add("containernetworking-plugins")
    return sorted(lacking)


def require() -> None:
    """Raises ClusterError with all that is unmet; installs the packages that are missing."""
    if problems := unmet():
        raise ClusterError("the one-node cluster cannot run here:\n" + "\n".join(f"  - {text}" for text in problems))
    install(missing_packages())


def install(packages: list[str]) -> None:
    """Install Debian packages, if there are any to install. Raises ClusterError."""
    if not packages:
        return
    say(f"apt-get install {' '.join(packages)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    apt = ("nice", "apt-get", "--quiet", "--yes")
    run(*apt, "update", env=environment, seconds_max=INSTALL_SECONDS_MAX)
    run(*apt, "install", "--no-install-recommends", *packages, env=environment, seconds_max=INSTALL_SECONDS_MAX)
