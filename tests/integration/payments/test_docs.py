"""docs/payments-api.md is true: its examples are had again with a running service."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from killpoint_payments import problems
from tests.integration.payments import rig
from tests.integration.payments.rig import Caller

pytestmark = pytest.mark.integration

PAGE = (Path(__file__).parents[3] / "docs" / "payments-api.md").read_text("utf-8")


@dataclass(frozen=True, slots=True)
class Message:
    """A request or an answer of the page."""

    line: str
    headers: dict[str, str]
    body: str

    @classmethod
    def read(cls, text: str) -> Message:
        head, _, body = text.partition("\n\n")
        line, *headers = head.splitlines()
        return cls(line, dict(header.split(": ", 1) for header in headers), body.strip())


def conversation(page: str) -> list[tuple[Message, Message]]:
    blocks = [Message.read(block) for block in re.findall(r"^```http\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)]
    return list(zip(blocks[::2], blocks[1::2], strict=True))


def filled(page: str, caller: Caller) -> str:
    values = {"token": caller.token(), "run": caller.run, "attempt": f"{caller.run}.1", "admin-token": rig.ADMIN_TOKEN}
    return re.sub(r"\{(token|run|attempt|admin-token)\}", lambda found: values[found[1]], page)


def ask(caller: Caller, message: Message) -> httpx.Response:
    method, target = message.line.split(" ", 1)
    port = caller.service.admin_port if target.startswith("admin:") else caller.service.port
    url = f"http://127.0.0.1:{port}{target.removeprefix('admin:')}"
    return httpx.request(
        method, url, headers=message.headers, content=message.body.encode(), timeout=rig.SECONDS_MAX, verify=rig.CONTEXT
    )


def same(shown: Any, real: Any) -> bool:  # noqa: ANN401 - JSON
    """Whether ``real`` is what the page shows, where … is any text and 0 any number."""
    match shown:
        case dict():
            return isinstance(real, dict) and list(shown) == list(real) and all(same(shown[k], real[k]) for k in shown)
        case list():
            return isinstance(real, list) and len(shown) == len(real) and all(map(same, shown, real))
        case str():
            pattern = ".*".join(map(re.escape, shown.split("…")))
            return isinstance(real, str) and re.fullmatch(pattern, real) is not None
        case 0:
            return isinstance(real, int)
        case _:
            return bool(shown == real)


def test_the_examples_are_what_the_service_answers(caller: Caller) -> None:
    examples = conversation(filled(PAGE, caller))
    assert len(examples) >= 10
    for request, answer in examples:
        real = ask(caller, request)
        assert f"{real.status_code}" == answer.line.split(" ")[0], (request, real.text)
        for name, value in answer.headers.items():
            assert real.headers.get(name) == value, (request, name)
        assert same(json.loads(answer.body), real.json()), (request, real.text)


def test_every_problem_that_the_service_knows_is_on_the_page() -> None:
    known = [problem for problem in vars(problems).values() if isinstance(problem, problems.Problem)]
    assert len(known) >= 7
    for problem in known:
        assert re.search(rf"\| {problem.status} \| `{problem.code}` \|", PAGE), problem.code


def test_the_page_tells_examples_from_what_is_left_open() -> None:
    assert same({"id": "ch_…", "created": 0, "amount": 1}, {"id": "ch_12", "created": 1764520000123, "amount": 1})
    assert not same({"id": "ch_…"}, {"id": "re_12"})
    assert not same({"amount": 1}, {"amount": 2})
    assert not same({"id": "x"}, {"id": "x", "more": 1})
    assert not same([1], [1, 2])
