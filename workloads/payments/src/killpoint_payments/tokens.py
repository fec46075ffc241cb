"""Bearer tokens: who sends a request, signed, so that a worker cannot act for another run or attempt.

``kp1.<base64url(json)>.<base64url(hmac-sha256(key, "kp1." + base64url(json)))>``, without padding; the JSON is
``{"e": experiment, "tenant": …, "run": …, "attempt": …}``.
"""

from __future__ import annotations

import binascii
import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass

TOKEN_BYTES_MAX = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearer:
    """What a valid token says of its sender."""

    experiment: str
    tenant: str
    run: str
    attempt: str


class TokenRefused(Exception):
    """The token is malformed or was not signed with this service's key. It never carries the token itself."""


def mint_token(signing_key: bytes, bearer: Bearer) -> str:
    """Sign ``bearer``: the token that its attempt is given."""
    claims = {"e": bearer.experiment, "tenant": bearer.tenant, "run": bearer.run, "attempt": bearer.attempt}
    signed = b"kp1." + _encode(json.dumps(claims, separators=(",", ":")).encode())
    return (signed + b"." + _encode(_signature(signing_key, signed))).decode("ascii")


def verify_token(signing_key: bytes, token: bytes) -> Bearer:
    """Read ``token`` once its signature holds, compared in constant time; else :class:`TokenRefused`."""
    if len(token) > TOKEN_BYTES_MAX:
        raise TokenRefused("the token is too long")
    signed, _, signature = token.rpartition(b".")
    if not signed.startswith(b"kp1."):
        raise TokenRefused("the token is not of the form kp1.claims.signature")
    if not hmac.compare_digest(_encode(_signature(signing_key, signed)), signature):
        raise TokenRefused("the token's signature does not hold")
    return _claims(signed[4:])


def _claims(encoded: bytes) -> Bearer:
    try:
        claims = json.loads(urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4)))
        bearer = Bearer(experiment=claims["e"], tenant=claims["tenant"], run=claims["run"], attempt=claims["attempt"])
    except (ValueError, KeyError, TypeError, binascii.Error) as error:
        raise TokenRefused("the token's claims cannot be read") from error
    words: tuple[object, ...] = (bearer.experiment, bearer.tenant, bearer.run, bearer.attempt)
    for word in words:
        if not isinstance(word, str) or not word or not word.isprintable():
            raise TokenRefused("the token's claims are not the four words experiment, tenant, run and attempt")
    return bearer


def _signature(signing_key: bytes, signed: bytes) -> bytes:
    return hmac.digest(signing_key, signed, "sha256")


def _encode(raw: bytes) -> bytes:
    return urlsafe_b64encode(raw).rstrip(b"=")
