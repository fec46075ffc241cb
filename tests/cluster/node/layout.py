"""Where the node keeps things, and its addresses."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
"""The checkout."""
INSIDE = Path("/run/killpoint")
"""The state folder as the node's own processes see it. Their /run and /var are not the machine's: see init.py."""

PROCESS = Path("/run/killpoint-cluster.json")
"""Which process of this machine is a node's first, and whose: see processes.py. Not in the state folder, so that a node
whose folder was deleted under it can still be ended; and gone with the next boot, as the node is."""

NODE = "node1"
LINK = "killpoint0"
"""The machine's end of the pair of interfaces that leads into the node."""
UPLINK = "uplink"
"""The node's end."""
CGROUP = "killpoint"

NETWORK = "10.213.0.0/16"
"""All that the node uses. The machine gets one route to it, over LINK, and no other change to its network."""
MACHINE_ADDRESS = "10.213.0.1"
NODE_ADDRESS = "10.213.0.2"
LINK_PREFIX = 30
SERVICES = "10.213.64.0/18"
API_SERVICE = "10.213.64.1"
DNS_SERVICE = "10.213.64.10"
PODS = "10.213.128.0/17"
API = f"https://{NODE_ADDRESS}:6443"

PAUSE_IMAGE = "localhost/killpoint-pause:1"
IMAGES_NAMESPACE = "k8s.io"
"""The namespace of containerd in which kubelet looks for images."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The folders of one node. ``state`` goes with the node; ``cache`` stays."""

    state: Path
    cache: Path

    @classmethod
    def from_environment(cls) -> Layout:
        """As KILLPOINT_CLUSTER_DIR and KILLPOINT_CLUSTER_CACHE say. The cache does not hang on HOME: CI empties it."""
        state = os.environ.get("KILLPOINT_CLUSTER_DIR") or ROOT / ".killpoint" / "cluster"
        cache = os.environ.get("KILLPOINT_CLUSTER_CACHE") or "/var/cache/killpoint/cluster"
        return cls(state=Path(state).resolve(), cache=Path(cache).resolve())

    @property
    def kubeconfig(self) -> Path:
        return self.state / "kubeconfig"

    @property
    def binaries(self) -> Path:
        """``kube`` and the names that it is called by; kubectl and helm are for whoever uses the cluster."""
        return self.state / "bin"

    @property
    def logs(self) -> Path:
        return self.state / "log"
