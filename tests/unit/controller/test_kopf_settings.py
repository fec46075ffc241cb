"""What kopf is told, where its own choice would cost an experiment something."""

from __future__ import annotations

from killpoint.controller.handlers import kopf_settings

PODS_A_SECOND = 300


def test_more_pods_a_second_are_seen_than_an_experiment_can_end() -> None:
    """Each object keeps one of kopf's few workers until it has been idle for a while.

    With kopf's own five seconds, events of more than a dozen pods a second pile up, and whoever waits is woken late.
    """
    queueing = kopf_settings().queueing
    assert queueing.worker_limit is not None, "as many tasks as there are objects is too many"
    assert queueing.worker_limit / queueing.idle_timeout >= PODS_A_SECOND
