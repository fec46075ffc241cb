"""Probes: whether the operator lives and whether it is at work, for the kubelet. A few lines of HTTP, and no more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

REQUEST_BYTES_MAX = 8192
REQUEST_SECONDS_MAX = 5.0
_RUDE = (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, TimeoutError)
"""What becomes of the connection of somebody who is no kubelet. There is nobody to tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a probe is told."""

    well: bool
    document: Mapping[str, Any]


Probe = Callable[[], Answer]


@asynccontextmanager
async def probes(port: int | None, answers: Mapping[str, Probe]) -> AsyncIterator[int | None]:
    """Answer GET on these paths while the block runs: 200 where all is well, 503 where not. Yields the port."""
    if port is None:
        yield None
        return

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(*_RUDE):
            async with asyncio.timeout(REQUEST_SECONDS_MAX):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(_response(head, answers))
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "0.0.0.0", port, limit=REQUEST_BYTES_MAX)  # noqa: S104 - kubelet asks
    async with server:
        yield int(server.sockets[0].getsockname()[1])


def _response(head: bytes, answers: Mapping[str, Probe]) -> bytes:
    _, _, rest = head.partition(b" ")
    path = rest.partition(b" ")[0].decode("latin-1").partition("?")[0]
    probe = answers.get(path)
    if probe is None:
        return _http("404 Not Found", {"known": sorted(answers)})
    answer = probe()
    return _http("200 OK" if answer.well else "503 Service Unavailable", answer.document)


def _http(status: str, document: Mapping[str, Any]) -> bytes:
    body = json.dumps(document).encode() + b"\n"
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
    )
    return head.encode() + b"\r\n" + body
