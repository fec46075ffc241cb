"""A worker begins when what it was given can be reached."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from killpoint_worker import reach
from killpoint_worker.reach import places_of, wait_until_reachable


@pytest.fixture(autouse=True)
def _loopback_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no other machine to be refused by."""
    monkeypatch.setattr(reach, "LOOPBACK", frozenset())
    monkeypatch.setattr(reach, "PAUSE_SECONDS", 0.01)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
    return port


def test_what_refuses_at_first_is_waited_for() -> None:
    port = free_port()

    def listen_later() -> None:
        time.sleep(0.2)
        with socket.create_server(("127.0.0.1", port)) as server:
            server.accept()[0].close()

    listener = threading.Thread(target=listen_later)
    listener.start()
    assert wait_until_reachable([f"http://127.0.0.1:{port}/v1"])
    listener.join()


def test_what_stays_away_is_left_to_the_framework_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "SECONDS_MAX", 0.1)
    assert not wait_until_reachable([f"postgresql://role@127.0.0.1:{free_port()}/state"])


def test_nothing_is_waited_for_where_nothing_was_given() -> None:
    assert wait_until_reachable([None, None])


@pytest.mark.parametrize(
    ("url", "places"),
    [
        ("http://payments.team.svc:8080", [("payments.team.svc", 8080)]),
        ("http://payments", [("payments", 80)]),
        ("postgresql://role:p%40ss@db.team.svc/state?application_name=a.1.1", [("db.team.svc", 5432)]),
        ("postgresql:///state?host=/var/run/postgresql", []),
        ("postgresql://one:5432,two:5432/state", []),
    ],
)
def test_a_place_is_read_from_its_address(url: str, places: list[tuple[str, int]]) -> None:
    assert list(places_of([url, url])) == places


def test_on_this_machine_nothing_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "LOOPBACK", frozenset({"localhost", "127.0.0.1", "::1"}))
    assert list(places_of(["http://127.0.0.1:1", "http://localhost:1", "postgresql://r@[::1]:1/state"])) == []
