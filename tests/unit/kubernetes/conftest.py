from __future__ import annotations

import pytest

from killpoint.kubernetes import client
from tests.unit.kubernetes.rig import Rig


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setattr(client, "PAUSE_SECONDS", 0.0)
    return Rig()
