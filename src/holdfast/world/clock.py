"""Wall clock, monotonic clock and random source, as ports with system implementations."""

from __future__ import annotations

import os
import time
from threading import Lock
from typing import Protocol

from holdfast.nouns import ENTROPY_BYTES, Id, make_id


class Clock(Protocol):
    """Tells the time in seconds."""

    def now(self) -> float:
        """Seconds since the epoch; may jump when someone sets the clock."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed moment; never goes back."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> float:
        """Seconds since the epoch, as this machine has them."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since some moment before this process began."""
        return time.monotonic()


_ENTROPY_RANGE = 256**ENTROPY_BYTES
_STEP_BYTES = 5


class RandomSource(Protocol):
    """A source of random numbers."""

    def fraction(self) -> float:
        """A number of [0, 1), each as likely as any other."""
        ...

    def draw(self, count: int) -> bytes:
        """As many bytes, each as likely as any other."""
        ...


class SystemRandomSource:
    """The random source of the operating system (`os.urandom`), fit for secrets."""

    def fraction(self) -> float:
        """A number of [0, 1)."""
        return (int.from_bytes(os.urandom(7)) >> 3) / 2**53  # as many bits as a float holds

    def draw(self, count: int) -> bytes:
        """Random bytes, fit for secrets."""
        return os.urandom(count)


class IdMaker:
    """Makes ids in strictly increasing order; thread-safe.

    Within one millisecond, or after the clock was set back, the next id is the last one plus a
    random step. The step is random so that two forks of one process do not make the same id.
    """

    def __init__(self, clock: Clock, chance: RandomSource) -> None:
        self._clock = clock
        self._chance = chance
        self._at_ms, self._entropy = 0, 0
        self._guard = Lock()

    def make(self, prefix: str) -> Id:
        """Make the next id of this kind."""
        now_ms, fresh = int(self._clock.now() * 1000), self._chance.draw(ENTROPY_BYTES)
        with self._guard:
            if now_ms > self._at_ms:
                self._at_ms, self._entropy = now_ms, int.from_bytes(fresh)
            else:
                step = 1 + int.from_bytes(fresh[:_STEP_BYTES])
                carried, self._entropy = divmod(self._entropy + step, _ENTROPY_RANGE)
                self._at_ms += carried
            return make_id(prefix, self._at_ms, self._entropy.to_bytes(ENTROPY_BYTES))
