"""Decide from answers to pings whether a host still does its work.

A loop that makes no progress counts as missed, even if whoever reads the socket answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MISSES_MAX: Final = 3
TURN_STUCK: Final = 120.0  # seconds without a word from the agent
JOURNAL_STUCK: Final = 10.0  # seconds that a record has been on its way to the disk


@dataclass(frozen=True, slots=True)
class Watched:
    """How often in a row it did not answer as it should."""

    misses: int = 0

    @property
    def is_responsive(self) -> bool:
        """Whether there is reason to go on waiting."""
        return self.misses < MISSES_MAX


def answered(watched: Watched, *, turn: float, journal: float) -> Watched:
    """It has answered, and says for how long each loop has made no progress."""
    is_stuck = journal > JOURNAL_STUCK or turn > TURN_STUCK
    return missed(watched) if is_stuck else Watched()


def missed(watched: Watched) -> Watched:
    """It has not answered in time."""
    return Watched(watched.misses + 1)
