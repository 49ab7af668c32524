"""State machine of a turn, repetition guard, budget and crash limit.

    idle ─prompted─▶ running ─ready─▶ streaming ─called─▶ executing ─asked─▶ waiting
      ▲                ▲  └◀─ said, too long ─┘ │ │           │  ◀─ answered ──┘
      │                └──────── executed ──────┼─┼───────────┘
      │                └───── resumed ── paused ◀─┘ troubled
      └── settled ── stopped ◀── aborted, failed: from anywhere

Pure: no waiting and no I/O. `step` returns the next phase and an effect; `turn.py` runs the effect
and reports its outcome as the next event. Every valid pair of phase and event is in `TABLE`; any
other pair is a bug and raises AssertionError.

The repetition guard detects a turn without progress. A call is repeated if the same tool with the
same arguments returns the same result as the last time. All counts are reset by anything new: a
call that changed files, a call not made before in this turn, or another result of a known call. So
a check that stays green between edits is never counted, while two calls that alternate without
effect are. Not every tool knows which files it changed, so the caller compares the draft's revision
before it counts a call as repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from holdfast.agent.failures import (
    AgentUnstable,
    CostSpent,
    GoingInCircles,
    StepsSpent,
    TimeSpent,
    TokensSpent,
)
from holdfast.agent.model import Tokens, ToolCall
from holdfast.failures import Failure


class LoopPhase(StrEnum):
    """Phase of a turn."""

    IDLE = "idle"
    RUNNING = "running"  # prepares the next request
    STREAMING = "streaming"  # an answer is streaming
    EXECUTING = "executing"  # tool calls run
    WAITING = "waiting"  # a tool asks the person
    PAUSED = "paused"  # provider error: the person decides
    STOPPED = "stopped"  # aborted or failed; cleaning up


class LoopEvent(StrEnum):
    """Outcome of an effect, or an action of the person."""

    PROMPTED = "prompted"
    READY = "ready"
    DONE = "done"  # no further request is needed
    CALLED = "called"
    SAID = "said"  # an answer without tool calls
    TOO_LONG = "too_long"
    TROUBLED = "troubled"
    EXECUTED = "executed"
    ASKED = "asked"
    ANSWERED = "answered"  # the last open question was answered
    RESUMED = "resumed"
    ABORTED = "aborted"
    FAILED = "failed"
    SETTLED = "settled"  # nothing runs, and every call has a result


class LoopEffect(StrEnum):
    """What the turn must do next."""

    PREPARE = "prepare"  # repair, append input, check budget and context size
    REQUEST = "request"
    EXECUTE = "execute"
    COMPACT = "compact"
    ASK = "ask"  # ask the person: retry, switch the model, or cancel
    SETTLE = "settle"
    END = "end"


LoopStep = tuple[LoopPhase, LoopEffect | None]

_STOP: Final[LoopStep] = (LoopPhase.STOPPED, LoopEffect.SETTLE)

TABLE: Final[dict[tuple[LoopPhase, LoopEvent], LoopStep]] = {
    (LoopPhase.IDLE, LoopEvent.PROMPTED): (LoopPhase.RUNNING, LoopEffect.PREPARE),
    (LoopPhase.RUNNING, LoopEvent.READY): (LoopPhase.STREAMING, LoopEffect.REQUEST),
    (LoopPhase.RUNNING, LoopEvent.DONE): (LoopPhase.IDLE, LoopEffect.END),
    (LoopPhase.RUNNING, LoopEvent.TROUBLED): (LoopPhase.PAUSED, LoopEffect.ASK),
    (LoopPhase.RUNNING, LoopEvent.TOO_LONG): (LoopPhase.RUNNING, LoopEffect.COMPACT),
    (LoopPhase.RUNNING, LoopEvent.RESUMED): (LoopPhase.RUNNING, LoopEffect.PREPARE),
    (LoopPhase.STREAMING, LoopEvent.CALLED): (LoopPhase.EXECUTING, LoopEffect.EXECUTE),
    (LoopPhase.STREAMING, LoopEvent.SAID): (LoopPhase.RUNNING, LoopEffect.PREPARE),
    (LoopPhase.STREAMING, LoopEvent.TOO_LONG): (LoopPhase.RUNNING, LoopEffect.COMPACT),
    (LoopPhase.STREAMING, LoopEvent.TROUBLED): (LoopPhase.PAUSED, LoopEffect.ASK),
    (LoopPhase.EXECUTING, LoopEvent.EXECUTED): (LoopPhase.RUNNING, LoopEffect.PREPARE),
    (LoopPhase.EXECUTING, LoopEvent.ASKED): (LoopPhase.WAITING, None),
    (LoopPhase.WAITING, LoopEvent.ASKED): (LoopPhase.WAITING, None),
    (LoopPhase.WAITING, LoopEvent.ANSWERED): (LoopPhase.EXECUTING, None),
    (LoopPhase.PAUSED, LoopEvent.RESUMED): (LoopPhase.RUNNING, LoopEffect.PREPARE),
    (LoopPhase.STOPPED, LoopEvent.SETTLED): (LoopPhase.IDLE, LoopEffect.END),
    **{
        (phase, event): _STOP
        for phase in LoopPhase
        if phase not in (LoopPhase.IDLE, LoopPhase.STOPPED)
        for event in (LoopEvent.ABORTED, LoopEvent.FAILED)
    },
    (LoopPhase.IDLE, LoopEvent.ABORTED): (LoopPhase.IDLE, None),
    (LoopPhase.STOPPED, LoopEvent.ABORTED): (LoopPhase.STOPPED, None),
    (LoopPhase.STOPPED, LoopEvent.FAILED): (LoopPhase.STOPPED, None),
}
"""Transition table; a missing pair cannot happen."""


def step(phase: LoopPhase, event: LoopEvent) -> LoopStep:
    """Return the next phase and the effect to run in it, if any."""
    found = TABLE.get((phase, event))
    assert found is not None, f"{event} cannot happen while {phase}"
    return found


WARN_AT: Final = (3, 6)  # repetitions
STOP_AT: Final = 10
CONTINUE: Final = "Continue"
STOP: Final = "Stop"
_KNOWN_MAX: Final = 1_000  # distinct calls that are remembered


class RepetitionGuard:
    """Counts repeated calls of a turn while nothing changes."""

    def __init__(self) -> None:
        self._results: dict[tuple[str, str], int] = {}
        self._times: dict[tuple[str, str], int] = {}

    def is_repeated(self, call: ToolCall, text: str) -> bool:
        """Whether the previous such call returned the same result."""
        return self._results.get((call.tool, call.arguments)) == hash(text)

    def note(self, call: ToolCall, text: str, *, is_change: bool = False) -> int:
        """Record a result; return how often it occurred since the last change."""
        key, result = (call.tool, call.arguments), hash(text)
        if is_change or self._results.pop(key, None) != result:
            self.reset()
        self._results[key] = result
        if len(self._results) > _KNOWN_MAX:
            del self._results[next(iter(self._results))]
        self._times[key] = self._times.get(key, 0) + 1
        return self._times[key]

    def reset(self) -> None:
        """Reset all counts."""
        self._times.clear()


def warning(call: ToolCall, times: int) -> str:
    """Return the warning to append to the result, or an empty string."""
    if times not in WARN_AT:
        return ""
    return (
        f"\n[This is the same result of the same call to {call.tool}, {times} times by now, and "
        "nothing changed in between. Do something else, or say what is in the way: the turn is "
        f"stopped after {STOP_AT} times.]"
    )


def verdict(call: ToolCall, times: int) -> GoingInCircles | None:
    """Return the failure that stops the turn, if the limit is reached."""
    return GoingInCircles(tool=call.tool, times=times) if times >= STOP_AT else None


# Budget of a turn.


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLimits:
    """Limits of one turn; None is unlimited."""

    steps: int | None = 500  # requests to the model
    tokens: int | None = None  # output, and input that was not cached
    cost_usd: float | None = None
    seconds: float | None = 6 * 3600.0


@dataclass(slots=True)
class Budget:
    """What one turn has used so far."""

    began: float
    steps: int = 0
    tokens: int = 0
    cost_usd: float = 0.0

    def pay(self, tokens: Tokens, cost_usd: float | None) -> None:
        """Add the usage of an answer."""
        self.tokens += tokens.input - tokens.cached + tokens.output
        self.cost_usd += cost_usd or 0.0

    def empty(self, budget: BudgetLimits, *, now: float) -> Failure | None:
        """Return the failure if a limit is reached."""
        if budget.steps is not None and self.steps >= budget.steps:
            return StepsSpent(most=budget.steps)
        if budget.tokens is not None and self.tokens >= budget.tokens:
            return TokensSpent(spent=self.tokens, most=budget.tokens)
        if budget.cost_usd is not None and self.cost_usd >= budget.cost_usd:
            return CostSpent(spent=round(self.cost_usd, 4), most=budget.cost_usd)
        if budget.seconds is not None and now - self.began >= budget.seconds:
            return TimeSpent(most=budget.seconds)
        return None


# Crash limit: an agent that crashes repeatedly is not restarted for a while.

CRASHES_MAX: Final = 3
WITHIN: Final = 60.0  # seconds


class CrashHistory:
    """Crash times of one session's agent."""

    def __init__(self) -> None:
        self._times: list[float] = []
        self._reason = ""

    def note(self, reason: str, *, now: float) -> None:
        """Record a crash."""
        self._times = [*self._times[1 - CRASHES_MAX :], now]
        self._reason = reason

    def refusal(self, *, now: float) -> AgentUnstable | None:
        """Return the failure if the agent crashed too often within the last `WITHIN` seconds."""
        if len(self._times) < CRASHES_MAX or self._times[-1] - self._times[0] > WITHIN:
            return None
        wait = self._times[-1] + WITHIN - now
        if wait <= 0:
            return None
        return AgentUnstable(crashes=CRASHES_MAX, reason=self._reason, wait=int(wait) + 1)
