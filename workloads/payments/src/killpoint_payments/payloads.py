"""What clients send, read strictly: a field too many, a wrong type or an odd character is refused, never repaired."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

TEXT_MAX = 200
KEY_MAX = 255
AMOUNT_MAX = 10**12
BODY_BYTES_MAX = 64 * 1024

_CURRENCY = re.compile(r"[A-Z]{3}")
_WORD = re.compile(r"[a-z][a-z0-9.-]{0,62}")


class InvalidPayload(Exception):
    """The request cannot be understood as one of the API's. Says which field, and what would be right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """A charge or a refund. ``amount`` is in minor units of ``currency``."""

    order: str
    amount: int
    currency: str
    action: str
    item: str = ""

    def fingerprint(self, kind: str) -> bytes:
        """What must be the same when a key is used again: the endpoint and every field of the payload."""
        parts = (kind, self.order, str(self.amount), self.currency, self.action, self.item)
        # No field holds control characters, so the separator cannot be forged.
        return hashlib.sha256("\x1f".join(parts).encode()).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """Word of something to somebody: one for each order and kind."""

    order: str
    kind: str


def read_payment(body: bytes, *, action: str) -> Payment:
    """A charge or refund from the request's body; ``action`` is what it is called unless the body says."""
    fields = _fields(body, required=("order", "amount", "currency"), optional=("action", "item"))
    return Payment(
        order=_text(fields, "order"),
        amount=_amount(fields),
        currency=_matching(fields, "currency", _CURRENCY, "three capital letters, such as EUR"),
        action=_matching(fields, "action", _WORD, "a lower-case word") if "action" in fields else action,
        item=_text(fields, "item", empty=True) if "item" in fields else "",
    )


def read_notification(body: bytes) -> Notification:
    """A notification from the request's body."""
    fields = _fields(body, required=("order", "kind"), optional=())
    return Notification(order=_text(fields, "order"), kind=_matching(fields, "kind", _WORD, "a lower-case word"))


def read_key(header: bytes | None) -> str | None:
    """The value of ``Idempotency-Key``, or None when there is none."""
    if header is None:
        return None
    key = header.decode("latin-1")
    if not key or len(key) > KEY_MAX or not key.isascii() or not key.isprintable():
        raise InvalidPayload(f"Idempotency-Key: 1 to {KEY_MAX} printable ASCII characters")
    return key


def glimpse(body: bytes, *, action_field: str, action: str) -> tuple[str, str]:
    """Action and order as far as an invalid body shows them, for the request log."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return action, ""
    if not isinstance(fields, dict):
        return action, ""
    return _shown(fields.get(action_field)) or action, _shown(fields.get("order"))


def _shown(value: object) -> str:
    return value if isinstance(value, str) and len(value) <= TEXT_MAX and value.isprintable() else ""


def _fields(body: bytes, *, required: tuple[str, ...], optional: tuple[str, ...]) -> Mapping[str, object]:
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidPayload("the body must be a JSON object in UTF-8") from error
    if not isinstance(fields, dict):
        raise InvalidPayload("the body must be a JSON object")
    for name in required:
        if name not in fields:
            raise InvalidPayload(f"{name}: is missing")
    if len(fields) > len(required):
        unknown = sorted(fields.keys() - {*required, *optional})
        if unknown:
            raise InvalidPayload(f"{', '.join(map(repr, unknown))}: not a field of this request")
    return fields


def _text(fields: Mapping[str, object], name: str, *, empty: bool = False) -> str:
    value = fields[name]
    if isinstance(value, str) and len(value) <= TEXT_MAX and value.isprintable() and (value or empty):
        return value
    raise InvalidPayload(f"{name}: {'at most' if empty else '1 to'} {TEXT_MAX} printable characters")


def _matching(fields: Mapping[str, object], name: str, pattern: re.Pattern[str], right: str) -> str:
    value = fields[name]
    if isinstance(value, str) and pattern.fullmatch(value):
        return value
    raise InvalidPayload(f"{name}: {right}")


def _amount(fields: Mapping[str, object]) -> int:
    value = fields["amount"]
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= AMOUNT_MAX:
        return value
    raise InvalidPayload(f"amount: a whole number of minor units, 1 to {AMOUNT_MAX}")
