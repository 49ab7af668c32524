"""What time it is: on the wall, and since some moment that nobody can move."""

from __future__ import annotations

import time
from typing import Protocol


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
