"""Every clock tells seconds, and its steady one never goes back."""

from __future__ import annotations

import time

import pytest

from holdfast.world import Clock, SystemClock
from holdfast.world.testing import ManualClock


@pytest.mark.parametrize("clock", [SystemClock(), ManualClock()], ids=["system", "manual"])
def test_time_is_told_and_the_steady_clock_never_goes_back(clock: Clock) -> None:
    told = [clock.monotonic() for _ in range(100)]

    assert told == sorted(told)
    assert clock.now() > 1_600_000_000


def test_the_wall_clock_is_the_machines() -> None:
    before = time.time()
    told = SystemClock().now()

    assert before <= told <= time.time()
