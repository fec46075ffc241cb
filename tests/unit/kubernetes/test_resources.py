"""What a worker asks for and may take, given the part that the experiment says."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import pytest

from killpoint.kubernetes.manifests import LIMITS, REQUESTS
from killpoint.kubernetes.resources import amount, completed


@pytest.mark.parametrize(
    ("requests", "limits", "asked", "allowed"),
    [
        ({}, {}, dict(REQUESTS), dict(LIMITS)),
        ({"memory": "64Mi"}, {}, {"cpu": "50m", "memory": "64Mi"}, {"memory": "1Gi"}),
        ({"memory": "2Gi"}, {}, {"cpu": "50m", "memory": "2Gi"}, {"memory": "2Gi"}),
        ({}, {"memory": "64Mi"}, {"cpu": "50m"}, {"memory": "64Mi"}),
        ({}, {"cpu": "20m"}, {"memory": "192Mi"}, {"cpu": "20m", "memory": "1Gi"}),
        ({"cpu": "2"}, {"memory": "4Gi", "cpu": "2"}, {"cpu": "2"}, {"memory": "4Gi", "cpu": "2"}),
    ],
)
def test_ours_are_never_against_what_is_named(
    requests: Mapping[str, str], limits: Mapping[str, str], asked: Mapping[str, str], allowed: Mapping[str, str]
) -> None:
    assert completed(requests, limits) == (asked, allowed)


@pytest.mark.parametrize(
    ("quantity", "comes_to"),
    [
        ("250m", Decimal("0.25")),
        ("2", Decimal(2)),
        (".5k", Decimal(500)),
        ("1.5Gi", Decimal(3) * 2**29),
        ("1G", Decimal(10**9)),
        ("1Ki", Decimal(1024)),
        ("3E", Decimal(3 * 10**18)),
    ],
)
def test_quantities_are_compared_as_kubernetes_does(quantity: str, comes_to: Decimal) -> None:
    assert amount(quantity) == comes_to


def test_what_is_no_quantity_is_said() -> None:
    with pytest.raises(ValueError, match="'lots' is no quantity"):
        amount("lots")
