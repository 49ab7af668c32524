"""Decide when to ping, and when silence means that nobody is there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """How often to ping, and after how many seconds without any byte a connection is lost."""

    every: float = 5.0
    silence_longest: float = 10.0

    @property
    def tick(self) -> float:
        """How often to look."""
        return min(self.every, self.silence_longest) / 2


@dataclass(frozen=True, slots=True)
class Watch:
    """How many looks in a row found nothing, and how many there were since the last ping.

    Looks are counted, not seconds: while we ourselves were stopped, nobody else was silent.
    """

    silent: int = 0
    unpinged: int = 0


class Sign(Enum):
    """What a look calls for."""

    WAIT = auto()
    PING = auto()
    GIVE_UP = auto()


def look(watch: Watch, pulse: Pulse, *, heard: bool) -> tuple[Watch, Sign]:
    """Take note whether anything came since the last look, or could not because we did not read.

    Pings go out however much is heard: they are the sign of life of one who has nothing to say.
    """
    silent = 0 if heard else watch.silent + 1
    if silent * pulse.tick >= pulse.silence_longest:
        return Watch(silent, 0), Sign.GIVE_UP
    unpinged = watch.unpinged + 1
    if unpinged * pulse.tick >= pulse.every:
        return Watch(silent, 0), Sign.PING
    return Watch(silent, unpinged), Sign.WAIT
