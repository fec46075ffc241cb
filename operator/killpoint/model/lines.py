"""Lines: words of others, which may span many lines, where there is room for one."""

from __future__ import annotations

import itertools

BETWEEN = " / "


def one_line(text: str) -> str:
    """The text in one line. Lists of reasons, Events and tables have one a line, and tools show the first alone."""
    lines = [line for part in text.splitlines() if (line := part.strip())]
    said = lines[0] if lines else ""
    for before, line in itertools.pairwise(lines):
        said += f" {line}" if before.endswith(":") else f"{BETWEEN}{line}"
    return said
