"""``killpoint-payments serve`` and ``migrate``: from the command line and the environment to frozen settings."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from killpoint_payments.migrate import migrate
from killpoint_payments.service import APPLICATION, serve
from killpoint_payments.settings import (
    ADMIN_TOKEN,
    DATABASE_URL,
    SIGNING_KEY,
    CannotServe,
    ConfigurationError,
    Settings,
    required,
)

EXIT_CONFIGURATION = 2
EXIT_CANNOT_SERVE = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Exit codes: 0 done, 2 wrong configuration, 3 what it needs is not there."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "migrate":
            _migrate(os.environ)
        else:
            serve(read_settings(os.environ, options))
    except ConfigurationError as error:
        return _fail(error, EXIT_CONFIGURATION)
    except CannotServe as error:
        return _fail(error, EXIT_CANNOT_SERVE)
    return 0


def read_settings(environment: Mapping[str, str], options: argparse.Namespace) -> Settings:
    """Frozen settings, or a :class:`ConfigurationError`."""
    return Settings(
        database_url=_database_url(environment),
        signing_key=required(environment, SIGNING_KEY).encode(),
        admin_token=required(environment, ADMIN_TOKEN).encode(),
        host=options.host,
        port=options.port,
        admin_port=options.admin_port,
        ready_file=options.ready_file,
        connections=options.connections,
        boot=secrets.token_hex(6),
        orphans_seconds_max=options.orphans_seconds_max,
    )


def _migrate(environment: Mapping[str, str]) -> None:
    applied = migrate(_database_url(environment), application_name=f"{APPLICATION}-migrate")
    print("applied: " + ", ".join(applied) if applied else "nothing to apply")


def _database_url(environment: Mapping[str, str]) -> str:
    url = required(environment, DATABASE_URL)
    try:
        conninfo_to_dict(url)
    except psycopg.Error:
        # What libpq says of it would quote it, password and all.
        raise ConfigurationError(
            f"{DATABASE_URL} cannot be read: write it as postgresql://role:password@host:port/database"
        ) from None
    return url


def _fail(error: Exception, code: int) -> int:
    print(f"killpoint-payments: {error}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="killpoint-payments", description="A payments service with its own ledger.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("migrate", help="bring the payments database up to this version")
    command = commands.add_parser("serve", help="migrate, then serve until SIGTERM")
    command.add_argument("--host", default="127.0.0.1")
    command.add_argument("--port", type=_port, default=0, help="0: any that is free")
    command.add_argument("--admin-port", type=_port, default=0, help="0: any that is free")
    command.add_argument("--ready-file", type=Path, help="written as JSON once requests are taken")
    command.add_argument("--connections", type=_connections, default=16, help="database sessions that commit (1-200)")
    command.add_argument("--orphans-seconds-max", type=float, default=45.0, help=argparse.SUPPRESS)
    return parser


def _port(text: str) -> int:
    return _bounded(text, 0, 65535)


def _connections(text: str) -> int:
    return _bounded(text, 1, 200)


def _bounded(text: str, low: int, high: int) -> int:
    number = int(text) if text.isdecimal() else -1
    if not low <= number <= high:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from {low} to {high}")
    return number
