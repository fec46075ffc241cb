"""``python -m killpoint.databases NAME``: see to it that a service has its role and its database, both of that name.

Run before the service starts, each time: it waits for the server, may be repeated, and sets the role's password anew.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from killpoint.databases.administration import Databases
from killpoint.databases.errors import DatabaseError, PostgresUnreachable
from killpoint.databases.server import Server, given_postgres

DATABASE_URL = "KILLPOINT_DATABASE_URL"
SERVICE_PASSWORD = "KILLPOINT_SERVICE_PASSWORD"  # noqa: S105 - the variable's name
NEEDED = {
    DATABASE_URL: "a login that may create databases and roles, postgresql://role:password@host:port/database",
    SERVICE_PASSWORD: "the password that the service's role gets",
}
TRIES = 60
PAUSE_SECONDS = 2.0
_NAME = re.compile(r"^[a-z][a-z0-9_]{0,62}$")


class UsageError(Exception):
    """The command line or the environment lacks something; the message says what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is to be there."""

    name: str
    admin: str = field(repr=False)
    password: str = field(repr=False)

    @classmethod
    def read(cls, arguments: Sequence[str], environ: Mapping[str, str]) -> Settings:
        """Raises UsageError."""
        if len(arguments) != 1 or not _NAME.match(arguments[0]):
            raise UsageError(
                "usage: python -m killpoint.databases NAME   (a lower-case word: the role's and the database's)"
            )
        for name, purpose in NEEDED.items():
            if not environ.get(name):
                raise UsageError(f"{name} is not set: set it to {purpose}")
        return cls(name=arguments[0], admin=environ[DATABASE_URL], password=environ[SERVICE_PASSWORD])


async def ensure(settings: Settings) -> None:
    """Make the role and the database. Raises DatabaseError when the server is not there in time, or refuses."""
    async with Databases(await _answering(settings.admin)) as databases:
        await databases.ensure_owned(settings.name, settings.password)


async def _answering(admin: str) -> Server:
    for last in (*[False] * (TRIES - 1), True):
        try:
            return await given_postgres(admin)
        except PostgresUnreachable:
            if last:
                raise
            await asyncio.sleep(PAUSE_SECONDS)
    raise AssertionError("the last try returns or raises")


def main(arguments: Sequence[str]) -> int:
    """Exit codes: 0 it is there, 2 wrong usage, 3 the server does not do it."""
    try:
        asyncio.run(ensure(Settings.read(arguments, os.environ)))
    except (UsageError, DatabaseError) as error:
        sys.stderr.write(f"{error}\n")
        return 2 if isinstance(error, UsageError) else 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
