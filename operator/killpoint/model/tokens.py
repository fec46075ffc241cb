"""Attempt tokens: who a request comes from, signed, so that a worker cannot act for another attempt.

``kp1.<base64url(json)>.<base64url(hmac-sha256(key, "kp1." + base64url(json)))>``, without padding. The payments service
and control read the same form.
"""

from __future__ import annotations

import binascii
import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass

BYTES_MAX = 4096
_PREFIX = b"kp1."


class TokenRefused(ValueError):
    """The token is malformed or was not signed with this key. It never carries the token itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearer:
    """What a valid token says of its sender."""

    experiment: str
    run: str
    attempt: str


def mint_token(signing_key: str, *, experiment: str, tenant: str, run: str, attempt: str) -> str:
    """The bearer token of one attempt: services take its run and its attempt from nothing else."""
    claims = {"e": experiment, "tenant": tenant, "run": run, "attempt": attempt}
    signed = _PREFIX + _encode(json.dumps(claims, separators=(",", ":")).encode())
    return (signed + b"." + _signature(signing_key, signed)).decode()


def read_token(signing_key: str, token: str) -> Bearer:
    """Who a token is of, once its signature holds (compared in constant time). Raises TokenRefused."""
    raw = token.encode()
    signed, _, signature = raw.rpartition(b".")
    if len(raw) > BYTES_MAX or not signed.startswith(_PREFIX):
        raise TokenRefused("the token is not of the form kp1.claims.signature")
    if not hmac.compare_digest(_signature(signing_key, signed), signature):
        raise TokenRefused("the token's signature does not hold")
    try:
        encoded = signed.removeprefix(_PREFIX)
        claims = json.loads(urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4)))
        return Bearer(experiment=str(claims["e"]), run=str(claims["run"]), attempt=str(claims["attempt"]))
    except (ValueError, KeyError, TypeError, binascii.Error) as error:
        raise TokenRefused("the token's claims cannot be read") from error


def _signature(signing_key: str, signed: bytes) -> bytes:
    return _encode(hmac.digest(signing_key.encode(), signed, "sha256"))


def _encode(raw: bytes) -> bytes:
    return urlsafe_b64encode(raw).rstrip(b"=")
