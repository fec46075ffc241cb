"""The steps of workflow ``charge``: prepare → charge → finalize."""

from __future__ import annotations

from dataclasses import dataclass

from killpoint_steps.keys import key_for, saved_key_for
from killpoint_worker import AssignmentError, Context, Order, Receipt

CHARGE_POINTS = (
    "prepare.before",
    "prepare.after",
    "charge.before",
    "charge.sent",
    "charge.after",
    "charge.recorded",
    "finalize.before",
    "finalize.after",
)
"""The points of workflow ``charge``, in the order in which an undisturbed run passes them."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What prepare leaves to the charge: the saved key, for the framework to keep in its state."""

    key: str | None


class Steps:
    """The steps of one attempt. They keep nothing: what is to survive is returned, for the framework to save."""

    def __init__(self, context: Context) -> None:
        orders = context.assignment.job.orders
        if len(orders) != 1:
            raise AssignmentError(f"workflow charge pays one order, the job has {len(orders)}")
        self._order = orders[0]
        self._run = context.assignment.run
        self._kind = context.assignment.coordinates.key
        self._points = context.points
        self._payments = context.require_payments()

    @property
    def order(self) -> Order:
        """The order that is paid."""
        return self._order

    def prepare(self) -> Prepared:
        """Make the key that is saved before the charge, for the kinds that save one."""
        self._points.passed("prepare.before")
        prepared = Prepared(saved_key_for(self._kind, run=self._run))
        self._points.passed("prepare.after")
        return prepared

    def charge(self, saved_key: str | None) -> Receipt:
        """Charge the order once per execution. ``saved_key`` is what prepare returned, read back from the state."""
        key = key_for(self._kind, run=self._run, order=self._order.id, saved=saved_key)
        self._points.passed("charge.before")
        receipt = self._payments.charge(
            order=self._order.id,
            amount=self._order.amount,
            currency=self._order.currency,
            key=key,
            on_sent=lambda: self._points.passed("charge.sent"),
        )
        self._points.passed("charge.after")
        return receipt

    def recorded(self, step: str) -> None:
        """Say that the store holds ``step``'s result. To be called where that is a fact, not where it is expected."""
        self._points.passed(f"{step}.recorded")

    def finalize(self, receipt: Receipt) -> None:
        """Notify that the order is paid; payments keeps a second notification without effect."""
        self._points.passed("finalize.before")
        if not receipt.id:
            raise ValueError("finalize was reached without a charge's id")
        self._payments.notify(order=self._order.id, kind="finalize")
        self._points.passed("finalize.after")
