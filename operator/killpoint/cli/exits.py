"""Exit codes, and errors as the sentences that people read."""

from __future__ import annotations

import sys
from enum import IntEnum

from killpoint.model.findings import Result


class Exit(IntEnum):
    """What a command's exit code says."""

    PASS = 0
    FAIL = 1
    INVALID = 2
    """The command line or the file is wrong; nothing was run."""
    NOT_EXECUTED = 3
    INCONCLUSIVE = 4
    INTERRUPTED = 130


EXITS = {
    Result.PASS: Exit.PASS,
    Result.FAIL: Exit.FAIL,
    Result.INCONCLUSIVE: Exit.INCONCLUSIVE,
    Result.ERROR: Exit.NOT_EXECUTED,
}


class Stop(Exception):
    """The command ends here, with this code and this message for people."""

    def __init__(self, code: Exit, message: str) -> None:
        super().__init__(message)
        self.code = code


def usage_text(error: Exception) -> str:
    """What is wrong with a command line, with the option that it is about: the error's own text names none."""
    told = getattr(error, "format_message", None)
    return str(told() if callable(told) else error).replace("Value error, ", "")


def say(message: str) -> None:
    """A sentence for people, on stderr: stdout is for results."""
    print(message, file=sys.stderr, flush=True)  # noqa: T201 - this is the one place that prints to stderr
