"""Database sessions that each carry one prepared statement at a time, driven straight from the event loop.

It does what a connection pool does, with less between a request and its statement: libpq is fed and read by callbacks
(``psycopg.pq``), so that a commit costs one write and one read, no task and no lock. A statement that was sent is
always read to its end: nobody who stops waiting for it can cancel it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import psycopg
from psycopg import pq

Values = Sequence[bytes | None]
Rows = list[tuple[bytes | None, ...]]

WAITING_MAX = 10_000
RECONNECT_SECONDS_MAX = 5.0


class StatementFailed(Exception):
    """The database refused the statement and rolled its transaction back."""

    def __init__(self, *, sqlstate: str, message: str) -> None:
        super().__init__(f"{sqlstate}: {message}")
        self.sqlstate = sqlstate


class SessionLost(Exception):
    """The session broke while its statement ran: whether the transaction committed is not known here."""

    def __init__(self, backend: int) -> None:
        super().__init__(f"the session of backend {backend} broke while a statement ran")
        self.backend = backend


class NoSession(Exception):
    """No statement was sent: there is no session to send it on, or too many wait for one."""


Failure = StatementFailed | SessionLost | NoSession
Ended = Callable[[Failure | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSpec:
    """How each session is opened, and what it prepares."""

    database_url: str
    application_name: str
    statements: Mapping[bytes, str]
    """Name → SQL, prepared once in each session."""
    statement_seconds_max: int = 30

    async def connect(self) -> psycopg.AsyncConnection[tuple[object, ...]]:
        """Open one session in autocommit mode with every statement prepared."""
        connection = await psycopg.AsyncConnection.connect(
            self.database_url,
            autocommit=True,
            application_name=self.application_name,
            connect_timeout=5,
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
        )
        await connection.execute(f"SET statement_timeout = '{self.statement_seconds_max}s'".encode())
        for name, statement in self.statements.items():
            await connection.execute(b'PREPARE "%s" AS %s' % (name, statement.encode()))
        return connection


@dataclass(slots=True)
class _Call:
    name: bytes
    values: Values
    answer: asyncio.Future[Rows]
    ended: Ended | None

    def settle(self, outcome: Rows | Failure) -> None:
        """Say that it is over. Whoever waited may have been cancelled; the statement ran to its end all the same."""
        failure = outcome if isinstance(outcome, Exception) else None
        if self.ended is not None:
            self.ended(failure)
        if self.answer.done():
            return
        if failure is not None:
            self.answer.set_exception(failure)
        elif not isinstance(outcome, Exception):
            self.answer.set_result(outcome)


class Lanes:
    """A fixed number of sessions, and the statements that wait for one of them in the order of their arrival."""

    def __init__(self, spec: SessionSpec, *, count: int) -> None:
        self._spec = spec
        self._count = count
        self._open: set[_Lane] = set()
        self._idle: list[_Lane] = []
        self._waiting: deque[_Call] = deque()
        self._reconnecting: set[asyncio.Task[None]] = set()
        self._closed = False

    async def open(self) -> None:
        """Open every session, or raise what psycopg raised for the first that could not be opened."""
        opening = [asyncio.ensure_future(self._spec.connect()) for _ in range(self._count)]
        for done in await asyncio.gather(*opening, return_exceptions=True):
            if isinstance(done, BaseException):
                raise done
            self._add(done)

    async def close(self) -> None:
        """Close every session. What still waits is told that there is none."""
        self._closed = True
        for task in self._reconnecting:
            task.cancel()
        lanes, self._open = self._open, set()
        self._idle.clear()
        for lane in lanes:
            await lane.close()
        self._refuse_waiting()

    @property
    def usable(self) -> bool:
        """Whether at least one session is open."""
        return bool(self._open)

    def call(self, name: bytes, values: Values, *, ended: Ended | None = None) -> asyncio.Future[Rows]:
        """Run the statement ``name`` as a transaction of its own; the future has its rows, in text format.

        Raises through the future: :class:`StatementFailed`, :class:`SessionLost`, :class:`NoSession`. ``ended`` is
        called with the failure, or None, when the transaction is over: a cancelled future does not bring it forward.
        """
        call = _Call(name, values, asyncio.get_running_loop().create_future(), ended)
        if self._idle:
            self._idle.pop().send(call)
        elif self._open and len(self._waiting) < WAITING_MAX:
            self._waiting.append(call)
        else:
            call.settle(NoSession("no database session is free"))
        return call.answer

    def freed(self, lane: _Lane) -> None:
        """Give ``lane`` the next statement that waits, or let it rest."""
        if self._waiting:
            lane.send(self._waiting.popleft())
        else:
            self._idle.append(lane)

    def broken(self, lane: _Lane) -> None:
        """Take ``lane`` out and open another session in its stead."""
        self._open.discard(lane)
        if lane in self._idle:
            self._idle.remove(lane)
        if not self._open:
            self._refuse_waiting()
        if not self._closed:
            task = asyncio.get_running_loop().create_task(self._reconnect(lane))
            self._reconnecting.add(task)
            task.add_done_callback(self._reconnecting.discard)

    async def _reconnect(self, lane: _Lane) -> None:
        await lane.close()
        delay_seconds = 0.05
        while True:
            try:
                connection = await self._spec.connect()
            except psycopg.Error:
                # The database is away. Requests are refused meanwhile, and readiness says so.
                await asyncio.sleep(delay_seconds)
                delay_seconds = min(delay_seconds * 2, RECONNECT_SECONDS_MAX)
            else:
                self._add(connection)
                return

    def _add(self, connection: psycopg.AsyncConnection[tuple[object, ...]]) -> None:
        lane = _Lane(connection, self)
        self._open.add(lane)
        self.freed(lane)

    def _refuse_waiting(self) -> None:
        while self._waiting:
            self._waiting.popleft().settle(NoSession("the database sessions are gone"))


class _Lane:
    """One session. Its socket is watched for as long as it is open."""

    def __init__(self, connection: psycopg.AsyncConnection[tuple[object, ...]], lanes: Lanes) -> None:
        self._connection = connection
        self._pg = connection.pgconn
        self._lanes = lanes
        self._loop = asyncio.get_running_loop()
        self._socket = self._pg.socket
        self._backend = self._pg.backend_pid
        self._call: _Call | None = None
        self._rows: Rows | None = None
        self._error: StatementFailed | None = None
        self._fatal = False
        self._loop.add_reader(self._socket, self._readable)

    def send(self, call: _Call) -> None:
        """Send a statement; its future is settled by what the session answers."""
        self._call = call
        try:
            self._pg.send_query_prepared(call.name, call.values)
            self._flush()
        except psycopg.Error:
            self._break()

    async def close(self) -> None:
        """Stop watching the session and end it."""
        self._unwatch()
        with contextlib.suppress(psycopg.Error):  # it may be broken already: then it is ended as well as can be
            await self._connection.close()

    def _flush(self) -> None:
        if self._pg.flush():
            self._loop.add_writer(self._socket, self._writable)

    def _writable(self) -> None:
        self._loop.remove_writer(self._socket)
        try:
            self._flush()
        except psycopg.Error:
            self._break()

    def _readable(self) -> None:
        try:
            self._pg.consume_input()
            while self._call is not None and not self._pg.is_busy():
                result = self._pg.get_result()
                if result is None:
                    self._finish()
                else:
                    self._take(result)
        except psycopg.Error:
            self._break()

    def _take(self, result: pq.abc.PGresult) -> None:
        if result.status == pq.ExecStatus.TUPLES_OK:
            columns = range(result.nfields)
            self._rows = [tuple(result.get_value(row, column) for column in columns) for row in range(result.ntuples)]
            return
        # A session that is ended from outside may have committed just before: that is no plain refusal.
        self._fatal = result.error_field(pq.DiagnosticField.SEVERITY_NONLOCALIZED) in {b"FATAL", b"PANIC"}
        sqlstate = result.error_field(pq.DiagnosticField.SQLSTATE) or b""
        message = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b"no message"
        self._error = StatementFailed(sqlstate=sqlstate.decode(), message=message.decode(errors="replace"))

    def _finish(self) -> None:
        if self._fatal or self._pg.status == pq.ConnStatus.BAD:
            # libpq reports a lost connection as an error result. What the transaction did is not known from it.
            self._break()
            return
        call, rows, error = self._call, self._rows, self._error
        self._call = self._rows = self._error = None
        if call is not None:
            call.settle(error if error is not None else rows if rows is not None else [])
        self._lanes.freed(self)

    def _break(self) -> None:
        call, self._call = self._call, None
        self._unwatch()
        self._lanes.broken(self)
        if call is not None:
            call.settle(SessionLost(self._backend))

    def _unwatch(self) -> None:
        if self._socket >= 0:
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket = -1
