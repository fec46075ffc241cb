"""The fixtures of whole runs: bad input is given to the real command."""

from tests.integration.runs.conftest import command, on_dsn, own_home, postgres

__all__ = ["command", "on_dsn", "own_home", "postgres"]
