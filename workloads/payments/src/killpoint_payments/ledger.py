"""The ledger: commits a request's effect, answer and log line together, and tells what it holds.

A request is in flight from :meth:`Ledger.commit` (its body has been read) until its transaction has ended in the
database, whatever becomes of the client, of the task that serves it, or of the session that carries it.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from killpoint_payments.inflight import InFlight
from killpoint_payments.lanes import Failure, Lanes, NoSession, Rows, SessionLost, SessionSpec, StatementFailed, Values
from killpoint_payments.payloads import Notification, Payment
from killpoint_payments.tokens import Bearer

READ_LANES = 2
"""Sessions for looking up, apart from those that commit: a ledger whose writers all wait can still be read."""
RECHECK_SECONDS = 0.2
CLEARING_MAX = 1_000
"""Failed requests that wait for their log line at once; beyond that they are counted as unlogged."""

_COMMITS = {
    b"effect": "SELECT outcome, status, body FROM commit_effect("
    "$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
    b"notification": "SELECT outcome, status, body FROM commit_notification($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    b"log": "INSERT INTO requests (tenant, run, attempt, action, order_id, key, outcome, status, received_ms,"
    " answered_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9,"
    " (extract(epoch FROM clock_timestamp()) * 1000)::bigint) RETURNING number",
}
_READS = {
    b"by-order": "SELECT body FROM effects WHERE tenant = $1 AND kind = $2 AND order_id = $3 ORDER BY at_ms, id",
    b"by-run": "SELECT body FROM effects WHERE tenant = $1 AND kind = $2 AND run = $3 ORDER BY at_ms, id",
    b"by-key": "SELECT e.body FROM effects e JOIN answers a ON a.effect = e.id"
    " WHERE a.tenant = $1 AND e.kind = $2 AND a.key = $3",
    # One statement, so one snapshot: an effect and the line of its request are seen together or not at all.
    b"evidence": """
        SELECT asked.run,
               (SELECT coalesce(json_agg(json_build_object(
                    'id', e.id, 'action', e.action, 'order', e.order_id, 'item', e.item, 'amount', e.amount,
                    'currency', e.currency, 'key', e.key, 'run', e.run, 'attempt', e.attempt, 'at', e.at_ms)
                    ORDER BY e.at_ms, e.id), '[]')
                  FROM effects e WHERE e.run = asked.run),
               (SELECT coalesce(json_agg(json_build_object(
                    'attempt', r.attempt, 'action', r.action, 'order', r.order_id, 'key', r.key,
                    'outcome', r.outcome, 'status', r.status, 'effect', r.effect,
                    'received', r.received_ms, 'answered', r.answered_ms) ORDER BY r.number), '[]')
                  FROM requests r WHERE r.run = asked.run)
          FROM json_array_elements_text($1::json) AS asked (run)""",
    b"session": "SELECT count(*) FROM pg_stat_activity WHERE pid = $1::int AND application_name = $2",
    b"committed": "SELECT count(*) FROM effects WHERE id = $1",
    b"alive": "SELECT 1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A request whose body has been read. ``received_ms`` is the service's clock at that moment."""

    id: str
    kind: str
    bearer: Bearer
    payload: Payment | Notification
    key: str | None
    received_ms: int

    @property
    def action(self) -> str:
        """What the ledger calls it: a notification's action is its kind."""
        return self.payload.kind if isinstance(self.payload, Notification) else self.payload.action


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A request that never reached the ledger, for the log."""

    bearer: Bearer
    kind: str
    action: str
    order: str
    key: str | None
    outcome: str
    status: int
    received_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What became of an intent: ``outcome`` as the request log has it; ``body`` is JSON for committed and replayed."""

    outcome: str
    status: int
    body: bytes


class Ledger:
    """Commits and reads, on sessions that carry this boot's name."""

    def __init__(self, *, database_url: str, application_name: str, connections: int) -> None:
        self.in_flight = InFlight()
        self.outcomes: Counter[tuple[str, str]] = Counter()
        """(kind of request, outcome) → how many since this boot."""
        self.unlogged = 0
        """Requests that have no line in the log: nothing came of them, and the database was not there to say so."""
        self._application_name = application_name
        self._commits = Lanes(
            SessionSpec(database_url=database_url, application_name=application_name, statements=_COMMITS),
            count=connections,
        )
        self._reads = Lanes(
            SessionSpec(database_url=database_url, application_name=application_name, statements=_READS),
            count=READ_LANES,
        )
        self._clearing: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Open every session; raises what psycopg raises when that fails."""
        await self._commits.open()
        await self._reads.open()

    async def close(self) -> None:
        """Close every session."""
        for task in self._clearing:
            task.cancel()
        await self._commits.close()
        await self._reads.close()

    async def alive(self) -> bool:
        """Whether the database answers now."""
        try:
            await self._reads.call(b"alive", ())
        except (NoSession, SessionLost, StatementFailed):
            return False
        return self._commits.usable

    async def commit(self, intent: Intent) -> Answer:
        """Commit ``intent`` or find out why not.

        Raises :class:`StatementFailed` or :class:`NoSession` (nothing was committed), :class:`SessionLost` (unknown).
        """
        run = intent.bearer.run
        self.in_flight.enter(run)

        def ended(failure: Failure | None) -> None:
            if failure is None:
                self.in_flight.leave(run)
            else:
                self._clear_up(intent, failure)

        name, values = _commit_call(intent)
        ((outcome, status, body),) = await self._commits.call(name, values, ended=ended)
        answer = Answer(outcome=(outcome or b"").decode(), status=int(status or 0), body=body or b"")
        self.outcomes[intent.kind, answer.outcome] += 1
        return answer

    async def log(self, refusal: Refusal) -> None:
        """Write the log line of a request that was refused before it could have an effect. Raises as ``commit``."""
        run = refusal.bearer.run
        self.outcomes[refusal.kind, refusal.outcome] += 1
        self.in_flight.enter(run)

        def ended(failure: Failure | None) -> None:
            self.unlogged += failure is not None
            self.in_flight.leave(run)

        await self._commits.call(b"log", _log_values(refusal), ended=ended)

    async def look_up(self, *, tenant: str, kind: str, by: str, value: str) -> list[bytes]:
        """The bodies of a tenant's effects of one kind, oldest first; ``by`` is order, run or key."""
        rows = await self._reads.call(b"by-" + by.encode(), (tenant.encode(), kind.encode(), value.encode()))
        return [body for (body,) in rows if body is not None]

    async def evidence(self, runs: Sequence[str]) -> dict[str, dict[str, object]]:
        """What the ledger holds of each run, and how many of its requests are in flight.

        In flight is the larger of the counts before and after the reading: with 0, everything that ever arrived of
        the run before the question is in what was read.
        """
        before = {run: self.in_flight.of(run) for run in runs}
        rows = await self._reads.call(b"evidence", (json.dumps(runs).encode(),))
        found: dict[str, dict[str, object]] = {}
        for run, effects, requests in rows:
            name = (run or b"").decode()
            found[name] = {
                "effects": json.loads(effects or b"[]"),
                "requests": json.loads(requests or b"[]"),
                "inFlight": max(before[name], self.in_flight.of(name)),
            }
        return found

    def _clear_up(self, intent: Intent, failure: Failure) -> None:
        self.outcomes[intent.kind, "failed"] += 1
        if len(self._clearing) >= CLEARING_MAX:
            self.unlogged += 1
            self.in_flight.leave(intent.bearer.run)
            return
        task = asyncio.get_running_loop().create_task(self._find_out(intent, failure))
        self._clearing.add(task)
        task.add_done_callback(self._clearing.discard)

    async def _find_out(self, intent: Intent, failure: Failure) -> None:
        """Log a failed request, once its transaction has surely ended; only then is it no longer in flight."""
        while True:
            try:
                if isinstance(failure, SessionLost):
                    await self._await_end(failure.backend)
                if not await self._holds(intent.id):
                    await self._commits.call(b"log", _log_values(_failed(intent)))
                break
            except (NoSession, SessionLost, StatementFailed):
                await asyncio.sleep(RECHECK_SECONDS)  # the database is away: until it is back nothing can be known
        self.in_flight.leave(intent.bearer.run)

    async def _await_end(self, backend: int) -> None:
        values = (str(backend).encode(), self._application_name.encode())
        while _count(await self._reads.call(b"session", values)):  # noqa: ASYNC110 - the database tells nobody of its end
            await asyncio.sleep(RECHECK_SECONDS)

    async def _holds(self, effect: str) -> bool:
        return _count(await self._reads.call(b"committed", (effect.encode(),))) > 0


def _count(rows: Rows) -> int:
    ((number,),) = rows
    return int(number or 0)


def _commit_call(intent: Intent) -> tuple[bytes, Values]:
    """Name and parameters of the statement that commits ``intent``.

    The body is passed without its last member: when it was committed is the database's to tell.
    """
    bearer, payload = intent.bearer, intent.payload
    who = (bearer.tenant.encode(), bearer.run.encode(), bearer.attempt.encode())
    key = None if intent.key is None else intent.key.encode()
    received = str(intent.received_ms).encode()
    order = payload.order.encode()
    if isinstance(payload, Notification):
        body = {"id": intent.id, "order": payload.order, "kind": payload.kind, "run": bearer.run}
        values = (intent.id.encode(), *who, payload.kind.encode(), order, key, received, _open_ended(body))
        return b"notification", values
    return b"effect", (
        intent.id.encode(),
        intent.kind.encode(),
        *who,
        payload.action.encode(),
        order,
        payload.item.encode(),
        str(payload.amount).encode(),
        payload.currency.encode(),
        key,
        b"\\x" + payload.fingerprint(intent.kind).hex().encode(),
        received,
        _open_ended(_payment_body(intent.id, payload, bearer.run)),
    )


def _payment_body(effect: str, payment: Payment, run: str) -> dict[str, object]:
    return {
        "id": effect,
        "order": payment.order,
        "amount": payment.amount,
        "currency": payment.currency,
        "action": payment.action,
        "item": payment.item,
        "run": run,
    }


def _open_ended(body: Mapping[str, object]) -> bytes:
    return json.dumps({**body, "status": "succeeded"}, separators=(",", ":"))[:-1].encode() + b',"created":'


def _failed(intent: Intent) -> Refusal:
    return Refusal(
        bearer=intent.bearer,
        kind=intent.kind,
        action=intent.action,
        order=intent.payload.order,
        key=intent.key,
        outcome="failed",
        status=503,
        received_ms=intent.received_ms,
    )


def _log_values(refusal: Refusal) -> Values:
    return (
        refusal.bearer.tenant.encode(),
        refusal.bearer.run.encode(),
        refusal.bearer.attempt.encode(),
        refusal.action.encode(),
        refusal.order.encode(),
        None if refusal.key is None else refusal.key.encode(),
        refusal.outcome.encode(),
        str(refusal.status).encode(),
        str(refusal.received_ms).encode(),
    )
