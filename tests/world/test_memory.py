"""Time and chance do what a test says."""

from __future__ import annotations

import pytest

from holdfast.world.memory import ManualClock, SeededRandomSource


def test_a_manual_clock_moves_when_told() -> None:
    clock = ManualClock(100.0)
    clock.advance(2.5)
    clock.set(50.0)
    clock.advance(1.0)

    assert (clock.now(), clock.monotonic()) == (51.0, 3.5)


def test_time_does_not_pass_backwards() -> None:
    with pytest.raises(AssertionError, match="one direction"):
        ManualClock().advance(-1.0)


def test_a_seed_is_a_fate() -> None:
    def fate(seed: int) -> list[object]:
        chance = SeededRandomSource(seed)
        return [chance.fraction(), chance.draw(8), chance.fraction()]

    assert fate(1) == fate(1)
    assert fate(1) != fate(2)
