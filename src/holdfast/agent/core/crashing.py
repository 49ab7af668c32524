"""Decide whether an agent that crashes is started again."""

from __future__ import annotations

from typing import Final

from holdfast.agent.failures import AgentUnstable

CRASHES_MAX: Final = 3
WITHIN: Final = 60.0  # seconds


class Crashes:
    """The crashes of one session's agent."""

    def __init__(self) -> None:
        self._times: list[float] = []
        self._reason = ""

    def note(self, reason: str, *, now: float) -> None:
        """It has crashed."""
        self._times = [*self._times[1 - CRASHES_MAX :], now]
        self._reason = reason

    def refusal(self, *, now: float) -> AgentUnstable | None:
        """Why it is not started now, if it crashed too often lately."""
        if len(self._times) < CRASHES_MAX or self._times[-1] - self._times[0] > WITHIN:
            return None
        wait = self._times[-1] + WITHIN - now
        if wait <= 0:
            return None
        return AgentUnstable(crashes=CRASHES_MAX, reason=self._reason, wait=int(wait) + 1)
