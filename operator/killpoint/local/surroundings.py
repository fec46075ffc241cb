"""The environment variables that processes of ours get: what they need, and nothing of the user's own.

The user's environment holds secrets, and settings that would make results differ between machines.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from killpoint.core.telemetry import QUIET
from killpoint.local.environments import WorkerEnvironment

_KEPT = ("TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
"""What a program of this machine may not run without."""

_DIRECT = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
"""All that a worker reaches is on this machine."""


def surroundings(environment: WorkerEnvironment, *, home: Path, user: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of a process in ``environment``, with ``home`` as its home folder."""
    return {
        **{name: user[name] for name in _KEPT if name in user},
        **QUIET,
        **_DIRECT,
        "PATH": environment.path
        or os.pathsep.join((str(environment.python.parent), "/usr/local/bin", "/usr/bin", "/bin")),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(map(str, environment.sources)),
        "PYTHONUNBUFFERED": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONSAFEPATH": "1",
        # The sources may be a checkout or an installed package: neither is ours to write into.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
