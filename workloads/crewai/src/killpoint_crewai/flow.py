"""Workflow ``charge`` as a CrewAI flow. Imports the framework."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from crewai.flow.flow import Flow, listen, start
from pydantic import BaseModel

from killpoint_worker import Receipt

if TYPE_CHECKING:
    from killpoint_crewai.watch import Watch
    from killpoint_steps import Steps

# Else every flow gets a memory that nothing here uses, and with it the framework's vector store: two to seven seconds.
# On the framework's class, not ours: a restore makes a flow of that class from the checkpoint before it makes ours.
Flow._skip_auto_memory = True  # type: ignore[attr-defined]  # noqa: SLF001


class ChargeState(BaseModel):
    """What the flow keeps between its methods."""

    id: str = ""
    """The framework's name for the run: the run's id."""
    key: str | None = None
    """The idempotency key that prepare saved."""
    receipt: dict[str, Any] | None = None
    attachment: Any = None
    """Something that is hard to serialize, where the experiment asks for it (parameter ``payload``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """What the charge step leaves in the state beside its receipt: parameter ``payload``, in attempt ``number``."""

    word: str = "plain"
    number: int = 1

    def attachment(self) -> object:
        """The value. ``unserializable``, a list that contains itself, is only the first attempt's.

        By the time the run is resumed the mended code has been rolled out.
        """
        if self.word == "datetime":
            return datetime.now(UTC)
        if self.word == "unserializable" and self.number == 1:
            endless: list[object] = []
            endless.append(endless)
            return endless
        return None


_Base: TypeAlias = Flow[ChargeState]
"""Made once: it costs the framework more than all that a flow then does."""


def charge_flow(steps: Steps, watch: Watch, payload: Payload) -> type[Flow[ChargeState]]:
    """The flow's class, made anew for each attempt.

    Whatever differs is closed over: an empty subclass of a flow would run no method and say that it succeeded.
    """

    class ChargeFlow(_Base):
        @start()
        def prepare(self) -> None:
            self.state.key = steps.prepare().key

        # A method takes nothing from the one before: after a restore the framework calls it without that result.
        @listen(prepare)
        def charge(self) -> None:
            receipt = steps.charge(self.state.key)
            self.state.receipt = receipt.state()
            self.state.attachment = payload.attachment()
            watch.charged()

        @listen(charge)
        def finalize(self) -> dict[str, Any] | None:
            steps.finalize(Receipt("") if self.state.receipt is None else Receipt.from_state(self.state.receipt))
            return self.state.receipt

    return ChargeFlow
