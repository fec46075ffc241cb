from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from killpoint_payments.payloads import (
    InvalidPayload,
    Notification,
    Payment,
    glimpse,
    read_key,
    read_notification,
    read_payment,
)

PAYMENT = Payment(order="order-1", amount=4900, currency="EUR", action="charge")
text = st.text(min_size=1, max_size=200).filter(str.isprintable)
payments = st.builds(
    Payment,
    order=text,
    amount=st.integers(1, 10**12),
    currency=st.from_regex(r"[A-Z]{3}", fullmatch=True),
    action=st.from_regex(r"[a-z][a-z0-9.-]{0,62}", fullmatch=True),
    item=st.just("") | text,
)


def body_of(payment: Payment, **changes: object) -> bytes:
    fields = {name: getattr(payment, name) for name in ("order", "amount", "currency", "action", "item")}
    return json.dumps(fields | changes).encode()


@given(payments)
def test_a_payment_is_read_as_it_was_written(payment: Payment) -> None:
    assert read_payment(body_of(payment), action="refund") == payment


def test_what_the_body_leaves_out_has_a_default() -> None:
    assert read_payment(b'{"order": "order-1", "amount": 4900, "currency": "EUR"}', action="charge") == PAYMENT


@given(payments, payments)
def test_fingerprints_are_equal_exactly_when_payloads_are(one: Payment, other: Payment) -> None:
    assert (one.fingerprint("charge") == other.fingerprint("charge")) == (one == other)
    assert one.fingerprint("charge") != one.fingerprint("refund")


def test_a_fingerprint_does_not_run_fields_together() -> None:
    one = replace(PAYMENT, action="charge", item="1")
    assert one.fingerprint("charge") != replace(PAYMENT, action="charge1", item="").fingerprint("charge")


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists))
def test_whatever_json_is_sent_it_is_read_or_refused(document: object) -> None:
    body = json.dumps({"order": document, "amount": document, "currency": document}).encode()
    with pytest.raises(InvalidPayload):
        read_payment(body, action="charge")


@given(st.binary(max_size=60))
def test_whatever_bytes_are_sent_they_are_refused_and_glimpsed_at(body: bytes) -> None:
    with pytest.raises(InvalidPayload):
        read_notification(body)
    assert glimpse(body, action_field="kind", action="notification") == ("notification", "")


def test_a_field_too_many_is_named() -> None:
    with pytest.raises(InvalidPayload, match="'ordre'"):
        read_payment(body_of(PAYMENT, ordre="order-1"), action="charge")


def test_a_notification_is_read_as_it_was_written() -> None:
    assert read_notification(b'{"order": "order-1", "kind": "finalize"}') == Notification(
        order="order-1", kind="finalize"
    )


def test_an_invalid_request_is_logged_with_what_it_shows() -> None:
    body = body_of(PAYMENT, amount=-1, action="tip")
    assert glimpse(body, action_field="action", action="charge") == ("tip", "order-1")
    assert glimpse(body_of(PAYMENT, order="\x00"), action_field="action", action="charge") == ("charge", "")


@pytest.mark.parametrize(
    ("header", "key"), [(None, None), (b"k", "k"), (b'a b:"c"', 'a b:"c"'), (b"k" * 255, "k" * 255)]
)
def test_a_key_is_taken_as_it_is(header: bytes | None, key: str | None) -> None:
    assert read_key(header) == key


@pytest.mark.parametrize("header", [b"", b"k" * 256, b"\xff", b"a\tb"])
def test_what_is_no_key_is_refused(header: bytes) -> None:
    with pytest.raises(InvalidPayload, match="Idempotency-Key"):
        read_key(header)
