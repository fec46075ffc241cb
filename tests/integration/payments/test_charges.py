"""What a client of the payments service can rely on."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from killpoint_payments.tokens import Bearer, mint_token
from tests.integration.payments import rig
from tests.integration.payments.rig import CHARGE, Caller, Service, code

pytestmark = pytest.mark.integration


def test_a_charge_is_answered_with_what_was_committed(caller: Caller) -> None:
    response = caller.charge()
    assert response.status_code == 201
    body = response.json()
    assert body["id"].startswith("ch_")
    assert {**CHARGE, "run": caller.run, "status": "succeeded"}.items() <= body.items()
    (effect,) = caller.effects()
    assert (effect["id"], effect["at"]) == (body["id"], body["created"])


def test_without_a_key_each_request_is_a_charge_of_its_own(caller: Caller) -> None:
    ids = {caller.charge().json()["id"] for _ in range(3)}
    assert len(ids) == 3
    assert {effect["id"] for effect in caller.effects()} == ids


def test_a_key_sent_again_is_answered_with_the_first_answer(caller: Caller) -> None:
    first, second = caller.charge("key-1"), caller.charge("key-1")
    assert (second.status_code, second.content) == (first.status_code, first.content)
    assert "idempotent-replayed" not in first.headers
    assert second.headers["idempotent-replayed"] == "true"
    assert len(caller.effects()) == 1


def test_a_key_belongs_to_a_tenant_and_not_to_a_run(caller: Caller) -> None:
    first = caller.charge("key-1")
    assert caller.charge("key-1", run=f"{caller.run}-again").content == first.content
    assert caller.service.caller().charge("key-1").json()["id"] != first.json()["id"]


@pytest.mark.parametrize(
    "other",
    [{"amount": 4901}, {"currency": "USD"}, {"order": "order-2"}, {"action": "tip"}, {"item": "sku-1"}],
    ids=lambda fields: next(iter(fields)),
)
def test_a_key_sent_again_with_another_payload_is_refused(caller: Caller, other: dict[str, Any]) -> None:
    caller.charge("key-1")
    refused = caller.charge("key-1", **other)
    assert (refused.status_code, code(refused)) == (422, "idempotency-key-reused")
    assert len(caller.effects()) == 1


def test_a_key_of_a_charge_is_refused_for_a_refund(caller: Caller) -> None:
    caller.charge("key-1")
    refused = caller.post("/v1/refunds", CHARGE, "key-1")
    assert (refused.status_code, code(refused)) == (422, "idempotency-key-reused")


@pytest.mark.parametrize(
    "wrong",
    [
        {"amount": 0},
        {"amount": -1},
        {"amount": 49.5},
        {"amount": True},
        {"amount": "4900"},
        {"amount": 10**13},
        {"currency": "eur"},
        {"currency": "EURO"},
        {"order": ""},
        {"order": "a\x00b"},
        {"order": "x" * 201},
        {"action": "Charge!"},
        {"receipt": "by mail"},
    ],
    ids=lambda fields: f"{next(iter(fields))}={str(next(iter(fields.values())))[:9]!r}",
)
def test_an_invalid_charge_is_refused_and_its_key_stays_free(caller: Caller, wrong: dict[str, Any]) -> None:
    refused = caller.charge("key-1", **wrong)
    assert (refused.status_code, code(refused)) == (400, "invalid-request")
    assert next(iter(wrong)) in refused.json()["detail"]
    assert caller.charge("key-1").status_code == 201
    assert len(caller.effects()) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b"[" * 30_000,
        b'{"order": "order-1"}',
        b'{"order": "\\ud800", "amount": 1, "currency": "EUR"}',
    ],
    ids=lambda body: str(body[:20]),
)
def test_what_is_no_charge_is_refused(caller: Caller, body: bytes) -> None:
    with caller.client() as client:
        refused = client.post("/v1/charges", content=body)
    assert (refused.status_code, code(refused)) == (400, "invalid-request")
    assert [request["outcome"] for request in caller.requests()] == ["invalid"]


@pytest.mark.parametrize("key", [b"", b"k" * 256, b"k\xe9y"], ids=["empty", "long", "not ASCII"])
def test_a_key_that_is_none_is_refused(caller: Caller, key: bytes) -> None:
    with caller.client() as client:
        refused = client.post("/v1/charges", json=CHARGE, headers=[(b"Idempotency-Key", key)])
    assert (refused.status_code, code(refused)) == (400, "invalid-request")


def test_a_body_that_is_too_large_is_refused(caller: Caller) -> None:
    with caller.client() as client:
        refused = client.post("/v1/charges", content=b" " * 70_000)
    assert (refused.status_code, code(refused)) == (413, "body-too-large")
    (request,) = caller.requests()
    assert (request["outcome"], request["status"]) == ("invalid", 413)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: None,
        lambda _: "Bearer",
        lambda _: "Bearer x",
        lambda _: "Bearer kp1.e30.",
        lambda token: f"Basic {token}",
        lambda token: f"Bearer {token}x",
        lambda token: f"Bearer {token[:-1]}",
        lambda token: f"Bearer kp1{token}",
    ],
    ids=["none", "empty", "rubbish", "unsigned", "basic", "longer", "shorter", "prefixed"],
)
def test_without_a_token_that_holds_nothing_is_done(caller: Caller, spoil: object) -> None:
    assert callable(spoil)
    authorization = spoil(caller.token())
    headers = {} if authorization is None else {"Authorization": authorization}
    refused = httpx.post(f"{caller.service.url}/v1/charges", json=CHARGE, headers=headers)
    assert (refused.status_code, code(refused)) == (401, "unauthorized")
    assert "bearer" in refused.headers["www-authenticate"].lower()
    assert caller.shown() == {"effects": [], "requests": [], "inFlight": 0}


def test_a_token_of_another_signing_key_does_not_hold(caller: Caller) -> None:
    bearer = Bearer(experiment="crash-table", tenant=caller.tenant, run=caller.run, attempt=f"{caller.run}.1")
    forged = mint_token(b"another key", bearer)
    refused = httpx.post(f"{caller.service.url}/v1/charges", json=CHARGE, headers={"Authorization": f"Bearer {forged}"})
    assert (refused.status_code, code(refused)) == (401, "unauthorized")
    assert caller.effects() == []


def test_a_notification_is_made_once_for_an_order_and_kind(caller: Caller) -> None:
    finalize = {"order": "order-1", "kind": "finalize"}
    first, second = (caller.post("/v1/notifications", finalize) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 200)
    assert second.content == first.content
    assert second.headers["idempotent-replayed"] == "true"
    caller.post("/v1/notifications", {"order": "order-1", "kind": "reminder"})
    assert [(effect["action"], effect["amount"]) for effect in caller.effects()] == [("finalize", 0), ("reminder", 0)]


def test_a_refund_is_an_effect_of_its_own(caller: Caller) -> None:
    caller.charge()
    refund = caller.post("/v1/refunds", CHARGE)
    assert refund.status_code == 201
    assert refund.json()["id"].startswith("re_")
    assert [effect["action"] for effect in caller.effects()] == ["charge", "refund"]


def test_charges_are_found_by_order_run_and_key(caller: Caller) -> None:
    first = caller.charge("key-1").json()
    second = caller.charge(order="order-2").json()
    assert caller.get("/v1/charges", order="order-2").json() == {"charges": [second]}
    assert caller.get("/v1/charges", key="key-1").json() == {"charges": [first]}
    assert caller.get("/v1/charges", run=caller.run).json() == {"charges": [first, second]}
    assert caller.get("/v1/refunds", run=caller.run).json() == {"refunds": []}


def test_a_tenant_finds_its_own_charges_only(caller: Caller) -> None:
    caller.charge("key-1")
    other = caller.service.caller()
    for by in ({"order": "order-1"}, {"run": caller.run}, {"key": "key-1"}):
        assert other.get("/v1/charges", **by).json() == {"charges": []}


@pytest.mark.parametrize("query", ["", "order=a&run=b", "id=ch_1", "order=%00", "order=%FF"])
def test_a_look_up_asks_by_one_thing(caller: Caller, query: str) -> None:
    with caller.client() as client:
        answer = client.get(f"/v1/charges?{query}")
    if query == "order=%FF":  # read as U+FFFD, which is a character like any other
        assert answer.json() == {"charges": []}
    else:
        assert (answer.status_code, code(answer)) == (400, "invalid-request")


def test_what_is_not_there_is_a_problem_like_any_other(caller: Caller) -> None:
    assert code(caller.get("/v2/charges")) == "not-found"
    with caller.client() as client:
        refused = client.delete("/v1/charges")
    assert (refused.status_code, code(refused)) == (405, "method-not-allowed")


def test_every_request_is_logged_with_the_attempt_of_its_token(caller: Caller) -> None:
    caller.charge("key-1")
    caller.charge("key-1", attempt=2)
    caller.charge("key-1", attempt=2, amount=1)
    caller.charge("key-1", attempt=2, amount=-1)
    caller.post("/v1/notifications", {"order": "order-1", "kind": "finalize"})
    charged, finalized = (effect["id"] for effect in caller.effects())
    one, two = f"{caller.run}.1", f"{caller.run}.2"
    fields = ("attempt", "action", "key", "outcome", "status", "effect")
    requests = caller.requests()
    assert [tuple(request[field] for field in fields) for request in requests] == [
        (one, "charge", "key-1", "committed", 201, charged),
        (two, "charge", "key-1", "replayed", 201, charged),
        (two, "charge", "key-1", "mismatch", 422, charged),
        (two, "charge", "key-1", "invalid", 400, None),
        (one, "finalize", None, "committed", 201, finalized),
    ]
    for request in requests:
        assert request["order"] == "order-1"
        assert 0 < request["received"] <= request["answered"] + 1


def test_looking_up_leaves_no_trace(caller: Caller) -> None:
    caller.get("/v1/charges", order="order-1")
    assert caller.requests() == []


def test_the_admin_port_wants_its_own_token(caller: Caller) -> None:
    url = f"http://127.0.0.1:{caller.service.admin_port}/admin/v1/runs?run={caller.run}"
    for bearer in ("x", caller.token(), rig.SIGNING_KEY, rig.ADMIN_TOKEN[:-1]):
        refused = httpx.get(url, headers={"Authorization": f"Bearer {bearer}"})
        assert (refused.status_code, code(refused)) == (401, "unauthorized")


def test_the_public_port_does_not_show_what_the_admin_port_shows(shared_service: Service) -> None:
    headers = {"Authorization": f"Bearer {rig.ADMIN_TOKEN}"}
    assert httpx.get(f"{shared_service.url}/admin/v1/runs", headers=headers).status_code == 404


def test_each_run_is_shown_by_itself(shared_service: Service) -> None:
    callers = [shared_service.caller() for _ in range(3)]
    for caller in callers[:2]:
        caller.charge()
    shown = shared_service.admin(*(caller.run for caller in callers))
    assert shown["boot"] == shared_service.boots[0]
    assert [len(shown["runs"][caller.run]["effects"]) for caller in callers] == [1, 1, 0]


def test_metrics_count_what_became_of_requests(service: Service) -> None:
    caller = service.caller()
    caller.charge("key-1")
    caller.charge("key-1")
    lines = httpx.get(f"{service.url}/metrics").text.splitlines()
    assert 'killpoint_payments_requests_total{kind="charge",outcome="committed"} 1' in lines
    assert 'killpoint_payments_requests_total{kind="charge",outcome="replayed"} 1' in lines
    assert "killpoint_payments_in_flight 0" in lines
    assert "killpoint_payments_ready 1" in lines
