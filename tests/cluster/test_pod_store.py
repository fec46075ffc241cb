"""What is lost with a pod whose files are the only store: the state, and with it every key that was drawn and saved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.experiments import apply, assert_passed, completed, effects, installed
from tests.cluster.providers import Provider

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

SECONDS_MAX = 1200.0
CHARGES = {"none": (1, 2, 2), "saved-random": (1, 2, 2), "derived": (1, 1, 1)}
"""Key → charges when killed before the charge, after it, and in the step that follows its record."""
KILLS = ("charge.before", "charge.after", "finalize.before")


@pytest.fixture(scope="module")
def status(provider: Provider) -> Iterator[dict[str, Any]]:
    with installed(provider) as kubectl:
        apply(kubectl, "pod-store", trials=1)
        yield completed(kubectl, "pod-store", seconds_max=SECONDS_MAX)


def test_it_passes_with_every_kill_proven(status: dict[str, Any]) -> None:
    assert_passed(status)


@pytest.mark.parametrize("key", CHARGES)
@pytest.mark.parametrize("setup", ["langgraph", "llamaindex"])
def test_only_a_key_that_is_made_again_from_the_job_survives_the_pod(
    status: dict[str, Any], setup: str, key: str
) -> None:
    found = {
        cell["coordinates"]["kill"]: effects(cell, "charge")
        for cell in status["cells"]
        if not cell["control"] and (cell["coordinates"]["setup"], cell["coordinates"]["key"]) == (setup, key)
    }
    assert found == {kill: {count: 1} for kill, count in zip(KILLS, CHARGES[key], strict=True)}
