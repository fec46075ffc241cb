from __future__ import annotations

import json
from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from killpoint_payments.tokens import Bearer, TokenRefused, mint_token, verify_token

KEY = b"signing key"
BEARER = Bearer(experiment="crash-table", tenant="t", run="r", attempt="r.1")
words = st.text(min_size=1, max_size=40).filter(str.isprintable)


def signed(claims: bytes) -> bytes:
    """A token with an honest signature over whatever claims."""
    import hmac  # noqa: PLC0415 - what mint_token does, for claims that it would not sign

    part = b"kp1." + urlsafe_b64encode(claims).rstrip(b"=")
    return part + b"." + urlsafe_b64encode(hmac.digest(KEY, part, "sha256")).rstrip(b"=")


@given(st.builds(Bearer, experiment=words, tenant=words, run=words, attempt=words))
def test_what_was_minted_is_what_is_verified(bearer: Bearer) -> None:
    assert verify_token(KEY, mint_token(KEY, bearer).encode()) == bearer


def test_the_format_is_fixed() -> None:
    """Others mint too: the same claims and the same key are the same token everywhere."""
    assert mint_token(KEY, BEARER) == (
        "kp1.eyJlIjoiY3Jhc2gtdGFibGUiLCJ0ZW5hbnQiOiJ0IiwicnVuIjoiciIsImF0dGVtcHQiOiJyLjEifQ."
        "MnX9hh4MUsnKl9l3uO7LUQ7rR9gOx7pNzGWekpyktUY"
    )


@given(st.data())
def test_a_token_that_differs_anywhere_is_refused(data: st.DataObject) -> None:
    token = bytearray(mint_token(KEY, BEARER).encode())
    place = data.draw(st.integers(0, len(token) - 1))
    token[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(TokenRefused):
        verify_token(KEY, bytes(token))


@given(st.binary(max_size=200))
def test_rubbish_is_refused_and_never_quoted(rubbish: bytes) -> None:
    with pytest.raises(TokenRefused) as refused:
        verify_token(KEY, b"kp1." + rubbish)
    assert len(rubbish) < 8 or rubbish.decode("latin-1") not in str(refused.value)


def test_another_key_is_refused() -> None:
    with pytest.raises(TokenRefused, match="signature"):
        verify_token(b"another key", mint_token(KEY, BEARER).encode())


@pytest.mark.parametrize(
    "claims",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        json.dumps({"e": "x", "tenant": "t", "run": "r"}).encode(),
        json.dumps({"e": "x", "tenant": "t", "run": "r", "attempt": 1}).encode(),
        json.dumps({"e": "x", "tenant": "", "run": "r", "attempt": "a"}).encode(),
        json.dumps({"e": "x", "tenant": "t", "run": "r\n", "attempt": "a"}).encode(),
    ],
)
def test_claims_that_are_not_four_words_are_refused_although_signed(claims: bytes) -> None:
    with pytest.raises(TokenRefused, match="claims"):
        verify_token(KEY, signed(claims))


def test_a_token_without_end_is_refused_before_it_is_hashed() -> None:
    with pytest.raises(TokenRefused, match="too long"):
        verify_token(KEY, b"kp1." + b"a" * 5000)
