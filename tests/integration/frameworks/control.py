"""Control for tests of workers that overlap: whoever parks, or is frozen, waits there until the test lets it go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from json import dumps, loads
from threading import Condition, Thread
from urllib.parse import unquote

from tests.contract.rig import DEADLINE_SECONDS, Started

HELD_SECONDS = 0.5
"""How long a request is held, before the worker is told to ask again."""


class Control:
    """Who waits where, and who may go on."""

    def __init__(self) -> None:
        self.url = ""
        self._changed = Condition()
        self._waiting: dict[str, str] = {}
        self._answers: dict[str, str] = {}
        self._everybody_dies = False

    def until_all_wait(self, point: str, *attempts: Started) -> None:
        """Return when each of them waits at the point, all at the same time."""
        names = {_name(attempt) for attempt in attempts}

        def all_wait() -> bool:
            return all(self._waiting.get(name) == point for name in names)

        with self._changed:
            assert self._changed.wait_for(all_wait, DEADLINE_SECONDS), f"not all wait at {point}: {self._waiting}"

    def release(self, *attempts: Started) -> None:
        """Let them go on, all at once."""
        with self._changed:
            self._answers |= {_name(attempt): "go" for attempt in attempts}
            self._changed.notify_all()

    def end(self) -> None:
        """Whoever still waits dies: a test that failed leaves no worker behind."""
        with self._changed:
            self._everybody_dies = True
            self._changed.notify_all()

    def answer(self, attempt: str, point: str) -> str:
        """What a worker is told that waits at a point."""
        with self._changed:
            self._waiting[attempt] = point
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._everybody_dies or attempt in self._answers, HELD_SECONDS)
            answer = "die" if self._everybody_dies else self._answers.get(attempt, "wait")
            if answer != "wait":
                self._waiting.pop(attempt, None)
            return answer


@contextmanager
def serving() -> Iterator[Control]:
    """Control at an address of its own."""
    control = Control()

    class Asked(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            point = loads(self.rfile.read(int(self.headers["Content-Length"])))["point"]
            answer = control.answer(unquote(self.path.split("/")[3]), point)
            body = dumps({"do": answer}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Asked) as server:
        control.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield control
        finally:
            control.end()
            server.shutdown()
            thread.join()


def _name(attempt: Started) -> str:
    return str(attempt.assignment["attempt"])
