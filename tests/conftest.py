"""What every test may ask for."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """The one backend that shells are written for."""
    return "asyncio"
