"""The payments service as the harness reads it: everything it answers, or a reason why it is not known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from killpoint.model.evidence import Effect, LedgerView, Request, RequestOutcome
from killpoint.model.tokens import mint_token
from killpoint.payments import RUNS_IN_A_REQUEST_MAX, PaymentsLedger
from killpoint.ports import LedgerUnavailableError
from killpoint_payments.tokens import Bearer, verify_token

pytestmark = pytest.mark.anyio

EFFECT = {
    "id": "ch_1", "action": "charge", "order": "order-1", "item": "", "amount": 4900, "currency": "EUR", "key": None,
    "run": "r", "attempt": "a.1.1", "at": 1000,
}  # fmt: skip
REQUEST = {
    "attempt": "a.1.1", "action": "charge", "order": "order-1", "key": None, "outcome": "committed", "status": 201,
    "effect": "ch_1", "received": 999, "answered": None,
}  # fmt: skip
EMPTY: dict[str, Any] = {"effects": [], "requests": [], "inFlight": 0}


def _ledger(answer: Callable[[httpx.Request], httpx.Response]) -> PaymentsLedger:
    return PaymentsLedger(url="http://payments.test", token="word", transport=httpx.MockTransport(answer))


def _answering(runs: dict[str, Any], status: int = 200) -> Callable[[httpx.Request], httpx.Response]:
    return lambda _: httpx.Response(status, json={"boot": "b1", "runs": runs})


async def test_a_run_is_read_with_effects_requests_and_what_is_in_flight() -> None:
    async with _ledger(_answering({"r": {"effects": [EFFECT], "requests": [REQUEST], "inFlight": 2}})) as ledger:
        views = await ledger.view(["r"])

    assert views == {
        "r": LedgerView(
            effects=(
                Effect(
                    id="ch_1", action="charge", order="order-1", amount=4900, currency="EUR", run="r",
                    attempt="a.1.1", at_ms=1000,
                ),
            ),
            requests=(
                Request(
                    attempt="a.1.1", action="charge", order="order-1", outcome=RequestOutcome.COMMITTED, status=201,
                    effect="ch_1", received_ms=999,
                ),
            ),
            in_flight=2,
            boot="b1",
        )
    }  # fmt: skip


async def test_many_runs_are_asked_for_in_bounded_requests_with_the_token() -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json={"boot": "b", "runs": dict.fromkeys(request.url.params.get_list("run"), EMPTY)})

    runs = [f"run-{number}" for number in range(2 * RUNS_IN_A_REQUEST_MAX + 1)]
    async with _ledger(answer) as ledger:
        views = await ledger.view([*runs, *runs])

    assert list(views) == runs
    assert [len(request.url.params.get_list("run")) for request in asked] == [100, 100, 1]
    assert {request.headers["authorization"] for request in asked} == {"Bearer word"}


async def test_the_start_of_the_service_that_answers_has_a_name() -> None:
    async with _ledger(_answering({"-": EMPTY})) as ledger:
        assert await ledger.incarnation() == "b1"
    async with _ledger(lambda _: httpx.Response(200, json={"runs": {}})) as ledger:
        with pytest.raises(LedgerUnavailableError, match="which start of it answers"):
            await ledger.incarnation()


async def test_no_runs_are_no_question() -> None:
    async with _ledger(_answering({}, status=500)) as ledger:
        assert await ledger.view([]) == {}


@pytest.mark.parametrize(
    ("runs", "word"),
    [
        ({}, "KeyError"),
        ({"r": {**EMPTY, "inFlight": None}}, "TypeError"),
        ({"r": {**EMPTY, "requests": [{**REQUEST, "outcome": "unheard-of"}]}}, "ValueError"),
        ({"r": {**EMPTY, "effects": [{"id": "ch_1"}]}}, "KeyError"),
        ({"r": []}, "TypeError"),
    ],
)
async def test_what_cannot_be_read_is_never_taken_for_nothing(runs: dict[str, Any], word: str) -> None:
    async with _ledger(_answering(runs)) as ledger:
        with pytest.raises(LedgerUnavailableError, match=f"answers what cannot be read: {word}"):
            await ledger.view(["r"])


@pytest.mark.parametrize("status", [401, 404, 500, 503])
async def test_any_other_answer_is_no_ledger(status: int) -> None:
    async with _ledger(_answering({"r": EMPTY}, status=status)) as ledger:
        with pytest.raises(LedgerUnavailableError, match=f"answers {status}"):
            await ledger.view(["r"])


async def test_an_answer_that_is_no_json_is_no_ledger() -> None:
    async with _ledger(lambda _: httpx.Response(200, text="<html>")) as ledger:
        with pytest.raises(LedgerUnavailableError, match="what is no JSON"):
            await ledger.view(["r"])


@pytest.mark.parametrize("fault", [httpx.ConnectError, httpx.ReadTimeout, httpx.RemoteProtocolError])
async def test_a_service_that_is_away_is_said_with_its_place(fault: type[httpx.TransportError]) -> None:
    def away(request: httpx.Request) -> httpx.Response:
        raise fault("gone", request=request)

    async with _ledger(away) as ledger:
        with pytest.raises(LedgerUnavailableError, match=f"http://payments.test does not answer: {fault.__name__}"):
            await ledger.view(["r"])


def test_a_minted_token_is_what_the_service_accepts() -> None:
    token = mint_token("key", experiment="crash-table", tenant="t", run="r", attempt="a.1.1")
    assert verify_token(b"key", token.encode()) == Bearer(
        experiment="crash-table", tenant="t", run="r", attempt="a.1.1"
    )
