"""Probes answer, in HTTP, and are not brought down by those who speak something else."""

from __future__ import annotations

import asyncio
import json

from killpoint.controller.probes import Answer, probes
from killpoint.controller.roster import BEAT_SECONDS_MAX, Roster
from killpoint.controller.serve import liveness

ANSWERS = {
    "/healthz": lambda: Answer(well=True, document={"silentSeconds": 1}),
    "/readyz": lambda: Answer(well=False, document={"ready": False}),
}


async def asked(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    writer.write_eof()
    try:
        async with asyncio.timeout(5):
            return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


def test_a_probe_is_told_whether_all_is_well() -> None:
    async def scenario() -> list[bytes]:
        async with probes(0, ANSWERS) as port:
            assert port is not None
            return [
                await asked(port, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                for path in ("/healthz?full=1", "/readyz", "/other")
            ]

    well, ill, unknown = asyncio.run(scenario())
    assert well.startswith(b"HTTP/1.1 200 ")
    assert json.loads(well.partition(b"\r\n\r\n")[2]) == {"silentSeconds": 1}
    assert ill.startswith(b"HTTP/1.1 503 ")
    assert unknown.startswith(b"HTTP/1.1 404 ")


def test_rubbish_is_not_answered_and_does_no_harm() -> None:
    async def scenario() -> tuple[list[bytes], bytes]:
        async with probes(0, ANSWERS) as port:
            assert port is not None
            rude = [await asked(port, request) for request in (b"", b"\x16\x03\x01", b"GET", b"x" * 20_000)]
            return rude, await asked(port, b"GET /healthz HTTP/1.1\r\n\r\n")

    rude, polite = asyncio.run(scenario())
    assert set(rude) == {b""}
    assert polite.startswith(b"HTTP/1.1 200 ")


def test_no_port_is_no_server() -> None:
    async def scenario() -> int | None:
        async with probes(None, ANSWERS) as port:
            return port

    assert asyncio.run(scenario()) is None


def test_an_operator_lives_as_long_as_every_experiment_gets_on_or_waits() -> None:
    now = [0.0]
    roster = Roster(places=1, clock=lambda: now[0])
    assert liveness(roster).well
    seat = roster.sit("a")
    now[0] = BEAT_SECONDS_MAX + 1
    assert not liveness(roster).well
    seat.rest()
    assert liveness(roster).well
