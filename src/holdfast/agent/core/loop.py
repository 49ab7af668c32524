"""Decide what a turn does next.

    idle ─prompted─▶ running ─ready─▶ streaming ─called─▶ executing ─asked─▶ waiting
      ▲                ▲  └◀─ said, too long ─┘ │ │           │  ◀─ answered ──┘
      │                └──────── executed ──────┼─┼───────────┘
      │                └───── resumed ── paused ◀─┘ troubled
      └── settled ── stopped ◀── aborted, failed: from anywhere

Every state is in the table, and every event in every state. Nothing here waits or asks: the shell
does what an effect names, and says what came of it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Phase(StrEnum):
    """What a turn is doing."""

    IDLE = "idle"
    RUNNING = "running"  # it makes ready for the next request
    STREAMING = "streaming"  # the model answers
    EXECUTING = "executing"  # tools are used
    WAITING = "waiting"  # a tool waits for the person
    PAUSED = "paused"  # the provider is in trouble, and the person decides
    STOPPED = "stopped"  # it is not wanted any more, or cannot go on


class Event(StrEnum):
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


class Effect(StrEnum):
    """What is to be done."""

    PREPARE = "prepare"  # repair, take up what was added, look at the budget, make room
    REQUEST = "request"
    EXECUTE = "execute"
    COMPACT = "compact"
    ASK = "ask"  # the person: retry, switch the model or cancel
    SETTLE = "settle"
    END = "end"


Step = tuple[Phase, Effect | None]

_STOP: Final[Step] = (Phase.STOPPED, Effect.SETTLE)

TABLE: Final[dict[tuple[Phase, Event], Step]] = {
    (Phase.IDLE, Event.PROMPTED): (Phase.RUNNING, Effect.PREPARE),
    (Phase.RUNNING, Event.READY): (Phase.STREAMING, Effect.REQUEST),
    (Phase.RUNNING, Event.DONE): (Phase.IDLE, Effect.END),
    (Phase.RUNNING, Event.TROUBLED): (Phase.PAUSED, Effect.ASK),
    (Phase.RUNNING, Event.TOO_LONG): (Phase.RUNNING, Effect.COMPACT),
    (Phase.RUNNING, Event.RESUMED): (Phase.RUNNING, Effect.PREPARE),
    (Phase.STREAMING, Event.CALLED): (Phase.EXECUTING, Effect.EXECUTE),
    (Phase.STREAMING, Event.SAID): (Phase.RUNNING, Effect.PREPARE),
    (Phase.STREAMING, Event.TOO_LONG): (Phase.RUNNING, Effect.COMPACT),
    (Phase.STREAMING, Event.TROUBLED): (Phase.PAUSED, Effect.ASK),
    (Phase.EXECUTING, Event.EXECUTED): (Phase.RUNNING, Effect.PREPARE),
    (Phase.EXECUTING, Event.ASKED): (Phase.WAITING, None),
    (Phase.WAITING, Event.ASKED): (Phase.WAITING, None),
    (Phase.WAITING, Event.ANSWERED): (Phase.EXECUTING, None),
    (Phase.PAUSED, Event.RESUMED): (Phase.RUNNING, Effect.PREPARE),
    (Phase.STOPPED, Event.SETTLED): (Phase.IDLE, Effect.END),
    **{
        (phase, event): _STOP
        for phase in Phase
        if phase not in (Phase.IDLE, Phase.STOPPED)
        for event in (Event.ABORTED, Event.FAILED)
    },
    (Phase.IDLE, Event.ABORTED): (Phase.IDLE, None),
    (Phase.STOPPED, Event.ABORTED): (Phase.STOPPED, None),
    (Phase.STOPPED, Event.FAILED): (Phase.STOPPED, None),
}
"""What follows; what is not here cannot happen."""


def step(phase: Phase, event: Event) -> Step:
    """The next state, and what is to be done in it."""
    found = TABLE.get((phase, event))
    assert found is not None, f"{event} cannot happen while {phase}"
    return found
