"""Decide how a client survives losing its connection.

    begin ──▶ Recovering ──Resumed──▶ Connected
               ▲  └──────────┬───────────┘
               │          Dropped
               └── waiting can help ── else ──▶ Failed

Nothing here waits, dials or logs. `step` is told what happened and when, and answers with the next
state and the dials the shell must make. Every dial begins a generation; news of an older one
changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.exec.failures import RecoveryTimedOut
from holdfast.failures import Failure


@dataclass(frozen=True, slots=True)
class RecoveryPolicy:
    """How hard to try; the window must close before the server forgets us."""

    window: float = 25.0
    wait_first: float = 0.1
    wait_longest: float = 1.0
    settled: float = 10.0
    answer_longest: float = 10.0  # for a dial, and for each answer of a greeting

    def __post_init__(self) -> None:
        assert 0.0 < self.wait_first <= self.wait_longest < self.window

    def wait(self, attempt: int) -> float:
        """Seconds to wait before this attempt; the first is free."""
        if attempt == 1:
            return 0.0
        return min(self.wait_longest, self.wait_first * 2.0 ** min(attempt - 2, 32))


@dataclass(frozen=True, slots=True)
class Connected:
    """Attempts are forgotten only once a connection has lasted: flapping costs time."""

    generation: int
    since: float
    attempt: int


@dataclass(frozen=True, slots=True)
class Recovering:
    """A dial is under way, and must succeed by the deadline."""

    generation: int
    deadline: float
    attempt: int


@dataclass(frozen=True, slots=True)
class Failed:
    """It is over, for one reason that everyone is told."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class Resumed:
    """A connection was made and has caught up."""

    generation: int
    at: float


@dataclass(frozen=True, slots=True)
class Dropped:
    """A connection ended, or could not be made."""

    generation: int
    failure: Failure
    at: float


@dataclass(frozen=True, slots=True)
class Dial:
    """Connect after `wait` seconds; stop trying at `deadline`."""

    generation: int
    wait: float
    deadline: float


State = Connected | Recovering | Failed
Event = Resumed | Dropped
Step = tuple[State, tuple[Dial, ...]]


def begin(now: float, policy: RecoveryPolicy) -> Step:
    """Make the first connection."""
    return _dial(Recovering(0, now + policy.window, 0), now, policy)


def step(state: State, event: Event, policy: RecoveryPolicy) -> Step:
    """Take news of a connection."""
    if isinstance(state, Failed) or event.generation != state.generation:
        return state, ()
    match state, event:
        case Recovering(generation, _, attempt), Resumed(at=now):
            return Connected(generation, now, attempt), ()
        case _, Dropped(failure=failure) if not failure.kind.passes:
            return Failed(failure), ()
        case Connected(generation, since, attempt), Dropped(at=now):
            before = 0 if now - since >= policy.settled else attempt
            return _dial(Recovering(generation, now + policy.window, before), now, policy)
        case Recovering() as state, Dropped(at=now):
            return _dial(state, now, policy)
        case _:
            raise AssertionError(f"{event} cannot happen while {state}")


def _dial(last: Recovering, now: float, policy: RecoveryPolicy) -> Step:
    attempt, generation = last.attempt + 1, last.generation + 1
    wait = policy.wait(attempt)
    if now + wait >= last.deadline:
        return Failed(RecoveryTimedOut(window=policy.window, attempts=last.attempt)), ()
    dial = Dial(generation, wait, last.deadline)
    return Recovering(generation, last.deadline, attempt), (dial,)
