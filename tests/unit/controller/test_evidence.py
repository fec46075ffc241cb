"""The app that shows evidence: what is asked of whoever has it, and what is said where there is none."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import httpx
import pytest

from killpoint.controller.evidence import NoEvidence, application, location_of, served
from killpoint.controller.subjects import Subject
from killpoint.ports import JournalUnavailableError
from tests.unit.controller.test_settings import read

SUBJECT = Subject(namespace="team", name="crash-table", uid="u1")


async def find(namespace: str, name: str) -> Iterator[bytes]:
    match name:
        case "away":
            raise JournalUnavailableError("the journal's database does not answer")
        case "running":
            raise NoEvidence(f"no evidence is kept of experiment {namespace}/{name}")
        case _:
            return iter([b'{"name":', f'"{namespace}/{name}"}}'.encode()])


def ask(path: str, method: str = "GET") -> httpx.Response:
    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(app=application(find))
        async with httpx.AsyncClient(transport=transport, base_url="http://operator") as client:
            return await client.request(method, path)

    return asyncio.run(asked())


def test_evidence_is_given_as_it_was_kept() -> None:
    answer = ask("/v1/experiments/team/crash-table/evidence")
    assert (answer.status_code, answer.content) == (200, b'{"name":"team/crash-table"}')


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("running", 404, "no evidence is kept of experiment team/running"),
        ("away", 503, "the journal's database does not answer"),
        ("..", 404, ""),
        ("%2e%2e", 404, ""),
        ("..%2fpods", 404, ""),
        ("A", 404, "no experiment can have such a name"),
        ("a" * 254, 404, "no experiment can have such a name"),
    ],
)
def test_what_cannot_be_given_is_said_and_no_other_path_is_made_of_a_name(name: str, status: int, words: str) -> None:
    answer = ask(f"/v1/experiments/team/{name}/evidence")
    assert answer.status_code == status
    assert words in answer.text


def test_it_can_only_be_read() -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert ask("/v1/experiments/team/crash-table/evidence", method).status_code == 405


def test_a_status_names_the_path_at_the_api_server_where_the_operator_knows_its_service() -> None:
    settings = read(KILLPOINT_EVIDENCE_SERVICE="killpoint-operator:evidence", KILLPOINT_POD_NAMESPACE="killpoint")
    assert location_of(SUBJECT, settings) == (
        "/api/v1/namespaces/killpoint/services/http:killpoint-operator:evidence/proxy"
        "/v1/experiments/team/crash-table/evidence"
    )
    assert location_of(SUBJECT, read()) is None


def test_it_is_served_while_the_operator_works_and_no_longer() -> None:
    async def scenario() -> tuple[int, int]:
        with socket.create_server(("127.0.0.1", 0)) as free:
            wanted = int(free.getsockname()[1])
        async with served(application(find), wanted) as port, httpx.AsyncClient(trust_env=False) as client:
            answer = await client.get(f"http://127.0.0.1:{port}/v1/experiments/team/x/evidence")
        with socket.socket() as again:
            refused = again.connect_ex(("127.0.0.1", wanted))
        return answer.status_code, refused

    status, refused = asyncio.run(scenario())
    assert status == 200
    assert refused != 0


def test_it_is_not_served_where_nobody_wants_it() -> None:
    async def scenario() -> int | None:
        async with served(application(find), None) as port:
            return port

    assert asyncio.run(scenario()) is None
