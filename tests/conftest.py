"""What every test may ask for."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# A machine that is busy with other things is slow, and nothing is wrong with the example.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


@pytest.fixture
def anyio_backend() -> str:
    """The one backend that shells are written for."""
    return "asyncio"
