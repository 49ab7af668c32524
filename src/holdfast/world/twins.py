"""Time and chance that a test decides, in place of the machine's."""

from __future__ import annotations

import random


class ManualClock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now
        self._elapsed = 0.0

    def now(self) -> float:
        """Seconds since the epoch, as last set."""
        return self._now

    def monotonic(self) -> float:
        """Seconds that it was advanced by, all together."""
        return self._elapsed

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        assert seconds >= 0.0, "time passes in one direction"
        self._now += seconds
        self._elapsed += seconds

    def set(self, now: float) -> None:
        """Set the wall clock, forward or back, as a person might; no time passes."""
        self._now = now


class SeededChance:
    """Draws the same from the same seed; never fit for secrets."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def fraction(self) -> float:
        """The seed's next number of [0, 1)."""
        return self._random.random()

    def draw(self, count: int) -> bytes:
        """The seed's next bytes."""
        return self._random.randbytes(count)
