from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from killpoint_steps import (
    CHARGE_POINTS,
    KEYS,
    Driven,
    MissingSavedKeyError,
    Steps,
    WorkflowVersionError,
    carry_out,
    key_for,
    saved_key_for,
)
from killpoint_worker import (
    Assignment,
    AssignmentError,
    Claim,
    Context,
    Finished,
    Job,
    PaymentsClient,
    Points,
    Receipt,
    TerminationLog,
    Versions,
    Workflow,
)
from tests.unit.worker.test_assignment import DOCUMENT


class Ledger:
    """Payments in memory: a key charges once."""

    def __init__(self) -> None:
        self.charges: list[str | None] = []
        self.notified: set[tuple[str, str]] = set()

    def charge(
        self, *, order: str, amount: int, currency: str, key: str | None, on_sent: Callable[[], None]
    ) -> Receipt:
        assert (order, amount, currency) == ("order-1", 4900, "EUR")
        on_sent()
        if key is not None and key in self.charges:
            return Receipt(f"ch_{self.charges.index(key)}", replayed=True)
        self.charges.append(key)
        return Receipt(f"ch_{len(self.charges) - 1}")

    def notify(self, *, order: str, kind: str) -> None:
        self.notified.add((order, kind))


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def context_for(ledger: Ledger, folder: Path, **changes: object) -> Context:
    assignment = replace(Assignment.from_json(json.dumps(DOCUMENT)), schedule=(), **changes)  # type: ignore[arg-type]
    log = TerminationLog(folder / "log", attempt=assignment.attempt, nonce=assignment.nonce)
    payments = cast("PaymentsClient", ledger)
    return Context(assignment=assignment, points=Points(log), payments=payments, volume=folder)


def plainly(steps: Steps) -> Driven:
    """Drive the steps with no framework at all."""
    receipt = steps.charge(steps.prepare().key)
    steps.recorded("charge")
    steps.finalize(receipt)
    return Driven(receipt=receipt)


def points_in(folder: Path) -> list[str]:
    return [json.loads(line).get("point") for line in (folder / "log").read_text().splitlines()[1:]]


def test_the_points_are_passed_in_the_order_that_is_published(ledger: Ledger, tmp_path: Path) -> None:
    plainly(Steps(context_for(ledger, tmp_path)))
    assert tuple(points_in(tmp_path)) == CHARGE_POINTS


def test_a_run_is_carried_out_once_and_claims_its_charge_each_time(ledger: Ledger, tmp_path: Path) -> None:
    finished = Finished(claims=(Claim(action="charge", order="order-1", effect="ch_0"),))
    assert carry_out(context_for(ledger, tmp_path), plainly) == finished
    assert carry_out(context_for(ledger, tmp_path), plainly) == finished
    assert len(ledger.charges) == 1
    assert points_in(tmp_path) == []


def test_a_run_that_its_driver_did_not_end_is_not_done(ledger: Ledger, tmp_path: Path) -> None:
    def broken(_: Steps) -> Driven:
        raise RuntimeError("the framework stopped short")

    with pytest.raises(RuntimeError, match="stopped short"):
        carry_out(context_for(ledger, tmp_path), broken)
    carry_out(context_for(ledger, tmp_path), plainly)
    assert len(ledger.charges) == 1


def test_a_framework_that_holds_no_receipt_claims_nothing(ledger: Ledger, tmp_path: Path) -> None:
    outcome = carry_out(context_for(ledger, tmp_path), lambda _: Driven(receipt=None))
    assert outcome == Finished(claims=())


def test_a_run_of_another_graph_version_is_not_resumed(ledger: Ledger, tmp_path: Path) -> None:
    def broken(_: Steps) -> Driven:
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        carry_out(context_for(ledger, tmp_path), broken)
    changed = Workflow(name="charge", versions=Versions(graph="9"))
    with pytest.raises(WorkflowVersionError, match="begun by graph version 2"):
        carry_out(context_for(ledger, tmp_path, workflow=changed), plainly)


def test_a_job_of_several_orders_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(AssignmentError, match="pays one order, the job has 0"):
        Steps(context_for(ledger, tmp_path, job=Job()))


def executed(kind: str, saved: str | None) -> str | None:
    return key_for(kind, run="r", order="o", saved=saved)


def test_which_keys_survive_that_the_charge_step_runs_again() -> None:
    again = {}
    for kind in KEYS:
        saved = saved_key_for(kind, run="r")
        first, second = executed(kind, saved), executed(kind, saved)
        again[kind] = first is not None and first == second
    assert [kind for kind, same in again.items() if not same] == ["none", "fresh"]


def test_which_keys_survive_that_prepare_runs_again() -> None:
    changed = {kind for kind in KEYS if saved_key_for(kind, run="r") != saved_key_for(kind, run="r")}
    assert changed == {"saved-random"}


@pytest.mark.parametrize(
    ("kind", "key"), [("stable", "r:charge"), ("derived", "r:charge"), ("order", "o:charge"), ("run-scoped", "r")]
)
def test_what_a_key_is_made_of(kind: str, key: str) -> None:
    assert executed(kind, saved_key_for(kind, run="r")) == key


@pytest.mark.parametrize("kind", ["stable", "saved-random"])
def test_a_saved_key_that_did_not_come_back_is_an_error_and_no_charge(kind: str) -> None:
    with pytest.raises(MissingSavedKeyError, match=kind):
        executed(kind, None)


def test_an_unknown_kind_of_key_is_refused() -> None:
    with pytest.raises(ValueError, match="no-such-key"):
        executed("no-such-key", None)
