"""Wording: how what a cluster says is quoted. Pure.

A status has little room for a reason. What to do comes before what was said, and that is kept short: the name of what
is at fault tends to stand at its beginning, and the cause at its end.
"""

from __future__ import annotations

from killpoint.model.lines import one_line

CHARACTERS_MAX = 200
_CUT = " … "


def quoted(message: object) -> str:
    """What the API server or a kubelet says, without its middle where it is long."""
    text = one_line(str(message or "no reason given")).rstrip(".")
    if len(text) <= CHARACTERS_MAX:
        return text
    half = (CHARACTERS_MAX - len(_CUT)) // 2
    return f"{text[:half].rstrip()}{_CUT}{text[-half:].lstrip()}"
