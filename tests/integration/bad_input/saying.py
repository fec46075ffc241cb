"""What every message has to be: short, for people, and about what they can do."""

from __future__ import annotations

from tests.integration.runs.rig import Ended

LINES_MAX = 16


def assert_refused(ended: Ended, *, code: int, words: tuple[str, ...]) -> str:
    """What was said, once it is clear that it ended with this code, these words, no result and no traceback."""
    assert ended.code == code, f"exit {ended.code}\n{ended.out[-1500:]}\n{ended.err[-3000:]}"
    assert "Traceback" not in ended.err, ended.err
    assert ended.out == ""
    missing = [word for word in words if word not in ended.err]
    assert not missing, f"{missing} not in:\n{ended.err}"
    message = [line for line in ended.err.splitlines() if line and not line.startswith(PROGRESS)]
    assert 0 < len(message) <= LINES_MAX, ended.err
    return "\n".join(message)


PROGRESS = ("run ", "going on with ", "postgres: ", "payments: ", "my-worker: ", "langgraph: ")
"""How lines begin that say what is being prepared."""
