"""An HTTP connection that sends what is written to it in one loop iteration as one segment.

uvicorn writes an answer's head and its body apart. Sent apart, they are two system calls here and two wake-ups for the
client; sent together, they are one. With few processors shared by all, that is worth having.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class GatheredWrites:
    """A transport in front of another one: writes wait for the end of the loop iteration, everything else does not."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._parts: list[bytes] = []
        self._call_soon = asyncio.get_running_loop().call_soon

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the transport behind has
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send ``data`` together with all that is written until the loop's next iteration."""
        if not self._parts:
            self._call_soon(self._send)
        self._parts.append(data)

    def close(self) -> None:
        """Send what is left, then close."""
        self._send()
        self._transport.close()

    def _send(self) -> None:
        if self._parts:
            self._transport.write(b"".join(self._parts))
            self._parts.clear()


class GatheringProtocol(HttpToolsProtocol):
    """uvicorn's protocol on such a transport."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(GatheredWrites(transport))  # type: ignore[arg-type]
