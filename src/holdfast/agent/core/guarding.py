"""Repetition guard: decide whether a turn makes no progress.

A call counts as repeated when the same tool with the same arguments has the same result as the
last time. All counts start again when something is new: a call changed files, a call was not made
before in this turn, or a known call had another result. So a check that stays quiet while files
are edited in between is never counted, and two calls that alternate without effect are.

Not every tool knows which files it changed: before a call is counted as repeated, the caller looks
at the draft.
"""

from __future__ import annotations

from typing import Final

from holdfast.agent.failures import GoingInCircles
from holdfast.agent.model import Call

WARN_AT: Final = (3, 6)  # repetitions
STOP_AT: Final = 10
CONTINUE: Final = "Continue"
STOP: Final = "Stop"
_KNOWN_MAX: Final = 1_000  # different calls


class Guard:
    """Counts, within a turn, calls that are repeated while nothing changes."""

    def __init__(self) -> None:
        self._results: dict[tuple[str, str], int] = {}
        self._times: dict[tuple[str, str], int] = {}

    def is_repeated(self, call: Call, text: str) -> bool:
        """Whether this call had this result the last time, too."""
        return self._results.get((call.tool, call.arguments)) == hash(text)

    def note(self, call: Call, text: str, *, is_change: bool = False) -> int:
        """How often this call had this result since something was new."""
        key, result = (call.tool, call.arguments), hash(text)
        if is_change or self._results.pop(key, None) != result:
            self.reset()
        self._results[key] = result
        if len(self._results) > _KNOWN_MAX:
            del self._results[next(iter(self._results))]
        self._times[key] = self._times.get(key, 0) + 1
        return self._times[key]

    def reset(self) -> None:
        """Start all counts again."""
        self._times.clear()


def warning(call: Call, times: int) -> str:
    """What the model is told together with the result, if anything."""
    if times not in WARN_AT:
        return ""
    return (
        f"\n[This is the same result of the same call to {call.tool}, {times} times by now, and "
        "nothing changed in between. Do something else, or say what is in the way: the turn is "
        f"stopped after {STOP_AT} times.]"
    )


def verdict(call: Call, times: int) -> GoingInCircles | None:
    """The failure that stops the turn, if it must stop."""
    return GoingInCircles(tool=call.tool, times=times) if times >= STOP_AT else None
