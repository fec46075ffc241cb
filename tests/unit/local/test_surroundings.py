from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from killpoint.local.environments import WorkerEnvironment
from killpoint.local.surroundings import surroundings

WORKER = WorkerEnvironment(project="p", python=Path("/env/bin/python"), sources=(Path("/a/src"), Path("/b/src")))


@given(st.dictionaries(st.text(st.characters(categories=["Lu"]), min_size=8).map("X_".__add__), st.text()))
def test_nothing_of_the_users_own_gets_in(user: dict[str, str]) -> None:
    assert surroundings(WORKER, home=Path("/h"), user=user) == surroundings(WORKER, home=Path("/h"), user={})


def test_a_worker_that_the_user_brings_finds_the_users_programs() -> None:
    of_user = replace(WORKER, path="/mine:/usr/bin")
    assert surroundings(of_user, home=Path("/h"), user={})["PATH"] == "/mine:/usr/bin"


def test_programs_of_the_environment_come_first_and_sources_are_importable() -> None:
    variables = surroundings(WORKER, home=Path("/h"), user={"TMPDIR": "/t", "PATH": "/mine"})
    assert variables["PATH"] == "/env/bin:/usr/local/bin:/usr/bin:/bin"
    assert variables["PYTHONPATH"] == "/a/src:/b/src"
    assert (variables["HOME"], variables["TMPDIR"]) == ("/h", "/t")
