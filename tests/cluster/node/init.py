"""The node's first process, in namespaces of its own: it lays out the node's world and keeps the components running.

    unshare --fork --pid --mount --net python -m tests.cluster.node.init STATE

All that a node leaves on a machine (processes, mounts, interfaces, iptables rules, network settings) lies in these
namespaces. The kernel takes them away with this process, however it ends. So nothing has to be cleaned up after it, and
it does not try to.
"""

from __future__ import annotations

import http.client
import os
import ssl
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.cluster.node import components, configuration
from tests.cluster.node.commands import ClusterError, answers, run, say
from tests.cluster.node.components import Component
from tests.cluster.node.layout import (
    IMAGES_NAMESPACE,
    INSIDE,
    LINK_PREFIX,
    MACHINE_ADDRESS,
    NODE_ADDRESS,
    PROCESS,
    UPLINK,
)
from tests.cluster.node.processes import Process, remember

LINK_SECONDS_MAX = 20.0
API_SECONDS_MAX = 120.0
RESTART_SECONDS = 1.0
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(INSIDE)}


def main(state: Path) -> None:
    """Never returns while the node lives."""
    introduce(state)
    os.chdir("/")
    mount_own_folders(state)
    connect()
    running: dict[int, Component] = {}
    start(components.foundation(), running)
    wait_until("the API server answers", api_answers, seconds_max=API_SECONDS_MAX)
    import_pause_image()
    start(components.cluster(), running)
    supervise(running)


def introduce(state: Path) -> None:
    """Write down which process of the machine this is: /proc is still the machine's."""
    process = Process.of(int(Path("/proc/self").readlink().name))
    if process is None:
        raise ClusterError("/proc does not show this process")
    remember(process, PROCESS, owner=state)


def mount_own_folders(state: Path) -> None:
    """A /run and a /var of the node's own, with the state folder at INSIDE.

    It is in this order because the state folder may itself be in /run or /var.
    """
    fresh_run = state / "run"
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", fresh_run)
    inside = fresh_run / INSIDE.name
    inside.mkdir()
    mount("--bind", state, inside)
    mount("--rbind", fresh_run, "/run")
    mount("--bind", INSIDE / "var", "/var")
    mount("-t", "proc", "proc", "/proc")
    for name in configuration.KERNEL:
        if Path("/proc/sys", name).exists():
            mount("--bind", INSIDE / "kernel" / name, Path("/proc/sys", name))
    # Volumes that share mounts between container and node need a shared tree. It is shared within this namespace only.
    mount("--make-rshared", "/")


def mount(*arguments: str | Path) -> None:
    run("mount", *arguments)


def connect() -> None:
    """Bring up the network, once the machine has put the node's end of the link into this namespace."""
    run("ip", "link", "set", "lo", "up")
    wait_until("the link to the machine is there", uplink_is_there, seconds_max=LINK_SECONDS_MAX)
    run("ip", "address", "add", f"{NODE_ADDRESS}/{LINK_PREFIX}", "dev", UPLINK)
    run("ip", "link", "set", UPLINK, "up")
    run("ip", "route", "add", "default", "via", MACHINE_ADDRESS)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1", encoding="ascii")


def uplink_is_there() -> bool:
    return answers("ip", "link", "show", UPLINK)


def api_answers() -> bool:
    """Whether /readyz says ok. Anything else, a refused connection above all, says not yet."""
    context = ssl.create_default_context(cafile=str(INSIDE / "pki" / "ca.crt"))
    context.load_cert_chain(INSIDE / "pki" / "admin.crt", INSIDE / "pki" / "admin.key")
    connection = http.client.HTTPSConnection(NODE_ADDRESS, 6443, context=context, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def import_pause_image() -> None:
    wait_until("containerd answers", lambda: answers("ctr", "version"), seconds_max=API_SECONDS_MAX)
    run("ctr", "-n", IMAGES_NAMESPACE, "images", "import", INSIDE / "pause.tar")


def wait_until(what: str, holds: Callable[[], bool], *, seconds_max: float) -> None:
    """Look until it holds. Raises ClusterError when it does not in time."""
    deadline = time.monotonic() + seconds_max
    while not holds():
        if time.monotonic() > deadline:
            raise ClusterError(f"not within {seconds_max:.0f} s: {what}")
        time.sleep(0.1)


def start(wanted: tuple[Component, ...], running: dict[int, Component]) -> None:
    """Start them, each in a session of its own, with its log. `supervise` collects them: subprocess would want to."""
    for component in wanted:
        log = INSIDE / "log" / f"{component.name}.log"
        pid = os.posix_spawnp(
            component.command[0],
            component.command,
            ENVIRONMENT,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
        running[pid] = component


def supervise(running: dict[int, Component]) -> None:
    """Collect whatever ends, for ever: orphans come to process 1 as well. A component that ends is started again."""
    while True:
        pid, status = os.waitpid(-1, 0)
        component = running.pop(pid, None)
        if component is not None:
            say(f"{component.name} ended with {os.waitstatus_to_exitcode(status)}; starting it again")
            time.sleep(RESTART_SECONDS)
            start((component,), running)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except ClusterError as failure:
        say(str(failure))
        sys.exit(1)
