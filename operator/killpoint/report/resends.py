"""Why an effect came once or twice, from the request log: was it asked for again, and under which key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from enum import StrEnum

from killpoint.model.evidence import RequestOutcome
from killpoint.model.summary import TrialRecord
from killpoint.report.words import count, listing

LANDED = frozenset({RequestOutcome.COMMITTED, RequestOutcome.REPLAYED})


class Resend(StrEnum):
    """What the request log shows of an action in a trial; the value completes "the charge was …"."""

    UNKNOWN = "not known: the ledger was not read"
    NOT_SENT = "never sent"
    ONCE = "sent once"
    WITHOUT_KEY = "sent again without a key"
    NEW_KEY = "sent again under a new key"
    SAME_KEY = "sent again under the same key"


def resend(record: TrialRecord, action: str) -> Resend:
    """How an action was asked for; with several orders, the order that was asked for most often says it."""
    ledger = record.evidence.ledger
    if ledger is None:
        return Resend.UNKNOWN
    landed = [request for request in ledger.requests if request.action == action and request.outcome in LANDED]
    if not landed:
        return Resend.NOT_SENT
    order, sent = Counter(request.order for request in landed).most_common(1)[0]
    if sent == 1:
        return Resend.ONCE
    keys = [request.key for request in landed if request.order == order]
    if None in keys:
        return Resend.WITHOUT_KEY
    return Resend.SAME_KEY if len(set(keys)) == 1 else Resend.NEW_KEY


def resend_words(records: Collection[TrialRecord], action: str, *, part: bool = False) -> str:
    """One sentence: "The charge was sent again without a key in 20 trials and sent again under a new key in 19".

    Empty where no ledger was read. ``part``: the sentence follows one that counts these trials among others, and
    must not be read as one about those.
    """
    seen = Counter(resend(record, action) for record in records)
    seen.pop(Resend.UNKNOWN, None)
    if not seen:
        return ""
    (most, number), *others = seen.most_common()
    if not others and number == len(records):
        return f"The {action} was {most} {_in_all(number, part=part)}."
    first = f"{most} in {count(number, 'trial')}" if number > 1 else f"{most} in one trial"
    return f"The {action} was {listing([first, *(f'{word} in {times}' for word, times in others)])}."


def _in_all(number: int, *, part: bool) -> str:
    if part:
        return f"in each of the {number:,}" if number > 1 else "in that one"
    return "in every trial" if number > 1 else "in its one trial"
