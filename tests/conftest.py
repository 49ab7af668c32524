"""What every test may ask for."""

from __future__ import annotations

import signal

import pytest
from hypothesis import HealthCheck, settings

# Under nohup, or as a job of a script, SIGINT is ignored, and programs that tests start would
# ignore it, too. A handler of ours is reset to the default in each of them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A machine that is busy with other things is slow, and nothing is wrong with the example.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


@pytest.fixture
def anyio_backend() -> str:
    """The one backend that shells are written for."""
    return "asyncio"
