"""Numbered SQL migrations, applied once each and in order by whoever holds the advisory lock."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources

import psycopg

from killpoint_payments.settings import CannotServe

# Any number will do that nothing else in the database locks: "kp-paymt" in ASCII.
LOCK = int.from_bytes(b"kp-paymt")
LOCK_SECONDS_MAX = 60

_TABLE = """
CREATE TABLE IF NOT EXISTS migrations (
    number     int         PRIMARY KEY,
    name       text        NOT NULL,
    digest     text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One file ``NNNN_name.sql``. A file that was applied anywhere must never change: its digest is compared."""

    number: int
    name: str
    sql: str

    @property
    def digest(self) -> str:
        """Of the text, in hex."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def migrations() -> tuple[Migration, ...]:
    """The migrations that this version of the service brings, in order."""
    found = []
    for file in resources.files("killpoint_payments").joinpath("migrations").iterdir():
        if file.name.endswith(".sql"):
            number, _, name = file.name.removesuffix(".sql").partition("_")
            found.append(Migration(number=int(number), name=name, sql=file.read_text("utf-8")))
    return tuple(sorted(found, key=lambda migration: migration.number))


def migrate(database_url: str, *, application_name: str) -> list[str]:
    """Bring the database up to this version; returns the names of what was applied now.

    Raises :class:`CannotServe` when the database does not answer, or holds what this version does not know.
    """
    try:
        with psycopg.connect(
            database_url, autocommit=True, connect_timeout=5, application_name=application_name
        ) as connection:
            return _migrate(connection)
    except psycopg.OperationalError as error:
        raise CannotServe(unreachable(error)) from error
    except psycopg.Error as error:
        raise CannotServe(f"the payments database cannot be migrated: {_first_line(error)}") from error


def unreachable(error: psycopg.Error) -> str:
    """A line for a database that does not answer. libpq names host, port and role, never the password."""
    return (
        f"the payments database does not answer: {_first_line(error)}; "
        "check KILLPOINT_PAYMENTS_DATABASE_URL and that Postgres is up"
    )


def _migrate(connection: psycopg.Connection[tuple[object, ...]]) -> list[str]:
    connection.execute(f"SET lock_timeout = '{LOCK_SECONDS_MAX}s'")
    # A lock of the session: it goes with the process, whatever ends it.
    connection.execute("SELECT pg_advisory_lock(%s)", (LOCK,))
    connection.execute(_TABLE)
    applied = {
        int(str(number)): str(digest)
        for number, digest in connection.execute("SELECT number, digest FROM migrations").fetchall()
    }
    known = migrations()
    _refuse_strangers(known, applied)
    due = [migration for migration in known if migration.number not in applied]
    for migration in due:
        with connection.transaction():
            connection.execute(migration.sql.encode())
            connection.execute(
                "INSERT INTO migrations (number, name, digest) VALUES (%s, %s, %s)",
                (migration.number, migration.name, migration.digest),
            )
    return [f"{migration.number:04}_{migration.name}" for migration in due]


def _refuse_strangers(known: tuple[Migration, ...], applied: dict[int, str]) -> None:
    digests = {migration.number: migration.digest for migration in known}
    for number, digest in sorted(applied.items()):
        if number not in digests:
            raise CannotServe(
                f"the payments database has migration {number:04}, which this version does not know: "
                "run the version that applied it, or a newer one"
            )
        if digests[number] != digest:
            raise CannotServe(
                f"migration {number:04} was applied to the payments database with another text: "
                "run the version that applied it, or give this one an empty database"
            )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
