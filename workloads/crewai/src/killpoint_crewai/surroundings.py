"""Where CrewAI may write and what it may say to the outside: nothing below HOME, nothing to anybody.

Importing the framework alone makes a settings file, a credentials folder and a user record below HOME, asks the package
index whether there is a newer version, and starts a thread that sends telemetry. Must be settled before that import.
"""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_SILENCE = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_DISABLE_TRACKING": "true",
    "CREWAI_DISABLE_VERSION_CHECK": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "OTEL_SDK_DISABLED": "true",
    # Not a word to the outside, but a thread at import: that of the numeric library, which nothing here computes with.
    "OPENBLAS_NUM_THREADS": "1",
}


def settle(home: Path) -> None:
    """Make ``home`` the framework's home, data, cache and lock folder, and switch off what calls the outside.

    The variables are read at import and again at every run, so a forked attempt settles anew, in its own volume.
    """
    home.mkdir(parents=True, exist_ok=True)
    folders = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"), str(home))
    # An absolute name replaces the data folder that it would else be joined to.
    os.environ.update(_SILENCE | folders | {"CREWAI_STORAGE_DIR": str(home / "storage")})
    # tempfile looks at TMPDIR once; whoever asked it before us has fixed the answer.
    tempfile.tempdir = str(home)
