"""Deletion: what is done before the object of an unfinished experiment may go. Bounded: it goes in any case."""

from __future__ import annotations

import asyncio
import logging

from killpoint.controller.freeing import drop_database, free_children
from killpoint.controller.roster import Roster
from killpoint.controller.shared import Shared
from killpoint.controller.subjects import Body, Subject, journal_of
from killpoint.controller.supervision import in_words
from killpoint.ports import SubstrateUnavailableError

CLOSE_SECONDS_MAX = 10.0
"""How long its daemon may take to leave."""
FREE_SECONDS_MAX = 15.0
"""How long its pods and its database may take to be freed."""

_log = logging.getLogger(__name__)


async def let_go(body: Body, *, roster: Roster, shared: Shared) -> None:
    """Free all that an experiment holds. Pods that this does not get at are freed as orphans, when their turn comes."""
    subject = Subject.of(body)
    seat = roster.seat(subject.uid)
    try:
        if seat is not None:
            seat.leave()
            async with asyncio.timeout(CLOSE_SECONDS_MAX):
                await seat.closed()
    except TimeoutError:
        _log.warning("experiment %s is deleted, and its last pass has not ended", subject)
    try:
        async with asyncio.timeout(FREE_SECONDS_MAX):
            await asyncio.gather(
                free_children(shared.requests(subject.namespace), subject.uid),
                drop_database(shared, subject, journal_of(body)),
            )
    except (SubstrateUnavailableError, TimeoutError) as error:
        _log.warning("experiment %s was not freed as a whole: %s", subject, in_words(error))
