"""Remember what a proxy let through and what it stopped, by host and in bounded memory.

Only hosts and ports are kept: paths, headers and what could not be read may hold secrets.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from holdfast.confine.core.allowlist import Target

HOSTS_MAX: Final = 100


class Why(StrEnum):
    """Why a connection was stopped."""

    UNLISTED = "not on the list"
    NEARBY = "its name leads to a private address"
    UNCLEAR = "a request that names no host clearly"


@dataclass(frozen=True, slots=True)
class Stopped:
    """Attempts of one kind that were stopped; `host` is empty if none could be read."""

    host: str
    why: Why
    count: int


class Traffic:
    """All that one proxy did; of too many different hosts, the first ones and a number."""

    def __init__(self, *, hosts_max: int = HOSTS_MAX) -> None:
        self._hosts_max = hosts_max
        self._reached: Counter[str] = Counter()
        self._stopped: Counter[tuple[str, Why]] = Counter()
        self.unnamed = 0  # connections to hosts for which there was no room

    def let_through(self, target: Target) -> None:
        """Note a connection that was made."""
        if str(target) in self._reached or len(self._reached) < self._hosts_max:
            self._reached[str(target)] += 1
        else:
            self.unnamed += 1

    def stop(self, target: Target | None, why: Why) -> None:
        """Note a connection that was refused."""
        what = ("" if target is None else str(target), why)
        if what in self._stopped or len(self._stopped) < self._hosts_max:
            self._stopped[what] += 1
        else:
            self.unnamed += 1

    @property
    def reached(self) -> tuple[tuple[str, int], ...]:
        """The hosts that were reached, in the order of their first time, and how often."""
        return tuple(self._reached.items())

    @property
    def stopped(self) -> tuple[Stopped, ...]:
        """What was stopped, in the order of its first time."""
        return tuple(Stopped(host, why, count) for (host, why), count in self._stopped.items())
