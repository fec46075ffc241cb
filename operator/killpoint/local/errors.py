"""What can keep an experiment from running on this machine, as types. Each message says what, where and what to do."""

from __future__ import annotations

from pathlib import Path

from killpoint.ports import Impediment


class LocalError(Impediment):
    """The experiment could not be run here."""


class WorkloadsError(LocalError):
    """A workload, or its setup.toml, is not as it has to be."""


class EnvironmentNotMade(LocalError):
    """The Python environment of a workload could not be made."""


class PostgresNotStarted(LocalError):
    """The Postgres that killpoint runs itself did not start."""


class PaymentsNotStarted(LocalError):
    """The payments service did not start."""


class WorkerNotStarted(LocalError):
    """A setup's worker program cannot even be imported."""


class RunInUse(LocalError):
    """Another killpoint is executing this very run."""


class ProcessLeft(LocalError):
    """A process of an earlier attempt cannot be killed."""


class ModeNotPossible(LocalError):
    """The setup cannot be run in the mode that was asked for."""


DISK_FULL = "Free some disk space, then run it again: what is finished is kept."


def last_lines(path: Path, count: int = 8, *, bytes_max: int = 16_384) -> str:
    """The end of a log for an error message, indented. Empty when there is none."""
    try:
        with path.open("rb") as log:
            log.seek(0, 2)
            log.seek(max(0, log.tell() - bytes_max))
            # No database holds a NUL, and these words go into one.
            text = log.read().decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
    except OSError:
        return ""
    return indented(text.splitlines()[-count:])


def indented(lines: list[str]) -> str:
    return "\n".join(f"    {line.rstrip()}" for line in lines if line.strip())
