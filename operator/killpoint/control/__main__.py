"""``python -m killpoint.control``: serve the app that workers park at."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

import uvicorn

from killpoint.control.app import application
from killpoint.control.parkings import Parkings, ParkingsUnavailable

NEEDED = {
    "KILLPOINT_CONTROL_DATABASE_URL": "the database of the parkings, postgresql://role:password@host/database",
    "KILLPOINT_SIGNING_KEY": "the key that attempt tokens are signed with, the same as payments'",
}
MIGRATE_TRIES = 60
MIGRATE_PAUSE_SECONDS = 1.0


class ConfigurationError(Exception):
    """The environment lacks something; the message says what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What control is started with."""

    database: str = field(repr=False)
    signing_key: str = field(repr=False)
    host: str
    port: int

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Settings:
        """Raises ConfigurationError, which names the variable."""
        for name, purpose in NEEDED.items():
            if not environ.get(name):
                raise ConfigurationError(f"{name} is not set: set it to {purpose}")
        port = environ.get("KILLPOINT_CONTROL_PORT", "8080")
        if not port.isdigit() or int(port) > 65_535:  # noqa: PLR2004 - the largest port
            raise ConfigurationError(f"KILLPOINT_CONTROL_PORT is {port!r}: set it to a port, 0 to 65535")
        return cls(
            database=environ["KILLPOINT_CONTROL_DATABASE_URL"],
            signing_key=environ["KILLPOINT_SIGNING_KEY"],
            host=environ.get("KILLPOINT_CONTROL_HOST", "0.0.0.0"),  # noqa: S104 - pods reach it from outside its own
            port=int(port),
        )


async def serve(settings: Settings) -> None:
    """Serve until the process is asked to end. Waits a bounded time for its database at the start."""
    async with Parkings(settings.database) as parkings:
        await _migrated(parkings)
        config = uvicorn.Config(
            application(parkings, settings.signing_key),
            host=settings.host,
            port=settings.port,
            access_log=False,
            log_level="warning",
            timeout_graceful_shutdown=2,
        )
        await uvicorn.Server(config).serve()


async def _migrated(parkings: Parkings) -> None:
    for last in (*[False] * (MIGRATE_TRIES - 1), True):
        try:
            await parkings.migrate()
        except ParkingsUnavailable:
            if last:
                raise
            await asyncio.sleep(MIGRATE_PAUSE_SECONDS)
        else:
            return


def main() -> int:
    """Exit codes: 0 ended as asked, 2 the configuration is wrong, 3 what it needs is not there."""
    try:
        asyncio.run(serve(Settings.from_environment(os.environ)))
    except ConfigurationError as error:
        print(error, file=sys.stderr)  # noqa: T201 - the message of a program that cannot start
        return 2
    except ParkingsUnavailable as error:
        print(error, file=sys.stderr)  # noqa: T201 - the message of a program that cannot start
        return 3
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
