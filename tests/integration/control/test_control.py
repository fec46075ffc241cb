"""Control: who parks waits, who is released goes on, and its own death changes neither."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

import httpx
import pytest

from killpoint.control import app as control_app
from killpoint.control.app import application
from killpoint.control.parkings import Parked, Parkings
from killpoint.model.tokens import TokenRefused, mint_token, read_token
from tests.contract import rig

KEY = "a-signing-key"
TOKEN = mint_token(KEY, experiment="e", tenant="t", run="j-aaaa.1", attempt="aaaa.1.1")
HEADERS = {"authorization": f"Bearer {TOKEN}"}
PATH = "/v1/attempts/aaaa.1.1/parked"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with rig.postgres() as url:
        yield url


@pytest.fixture
def dsn(server: str) -> Iterator[str]:
    with rig.database(server) as url:
        yield url


def client(parkings: Parkings) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=application(parkings, KEY))
    return httpx.AsyncClient(transport=transport, base_url="http://control", headers=HEADERS, timeout=30)


async def until_parked(parkings: Parkings) -> Mapping[tuple[str, str], Parked]:
    async with asyncio.timeout(20):
        while True:
            if seen := await parkings.parked(["j-aaaa.1"]):
                return seen
            await asyncio.sleep(0.05)


def test_a_parked_attempt_waits_until_it_is_released(dsn: str) -> None:
    async def run() -> tuple[str, list[str]]:
        async with Parkings(dsn) as parkings, client(parkings) as worker:
            await parkings.migrate()
            waiting = asyncio.ensure_future(worker.post(PATH, json={"point": "charge.after", "occurrence": 2}))
            seen = await until_parked(parkings)
            assert not waiting.done()
            await parkings.release("j-aaaa.1", "aaaa.1.1")
            return (await waiting).json()["do"], [parked.point for parked in seen.values()]

    assert asyncio.run(run()) == ("go", ["charge.after#2"])


def test_a_request_that_was_held_long_enough_is_asked_to_come_again(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_app, "HELD_SECONDS", 0.1)

    async def run() -> list[str]:
        async with Parkings(dsn) as parkings, client(parkings) as worker:
            await parkings.migrate()
            return [(await worker.post(PATH, json={"point": "charge.after"})).json()["do"] for _ in range(2)]

    assert asyncio.run(run()) == ["wait", "wait"]


def test_parkings_and_releases_survive_its_own_end(dsn: str) -> None:
    async def run() -> str:
        async with Parkings(dsn) as before:
            await before.migrate()
            await before.park("j-aaaa.1", "aaaa.1.1", "charge.after")
            await before.release("j-aaaa.1", "aaaa.1.1")
        async with Parkings(dsn) as after, client(after) as worker:
            await after.migrate()
            return str((await worker.post(PATH, json={"point": "charge.after"})).json()["do"])

    assert asyncio.run(run()) == "go"


@pytest.mark.parametrize(
    ("path", "headers", "content", "status"),
    [
        (PATH, {"authorization": ""}, b"{}", 401),
        (PATH, {"authorization": "Bearer kp1.e30.AAAA"}, b"{}", 401),
        (
            PATH,
            {"authorization": f"Bearer {mint_token('other', experiment='e', tenant='t', run='r', attempt='aaaa.1.1')}"},
            b"{}",
            401,
        ),
        ("/v1/attempts/bbbb.1.1/parked", HEADERS, b'{"point":"charge.after"}', 403),
        (PATH, HEADERS, b"nonsense", 400),
        (PATH, HEADERS, b'{"point":5}', 400),
        (PATH, HEADERS, b"x" * 5000, 413),
    ],
)
def test_what_is_refused(dsn: str, *, path: str, headers: dict[str, str], content: bytes, status: int) -> None:
    """Nobody parks, or is released, under a token that is not theirs."""

    async def run() -> tuple[int, int]:
        async with Parkings(dsn) as parkings, client(parkings) as worker:
            await parkings.migrate()
            answer = await worker.post(path, headers=headers, content=content)
            return answer.status_code, len(await parkings.parked(["j-aaaa.1", "r"]))

    assert asyncio.run(run()) == (status, 0)


def test_a_database_that_is_away_is_said_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("killpoint.control.parkings.WAIT_SECONDS_MAX", 0.2)

    async def run() -> tuple[int, int]:
        async with Parkings("postgresql://127.0.0.1:1/none?connect_timeout=1") as parkings, client(parkings) as worker:
            parked = await worker.post(PATH, json={"point": "charge.after"})
            return parked.status_code, (await worker.get("/readyz")).status_code

    assert asyncio.run(run()) == (503, 503)


def test_a_changed_token_is_refused_and_never_shown() -> None:
    head, _, tail = TOKEN.rpartition(".")
    with pytest.raises(TokenRefused) as refusal:
        read_token(KEY, f"{head}x.{tail}")
    assert head not in str(refusal.value)
    assert read_token(KEY, TOKEN).attempt == "aaaa.1.1"
