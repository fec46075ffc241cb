"""Words of others in one line."""

from __future__ import annotations

import pytest

from killpoint.model.lines import one_line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("as it is", "as it is"),
        ("", ""),
        (" \n\n", ""),
        (
            "its output ends with:\n    Traceback\n\n    No module named mine\n",
            "its output ends with: Traceback / No module named mine",
        ),
        ("one\r\ntwo\rthree\u2028four", "one / two / three / four"),
    ],
)
def test_lines_are_joined_and_empty_ones_are_left_out(text: str, line: str) -> None:
    assert one_line(text) == line
