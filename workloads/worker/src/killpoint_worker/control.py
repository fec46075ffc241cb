"""Control: where a parked attempt waits."""

from __future__ import annotations

import time
from collections.abc import Callable
from urllib.parse import quote

from killpoint_worker.http import Endpoint, NoAnswerError

PATIENCE_SECONDS = 900.0
ANSWER_SECONDS = 60.0
PAUSE_SECONDS = 0.2

_SERVER_ERROR = 500
_CLIENT_ERROR = 400


class ControlError(Exception):
    """An attempt that was to wait at a point could not do so."""


class ControlRefused(ControlError):
    """Control knows nothing of this attempt, or its answer makes no sense."""


class ParkedTooLong(ControlError):
    """Nobody released this attempt within its patience."""


class ControlClient:
    """Parks one attempt: asks, and asks again when the connection breaks or an answer is long in coming."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        attempt: str,
        patience_seconds: float = PATIENCE_SECONDS,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._endpoint = Endpoint(url=url, token=token, timeout_seconds=ANSWER_SECONDS)
        self._path = f"/v1/attempts/{quote(attempt, safe='')}/parked"
        self._patience_seconds = patience_seconds
        self._sleep = sleep
        self._clock = clock

    def park(self, point: str, occurrence: int) -> str:
        """Wait until control says ``go`` or ``die``. Raises ControlRefused or ParkedTooLong."""
        deadline = self._clock() + self._patience_seconds
        while self._clock() < deadline:
            do = self._ask(point, occurrence)
            if do is not None:
                return do
            self._sleep(PAUSE_SECONDS)
        raise ParkedTooLong(f"parked at {point} for {self._patience_seconds:.0f} s, neither released nor killed")

    def _ask(self, point: str, occurrence: int) -> str | None:
        """One request; None when it has to be repeated."""
        try:
            answer = self._endpoint.post(self._path, {"point": point, "occurrence": occurrence})
        except NoAnswerError:
            return None
        if answer.status >= _SERVER_ERROR:
            return None
        do = answer.document.get("do")
        if answer.status >= _CLIENT_ERROR or do not in {"go", "die", "wait"}:
            raise ControlRefused(
                f"control answered {answer.status} {dict(answer.document)!r} to the parking at {point}"
            )
        return None if do == "wait" else str(do)
