"""The rig, as fixtures."""

from tests.contract.fixtures import launcher_of, new_trial, payments, server, state_database

__all__ = ["launcher_of", "new_trial", "payments", "server", "state_database"]
