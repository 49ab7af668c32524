"""Decide whether the model goes in circles: the same call, with the same result, again."""

from __future__ import annotations

from typing import Final

from holdfast.agent.failures import GoingInCircles
from holdfast.agent.model import Call

TELL_AT: Final = 3  # times
STOP_AT: Final = 6
_KNOWN_MAX: Final = 1_000  # ways of using a tool


class Guard:
    """Counts, within a turn, what comes again with nothing new."""

    def __init__(self) -> None:
        self._times: dict[tuple[str, str], tuple[int, int]] = {}

    def note(self, call: Call, text: str) -> int:
        """How often this call had this result, one after the other; other calls do not count."""
        way, result = (call.tool, call.arguments), hash(text)
        last, times = self._times.pop(way, (result, 0))
        times = times + 1 if last == result else 1
        self._times[way] = (result, times)
        if len(self._times) > _KNOWN_MAX:
            del self._times[next(iter(self._times))]
        return times


def word(call: Call, times: int) -> str:
    """What the model is told together with the result, if it should hear something."""
    if times < TELL_AT:
        return ""
    return (
        f"\n[This is the same result of the same call to {call.tool}, {times} times by now. Do "
        f"something else, or say what is in the way: the turn is stopped after {STOP_AT} times.]"
    )


def verdict(call: Call, times: int) -> GoingInCircles | None:
    """What stops the turn, if something does."""
    return GoingInCircles(tool=call.tool, times=times) if times >= STOP_AT else None
