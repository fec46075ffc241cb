"""Running programs, and the one error that ends a command of this package."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

LINES_MAX = 25


class ClusterError(Exception):
    """The cluster cannot be had or used. The message says why, and what to do."""


def run(
    *command: str | Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: Path = Path(os.devnull),
    seconds_max: float = 120,
) -> str:
    """The program's standard output. Raises ClusterError with the last of what it printed if it fails."""
    shown = " ".join(str(part) for part in command)
    try:
        with stdin.open("rb") as source:
            done = subprocess.run(
                command, env=env, cwd=cwd, stdin=source, capture_output=True, check=False, timeout=seconds_max
            )
    except FileNotFoundError as error:
        raise ClusterError(f"{command[0]} is not installed (wanted: {shown})") from error
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"not done after {seconds_max:.0f} s: {shown}") from error
    if done.returncode != 0:
        raise ClusterError(f"{shown}\nended with {done.returncode}:\n{last_lines(done.stdout + done.stderr)}")
    return done.stdout.decode(errors="replace")


def answers(*command: str | Path, env: Mapping[str, str] | None = None, seconds_max: float = 15) -> bool:
    """Whether the program is there and succeeds."""
    try:
        run(*command, env=env, seconds_max=seconds_max)
    except ClusterError:
        return False
    return True


def last_lines(output: bytes, lines: int = LINES_MAX) -> str:
    """The end of what a program printed, indented."""
    return "\n".join(f"  {line}" for line in output.decode(errors="replace").splitlines()[-lines:])


def say(text: str) -> None:
    """Progress: to stderr, since stdout is for the result."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def sanitized(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without proxies: what talks to the cluster must not do so through one."""
    return {name: value for name, value in environ.items() if not name.lower().endswith("_proxy")}
