"""Numbers, times and lists as people read them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS

SHARE_MIN = 0.001
BYTE_MAX = 0xFF
BIDIRECTIONAL = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that turn the order of the text around them."""

# ISO 4217: the currencies whose minor unit is not a hundredth.
MINOR_DIGITS = {"BHD": 3, "CLP": 0, "ISK": 0, "JOD": 3, "JPY": 0, "KRW": 0, "KWD": 3, "OMR": 3, "TND": 3, "VND": 0}


def count(number: int, word: str, plural: str | None = None) -> str:
    """``1 trial``, ``2 trials``, ``1,200 trials``."""
    return f"{number:,} {word if number == 1 else plural or word + 's'}"


def listing(words: Iterable[str], last: str = "and") -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *head, tail = list(words) or [""]
    return f"{', '.join(head)} {last} {tail}" if head else tail


def duration(milliseconds: float) -> str:
    """``812 ms``, ``4.71 s``, ``9 min 37 s``, ``2 h 5 min``."""
    if milliseconds < SECOND_MS:
        return f"{milliseconds:.0f} ms"
    if milliseconds < MINUTE_MS:
        return f"{milliseconds / SECOND_MS:.{2 if milliseconds < 10 * SECOND_MS else 1}f} s"
    if milliseconds < HOUR_MS:
        minutes, seconds = divmod(round(milliseconds / 1000), 60)
        return f"{minutes} min {seconds} s"
    hours, minutes = divmod(round(milliseconds / MINUTE_MS), 60)
    return f"{hours} h {minutes} min"


def since(milliseconds: int, origin_ms: int) -> str:
    """A moment as seconds since another: ``4.870 s``."""
    return f"{(milliseconds - origin_ms) / 1000:.3f} s"


def moment(milliseconds: int) -> datetime:
    """Milliseconds since the epoch as a time in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, tz=UTC)


def day(milliseconds: int) -> str:
    return moment(milliseconds).strftime("%Y-%m-%d")


def minute(milliseconds: int) -> str:
    """``2026-11-30 14:02 UTC``."""
    return moment(milliseconds).strftime("%Y-%m-%d %H:%M UTC")


def clock(milliseconds: int) -> str:
    """``14:06:06.866``, in UTC."""
    return moment(milliseconds).strftime("%H:%M:%S.") + f"{milliseconds % 1000:03d}"


def money(minor: int, currency: str) -> str:
    """``49.00 EUR`` from minor units."""
    digits = MINOR_DIGITS.get(currency, 2)
    return f"{minor / 10**digits:,.{digits}f} {currency}".strip()


def percent(share: float) -> str:
    """``92.6 %``; never rounded to a certainty that the number does not have."""
    if 0 < share < 1:
        share = min(max(share, SHARE_MIN), 1 - SHARE_MIN)
    return f"{share * 100:.1f} %"


def printable(text: str) -> str:
    """A text without control characters: what a terminal would obey, and what XML forbids, is spelled out."""
    return "".join(_spelled(character) for character in text)


def _spelled(character: str) -> str:
    if character in "\n\t" or (character.isprintable() and character not in BIDIRECTIONAL):
        return character
    return f"\\u{ord(character):04x}" if ord(character) > BYTE_MAX else f"\\x{ord(character):02x}"


def shorten(text: str, characters: int) -> str:
    """A text cut to a number of characters, with an ellipsis where something is missing."""
    return text if len(text) <= characters else text[: max(characters - 1, 0)] + "…"
