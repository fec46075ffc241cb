"""``python -m killpoint.controller``: the operator."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import sys

from killpoint.controller.credentials import CredentialsError, own_namespace
from killpoint.controller.serve import LeaseLostError, serve
from killpoint.controller.settings import Settings, SettingsError
from killpoint.local.errors import WorkloadsError


def main() -> int:
    """Exit codes: 0 ended as asked, 1 the lease is lost, 2 the configuration is wrong, 3 what it needs is not there."""
    try:
        namespace = own_namespace()
        # A pod's name is its own: its container, started again, goes on with the lease that it had.
        identity = socket.gethostname() + ("" if namespace else f"_{secrets.token_hex(4)}")
        settings = Settings.from_environment(os.environ, own_namespace=namespace, identity=identity)
    except SettingsError as error:
        return _fail(error, 2)
    logging.basicConfig(level=settings.log_level, format="%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    for noisy in ("kopf", "httpx", "aiohttp"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, logging.getLevelName(settings.log_level)))
    try:
        asyncio.run(serve(settings))
    except LeaseLostError as error:
        return _fail(error, 1)
    except (CredentialsError, WorkloadsError) as error:
        return _fail(error, 3)
    return 0


def _fail(error: Exception, code: int) -> int:
    sys.stderr.write(f"{error}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
