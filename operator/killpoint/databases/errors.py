"""What can be wrong with a database server. Each message says what, where and what to do."""

from __future__ import annotations

from killpoint.ports import Impediment


class DatabaseError(Impediment):
    """The server does not do what is needed of it."""


class PostgresUnreachable(DatabaseError):
    """The Postgres of a given DSN does not answer."""


class PostgresRefused(DatabaseError):
    """Postgres answers, and refuses: the login, or the right to do what is needed."""
