from __future__ import annotations

from pathlib import Path

import pytest

from killpoint.local.home import Home


def test_state_and_cache_lie_where_xdg_has_them_by_default() -> None:
    home = Home.from_environment({"HOME": "/home/ada"})
    assert home == Home(state=Path("/home/ada/.local/state/killpoint"), cache=Path("/home/ada/.cache/killpoint"))


def test_killpoints_own_variables_win_over_xdg() -> None:
    home = Home.from_environment(
        {
            "HOME": "/home/ada",
            "XDG_STATE_HOME": "/xdg/state",
            "XDG_CACHE_HOME": "/xdg/cache",
            "KILLPOINT_HOME": "/own/state",
        }
    )
    assert home == Home(state=Path("/own/state"), cache=Path("/xdg/cache/killpoint"))


def test_a_relative_xdg_path_is_ignored_and_an_own_one_is_made_absolute() -> None:
    home = Home.from_environment({"HOME": "/home/ada", "XDG_STATE_HOME": "state", "KILLPOINT_CACHE": "cache"})
    assert home == Home(state=Path("/home/ada/.local/state/killpoint"), cache=Path.cwd() / "cache")


@pytest.mark.parametrize("journal", ["", "..", "a/b", ".hidden", "a" * 129, "a\nb"])
def test_a_journal_id_that_is_no_plain_name_is_refused(journal: str) -> None:
    with pytest.raises(ValueError, match="a journal id is a plain name"):
        Home(state=Path("/s"), cache=Path("/c")).run(journal)
