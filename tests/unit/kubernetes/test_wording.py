"""What a cluster says, as it is quoted in a reason."""

from __future__ import annotations

import pytest

from killpoint.kubernetes.refusals import Answer, refusal_of
from killpoint.kubernetes.wording import CHARACTERS_MAX, quoted


@pytest.mark.parametrize(
    ("said", "shown"), [("denied. ", "denied"), ("", "no reason given"), (None, "no reason given")]
)
def test_what_is_short_is_quoted_as_it_is(said: str | None, shown: str) -> None:
    assert quoted(said) == shown


def test_what_is_long_is_quoted_with_its_beginning_and_its_end() -> None:
    said = f"failed to pull {'a' * CHARACTERS_MAX}: connection refused"
    assert len(quoted(said)) <= CHARACTERS_MAX
    assert quoted(said).startswith("failed to pull aaa")
    assert quoted(said).endswith("aaa: connection refused")


def test_what_to_do_comes_first_so_that_no_status_cuts_it_off() -> None:
    answer = Answer(code=403, reason="Forbidden", message=f"exceeded quota: few, requested: {'p' * 5000}")
    words = refusal_of(answer, kind="pod", name="kp-1", namespace="a").words
    assert words.index("or raise the quota") < words.index("exceeded quota: few")
    assert len(words) < 400
