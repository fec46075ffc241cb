"""Reach: a worker begins when what it was given can be reached, not in its pod's first moments.

A network policy knows a new pod only when its rules are next written, a second or several after the pod was started.
Until then connections are refused, or time out. A framework that meets that raises, which is neither its fault nor
the worker's, and would be taken for a run that is stranded.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

SECONDS_MAX = 20.0
"""How long it is waited for all services together. What is away after that is met by the framework, as ever."""
CONNECT_SECONDS_MAX = 2.0
PAUSE_SECONDS = 0.1
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
"""No policy is in the way there: what does not answer is away."""
PORTS = {"http": 80, "https": 443, "postgresql": 5432, "postgres": 5432}

Place = tuple[str, int]


def wait_until_reachable(urls: Iterable[str | None]) -> bool:
    """Wait until connections to all of these are taken, for a bounded time. Whether they are."""
    deadline = time.monotonic() + SECONDS_MAX
    return all(_reached(place, deadline) for place in places_of(urls))


def places_of(urls: Iterable[str | None]) -> Iterator[Place]:
    """Host and port of each that is on another machine, once. One that names several hosts, or none, is left out."""
    seen: set[Place] = set()
    for url in urls:
        place = _place(url or "")
        if place is not None and place not in seen and place[0] not in LOOPBACK:
            seen.add(place)
            yield place


def _place(url: str) -> Place | None:
    parts = urlsplit(url)
    try:
        port = parts.port or PORTS.get(parts.scheme)
    except ValueError:  # host1:5432,host2:5432: libpq knows what to do with them
        return None
    return (parts.hostname, port) if parts.hostname and port else None


def _reached(place: Place, deadline: float) -> bool:
    while True:
        try:
            socket.create_connection(place, CONNECT_SECONDS_MAX).close()
        except OSError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(PAUSE_SECONDS)
        else:
            return True
