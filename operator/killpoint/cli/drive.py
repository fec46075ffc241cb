"""Drive an engine on this machine: pass after pass, asleep between them, patient with services that are away."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

from killpoint.cli.exits import Exit, Stop
from killpoint.engine import Engine, Step
from killpoint.ports import (
    FencedError,
    JournalUnavailableError,
    LedgerUnavailableError,
    SubstrateUnavailableError,
)

OUTAGE_SECONDS_MAX = 120.0
"""How long the journal or payments may be away without a break before the command gives up."""
RETRY_SECONDS = 0.5


async def drive(
    engine: Engine,
    *,
    waker: asyncio.Event,
    on_step: Callable[[Step], None],
    given_up: Callable[[], str | None] = lambda: None,
) -> None:
    """Run passes until the run is over. Raises Stop when a service stays away or another killpoint took over.

    ``given_up`` says which service will not come back, and why; every trial without it would be spoiled.
    """
    away_since: float | None = None
    while True:
        if (fault := given_up()) is not None:
            raise Stop(Exit.NOT_EXECUTED, f"{fault}\nThe same command goes on from here.")
        # Cleared before the pass looks: what happens while it looks wakes the next one.
        waker.clear()
        try:
            step = await engine.step()
        except FencedError as error:
            raise Stop(Exit.NOT_EXECUTED, str(error)) from error
        except (JournalUnavailableError, LedgerUnavailableError, SubstrateUnavailableError) as error:
            away_since = away_since if away_since is not None else time.monotonic()
            if time.monotonic() - away_since > OUTAGE_SECONDS_MAX:
                message = f"{error}\nIt was away for {OUTAGE_SECONDS_MAX:.0f} s. The same command goes on from here."
                raise Stop(Exit.NOT_EXECUTED, message) from error
            await asyncio.sleep(RETRY_SECONDS)
            continue
        away_since = None
        on_step(step)
        if step.wake_after_seconds is None:
            return
        if step.wake_after_seconds:
            with suppress(TimeoutError):  # nothing woke it: time itself is the reason for the next pass
                await asyncio.wait_for(waker.wait(), step.wake_after_seconds)
