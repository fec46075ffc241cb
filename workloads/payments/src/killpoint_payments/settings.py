"""What the service is told by its environment and its command line, read once and frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

DATABASE_URL = "KILLPOINT_PAYMENTS_DATABASE_URL"
SIGNING_KEY = "KILLPOINT_PAYMENTS_SIGNING_KEY"
ADMIN_TOKEN = "KILLPOINT_PAYMENTS_ADMIN_TOKEN"  # noqa: S105 - the variable's name


class ConfigurationError(Exception):
    """The service was told something that it cannot work with. Exit code 2; the message says what to change."""


class CannotServe(Exception):
    """What the service needs is not there: its database, its port. Exit code 3; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All that a serving process works from. Secrets are left out of its representation."""

    database_url: str = field(repr=False)
    signing_key: bytes = field(repr=False)
    admin_token: bytes = field(repr=False)
    host: str
    port: int
    admin_port: int
    ready_file: Path | None
    connections: int
    """Sessions that commit: as many requests are in the database at once, the others wait for one."""
    boot: str
    """This process's own name: sessions carry it, so that the next boot knows those of an earlier one."""
    orphans_seconds_max: float
    """How long to wait for sessions of an earlier boot to end."""


def required(environment: Mapping[str, str], name: str) -> str:
    """The value of ``name``, or a :class:`ConfigurationError` that says what it is for."""
    value = environment.get(name, "")
    if not value:
        purpose = {
            DATABASE_URL: "the payments database, postgresql://role:password@host:port/database",
            SIGNING_KEY: "the key that workers' tokens are signed with",
            ADMIN_TOKEN: "the bearer token of the admin port",
        }[name]
        raise ConfigurationError(f"{name} is not set: set it to {purpose}")
    return value
