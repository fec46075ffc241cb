"""Resources: what a worker's container asks for and may take, where the experiment says only a part of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

from killpoint.kubernetes.manifests import LIMITS, REQUESTS

_QUANTITY = re.compile(r"^([0-9.]+)(m|[kMGTPE]i?|Ki)?$")
_THOUSANDS = "kMGTPE"


def completed(requests: Mapping[str, str], limits: Mapping[str, str]) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Requests and limits, with ours where none is named, but never a request of ours above a limit that is named.

    Kubernetes takes a limit for the request where there is no other. A limit of ours gives way to a request above it:
    memory always has one.
    """
    ours = {name: quantity for name, quantity in REQUESTS.items() if name not in limits}
    above = {name: max(LIMITS[name], requests.get(name, "0"), key=amount) for name in LIMITS}
    return {**ours, **requests}, {**above, **limits}


def amount(quantity: str) -> Decimal:
    """What a quantity comes to: ``250m``, ``1.5Gi``, ``2``. As the specification has them, so that it can be read."""
    found = _QUANTITY.match(quantity)
    if found is None:
        raise ValueError(f"{quantity!r} is no quantity")
    number, suffix = Decimal(found[1]), found[2] or ""
    if suffix == "m":
        return number / 1000
    base = Decimal(1024 if suffix.endswith("i") else 1000)
    return number * base ** (_THOUSANDS.lower().index(suffix[0].lower()) + 1 if suffix else 0)
