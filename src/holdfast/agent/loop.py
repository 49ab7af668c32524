"""Decide what a turn does next.

    idle ─prompted─▶ running ─ready─▶ streaming ─called─▶ executing ─asked─▶ waiting
      ▲                ▲  └◀─ said, too long ─┘ │ │           │  ◀─ answered ──┘
      │                └──────── executed ──────┼─┼───────────┘
      │                └───── resumed ── paused ◀─┘ troubled
      └── settled ── stopped ◀── aborted, failed: from anywhere

Every state is in the table, and every event in every state. Nothing here waits or asks: the shell
does what an effect names, and says what came of it.

Repetition guard: decide whether a turn makes no progress.

A call counts as repeated when the same tool with the same arguments has the same result as the
last time. All counts start again when something is new: a call changed files, a call was not made
before in this turn, or a known call had another result. So a check that stays quiet while files
are edited in between is never counted, and two calls that alternate without effect are.

Not every tool knows which files it changed: before a call is counted as repeated, the caller looks
at the draft.
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
    """What a turn is doing."""

    IDLE = "idle"
    RUNNING = "running"  # it makes ready for the next request
    STREAMING = "streaming"  # the model answers
    EXECUTING = "executing"  # tools are used
    WAITING = "waiting"  # a tool waits for the person
    PAUSED = "paused"  # the provider is in trouble, and the person decides
    STOPPED = "stopped"  # it is not wanted any more, or cannot go on


class LoopEvent(StrEnum):
    """What has happened."""

    PROMPTED = "prompted"
    READY = "ready"
    DONE = "done"  # nothing is left to ask the model
    CALLED = "called"
    SAID = "said"  # an answer without calls
    TOO_LONG = "too_long"
    TROUBLED = "troubled"
    EXECUTED = "executed"
    ASKED = "asked"
    ANSWERED = "answered"  # no question is open any more
    RESUMED = "resumed"
    ABORTED = "aborted"
    FAILED = "failed"
    SETTLED = "settled"  # nothing runs, and every call has its result


class LoopEffect(StrEnum):
    """What is to be done."""

    PREPARE = "prepare"  # repair, take up what was added, look at the budget, make room
    REQUEST = "request"
    EXECUTE = "execute"
    COMPACT = "compact"
    ASK = "ask"  # the person: retry, switch the model or cancel
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
"""What follows; what is not here cannot happen."""


def step(phase: LoopPhase, event: LoopEvent) -> LoopStep:
    """The next state, and what is to be done in it."""
    found = TABLE.get((phase, event))
    assert found is not None, f"{event} cannot happen while {phase}"
    return found


WARN_AT: Final = (3, 6)  # repetitions
STOP_AT: Final = 10
CONTINUE: Final = "Continue"
STOP: Final = "Stop"
_KNOWN_MAX: Final = 1_000  # different calls


class RepetitionGuard:
    """Counts, within a turn, calls that are repeated while nothing changes."""

    def __init__(self) -> None:
        self._results: dict[tuple[str, str], int] = {}
        self._times: dict[tuple[str, str], int] = {}

    def is_repeated(self, call: ToolCall, text: str) -> bool:
        """Whether this call had this result the last time, too."""
        return self._results.get((call.tool, call.arguments)) == hash(text)

    def note(self, call: ToolCall, text: str, *, is_change: bool = False) -> int:
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


def warning(call: ToolCall, times: int) -> str:
    """What the model is told together with the result, if anything."""
    if times not in WARN_AT:
        return ""
    return (
        f"\n[This is the same result of the same call to {call.tool}, {times} times by now, and "
        "nothing changed in between. Do something else, or say what is in the way: the turn is "
        f"stopped after {STOP_AT} times.]"
    )


def verdict(call: ToolCall, times: int) -> GoingInCircles | None:
    """The failure that stops the turn, if it must stop."""
    return GoingInCircles(tool=call.tool, times=times) if times >= STOP_AT else None


# Decide whether a turn may go on: how often, how much, for how much and for how long.


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLimits:
    """What one turn may take; None is no limit."""

    steps: int | None = 500  # requests to the model
    tokens: int | None = None  # that were not cached, and what was answered
    cost_usd: float | None = None
    seconds: float | None = 6 * 3600.0


@dataclass(slots=True)
class Budget:
    """What one turn has taken so far."""

    began: float
    steps: int = 0
    tokens: int = 0
    cost_usd: float = 0.0

    def pay(self, tokens: Tokens, cost_usd: float | None) -> None:
        """Note what an answer took."""
        self.tokens += tokens.input - tokens.cached + tokens.output
        self.cost_usd += cost_usd or 0.0

    def empty(self, budget: BudgetLimits, *, now: float) -> Failure | None:
        """Why the model may not be asked again, if it may not."""
        if budget.steps is not None and self.steps >= budget.steps:
            return StepsSpent(most=budget.steps)
        if budget.tokens is not None and self.tokens >= budget.tokens:
            return TokensSpent(spent=self.tokens, most=budget.tokens)
        if budget.cost_usd is not None and self.cost_usd >= budget.cost_usd:
            return CostSpent(spent=round(self.cost_usd, 4), most=budget.cost_usd)
        if budget.seconds is not None and now - self.began >= budget.seconds:
            return TimeSpent(most=budget.seconds)
        return None


# Decide whether an agent that crashes is started again.

CRASHES_MAX: Final = 3
WITHIN: Final = 60.0  # seconds


class CrashHistory:
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
