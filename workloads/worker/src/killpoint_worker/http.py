"""One JSON request over HTTP, on a connection of its own, bounded in time and size."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

_ANSWER_BYTES_MAX = 1 << 20


class NoAnswerError(Exception):
    """The request was made and no usable answer came: whether it took effect is not known."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. ``document`` is empty when the body is no JSON object."""

    status: int
    headers: Mapping[str, str]
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where requests go, and how long the connection and each read of an answer may take, in seconds."""

    url: str
    token: str
    timeout_seconds: float

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        headers: Mapping[str, str] | None = None,
        on_sent: Callable[[], None] | None = None,
    ) -> Answer:
        """POST ``body`` as JSON. ``on_sent`` is called when the kernel has the whole request and nothing was read.

        Raises NoAnswerError; what ``on_sent`` raises comes through as it is.
        """
        connection = self._connection()
        try:
            try:
                connection.request("POST", self._path(path), json.dumps(body).encode(), self._headers(headers))
            except (OSError, http.client.HTTPException) as error:
                raise self._no_answer(path, error) from error
            if on_sent is not None:
                on_sent()
            try:
                return _read(connection.getresponse())
            except (OSError, http.client.HTTPException) as error:
                raise self._no_answer(path, error) from error
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"{self.url!r} is no address: http://host:port is wanted")
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        return kind(parts.hostname, parts.port, timeout=self.timeout_seconds)

    def _path(self, path: str) -> str:
        return urlsplit(self.url).path.rstrip("/") + path

    def _headers(self, further: Mapping[str, str] | None) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Connection": "close",
            **(further or {}),
        }

    def _no_answer(self, path: str, error: Exception) -> NoAnswerError:
        return NoAnswerError(f"POST {self.url}{path}: {type(error).__name__}: {error}")


def _read(response: http.client.HTTPResponse) -> Answer:
    data = response.read(_ANSWER_BYTES_MAX)
    try:
        document = json.loads(data)
    except ValueError:
        document = {}
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, headers, document if isinstance(document, dict) else {})
