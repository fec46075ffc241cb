from __future__ import annotations

import pytest

from killpoint.local.environments import not_made


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("error: No space left on device (os error 28)", "Free some disk space"),
        ("Hash mismatch for `numpy==2.0`", "other files than the lock names"),
        ("error: Failed to fetch: `https://…` Caused by: dns error", "could not be reached"),
        ("error: Permission denied (os error 13)", "Set KILLPOINT_CACHE"),
        ("numpy==2.0 does not satisfy Python>=3.12", "do not support this Python"),
        ("something new", "Run the command by itself"),
    ],
)
def test_what_uv_says_becomes_a_remedy(line: str, remedy: str) -> None:
    error = not_made("langgraph", "uv pip install", ["Resolved 45 packages", line])
    assert remedy in error.remedy
    assert line in str(error)
    assert str(error).startswith("the environment of workload langgraph could not be made: uv pip install")
