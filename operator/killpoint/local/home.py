"""Where state and caches lie on this machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_JOURNAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """State is worth keeping (journals, runs); the cache can be made again (environments)."""

    state: Path
    cache: Path

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Home:
        """KILLPOINT_HOME and KILLPOINT_CACHE, else where the XDG base directory specification says.

        As that says, a relative XDG path is ignored. A relative KILLPOINT_HOME is taken from the current directory.
        """
        user = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
        return cls(
            state=_own(environ, "KILLPOINT_HOME")
            or _xdg(environ, "XDG_STATE_HOME", user / ".local" / "state") / "killpoint",
            cache=_own(environ, "KILLPOINT_CACHE") or _xdg(environ, "XDG_CACHE_HOME", user / ".cache") / "killpoint",
        )

    @property
    def environments(self) -> Path:
        return self.cache / "environments"

    def run(self, journal: str) -> Path:
        """The folder of one experiment run. Raises ValueError for an id that is no plain name."""
        if not _JOURNAL.fullmatch(journal):
            raise ValueError(f"a journal id is a plain name of letters, digits, '.', '_' and '-', not {journal!r}")
        return self.state / "runs" / journal


def _own(environ: Mapping[str, str], name: str) -> Path | None:
    value = environ.get(name)
    return Path(value).expanduser().absolute() if value else None


def _xdg(environ: Mapping[str, str], name: str, default: Path) -> Path:
    value = environ.get(name)
    return Path(value) if value and Path(value).is_absolute() else default
