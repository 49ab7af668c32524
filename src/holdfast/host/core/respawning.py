"""Decide whether and when a host that died is started again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

STARTS_MAX: Final = 3
WITHIN: Final = 60.0  # seconds
DELAYS: Final = (0.0, 0.2, 4.0)


def delay_before(starts: Sequence[float], *, now: float) -> float | None:
    """How long to wait before the next start; None if it was started too often lately.

    `starts` are the times at which it was started again before.
    """
    recent = sum(1 for start in starts if start > now - WITHIN)
    return DELAYS[recent] if recent < STARTS_MAX else None
