"""The payments service beside the harness: read through its ledger, restarted on the same ports, gone at the end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from killpoint.databases.administration import PAYMENTS, Databases
from killpoint.databases.server import Server
from killpoint.local.environments import WorkerEnvironment
from killpoint.local.errors import PaymentsNotStarted
from killpoint.local.payments_process import PaymentsProcess, PaymentsSettings
from killpoint.local.processes import at_home_below
from killpoint.local.workloads import Workloads
from killpoint.model.evidence import RequestOutcome
from killpoint.model.tokens import mint_token
from killpoint.payments import PaymentsLedger
from killpoint.ports import LedgerUnavailableError
from tests.integration.local import rig

pytestmark = [pytest.mark.anyio, pytest.mark.integration]


async def test_the_ledger_shows_what_a_minted_token_charged(
    server: Server, workloads: Workloads, tmp_path: Path
) -> None:
    async with _payments(server, workloads, tmp_path) as payments, _ledger(payments) as ledger:
        before = await ledger.view(["run-a", "run-b"])
        charged = await _charge(payments, run="run-a", key="k")
        replayed = await _charge(payments, run="run-a", key="k")
        after = await ledger.view(["run-a", "run-b"])
        boot = await ledger.incarnation()

    assert before["run-a"].effects == ()
    (effect,) = after["run-a"].effects
    assert (effect.id, effect.run, effect.attempt, effect.amount) == (charged["id"], "run-a", "run-a.1", 4900)
    assert replayed["id"] == charged["id"]
    assert [request.outcome for request in after["run-a"].requests] == [
        RequestOutcome.COMMITTED,
        RequestOutcome.REPLAYED,
    ]
    assert (after["run-b"].effects, after["run-b"].requests) == ((), ())
    assert after["run-a"].boot == before["run-a"].boot == boot


async def test_a_killed_service_is_there_again_on_the_same_ports(
    server: Server, workloads: Workloads, tmp_path: Path
) -> None:
    async with _payments(server, workloads, tmp_path) as payments, _ledger(payments) as ledger:
        url, admin_url = payments.url, payments.admin_url
        charged = await _charge(payments, run="run-c", key=None)
        before = await ledger.view(["run-c"])
        _kill_service(tmp_path)
        after = None
        while after is None or after["run-c"].boot == before["run-c"].boot:
            try:
                after = await ledger.view(["run-c"])
            except LedgerUnavailableError:
                await asyncio.sleep(0.05)

        assert (payments.url, payments.admin_url) == (url, admin_url)
        assert payments.restarts == 1
        assert [effect.id for effect in after["run-c"].effects] == [charged["id"]]
        assert payments.fault is None


async def test_a_service_that_dies_again_and_again_is_given_up_in_words(
    server: Server, workloads: Workloads, tmp_path: Path
) -> None:
    async with (
        _payments(server, workloads, tmp_path, restarts_max=1) as payments,
        _ledger(payments) as ledger,
    ):
        first = _service(tmp_path)
        _kill_service(tmp_path)
        await rig.eventually(lambda: _service(tmp_path) not in (first, None), what="restarted")
        _kill_service(tmp_path)
        await rig.eventually(lambda: payments.fault, what="given up")
        with pytest.raises(LedgerUnavailableError, match=f"{payments.admin_url} does not answer"):
            await ledger.view(["run-d"])

    assert payments.fault == "died 2 times, at last: killed by SIGKILL"


async def test_nothing_of_it_is_left_at_the_end(server: Server, workloads: Workloads, tmp_path: Path) -> None:
    async with _payments(server, workloads, tmp_path) as payments:
        during = at_home_below(tmp_path)
        url = payments.url
    async with httpx.AsyncClient() as client:
        with pytest.raises(httpx.ConnectError):
            await client.get(f"{url}/healthz")

    assert len(during) >= 2
    assert at_home_below(tmp_path) == ()


async def test_a_service_that_cannot_start_says_why(server: Server, workloads: Workloads, tmp_path: Path) -> None:
    settings = replace(await _settings(server, workloads, tmp_path), database="postgresql://nobody@127.0.0.1:9/none")
    payments = PaymentsProcess(settings)
    with pytest.raises(PaymentsNotStarted, match="the payments service did not start: exit 3") as failed:
        await payments.start()

    assert "payments.log" in failed.value.remedy
    assert failed.value.detail
    assert at_home_below(tmp_path) == ()


@asynccontextmanager
async def _payments(
    server: Server, workloads: Workloads, folder: Path, *, restarts_max: int = 5
) -> AsyncIterator[PaymentsProcess]:
    payments = PaymentsProcess(replace(await _settings(server, workloads, folder), restarts_max=restarts_max))
    await payments.start()
    try:
        yield payments
    finally:
        await payments.stop()


async def _settings(server: Server, workloads: Workloads, folder: Path) -> PaymentsSettings:
    """In the tests' own environment, which has what the service needs."""
    environment = WorkerEnvironment(
        project="payments", python=Path(sys.executable), sources=workloads.sources("payments")
    )
    async with Databases(server) as all_of_them:
        database = await all_of_them.ensure_service(PAYMENTS)
    return PaymentsSettings(environment=environment, database=database, folder=folder, user=os.environ)


def _ledger(payments: PaymentsProcess) -> PaymentsLedger:
    return PaymentsLedger(url=payments.admin_url, token=payments.settings.admin_token)


async def _charge(payments: PaymentsProcess, *, run: str, key: str | None) -> dict[str, object]:
    token = mint_token(
        payments.settings.signing_key, experiment="test", tenant=f"tenant-{run}", run=run, attempt=f"{run}.1"
    )
    headers = {"Authorization": f"Bearer {token}", **({"Idempotency-Key": key} if key else {})}
    async with httpx.AsyncClient(base_url=payments.url, headers=headers, timeout=20) as client:
        answer = await client.post("/v1/charges", json={"order": "order-1", "amount": 4900, "currency": "EUR"})
        answer.raise_for_status()
        document: dict[str, object] = answer.json()
        return document


def _service(folder: Path) -> int | None:
    """The pid of the service itself, as its ready file says."""
    ready = folder / "payments-ready.json"
    return int(json.loads(ready.read_text())["pid"]) if ready.exists() else None


def _kill_service(folder: Path) -> None:
    pid = _service(folder)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
