"""What holds for all tests."""

import os

import pytest
from hypothesis import settings

# No deadline: this machine may be doing something else, and a slow example is no false claim. In CI the examples are
# the same in each run, so that a change is never blamed for what it did not do; at a desk they are new each time.
settings.register_profile("house", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("house")


@pytest.fixture
def anyio_backend() -> str:
    """Tests marked `anyio` run under asyncio, as the product does."""
    return "asyncio"
