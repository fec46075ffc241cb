"""Interrupts: a command that is told to end first ends what it has started."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from killpoint.cli.exits import Exit, Stop

T = TypeVar("T")


def interruptible(work: Coroutine[Any, Any, T], message: str) -> T:
    """Run to the end. SIGTERM and SIGHUP end it as Ctrl-C does: everything that was started is ended first.

    Raises Stop: with this message, unless the work has one of its own for its end.
    """

    async def guarded() -> T:
        task = asyncio.ensure_future(work)
        for number in (signal.SIGTERM, signal.SIGHUP):  # a closed terminal ends it in order, too
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        return await task

    try:
        return asyncio.run(guarded())
    except (KeyboardInterrupt, asyncio.CancelledError) as error:
        raise Stop(Exit.INTERRUPTED, message) from error
