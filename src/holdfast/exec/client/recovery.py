"""Decide how a client survives losing its connection.

    begin ──▶ Recovering ──Resumed──▶ Connected
               ▲  └──────────┬───────────┘
               │          Dropped
               └── waiting can help ── else ──▶ Failed

Pure: no waiting, dialling or logging. `step` receives an event with its time and returns the next
state and the dials that the shell must make.

Invariants: every dial starts a new generation, and events of an older one change nothing; at most
one dial is open, and none outlives its window; `Failed` is final and has one failure. A failure
whose kind does not pass (a refused token, an expired session) ends recovery at once. The window
must be shorter than the time for which the server keeps a detached session. Attempts are reset
only after a connection has lasted `settled` seconds, so that a flapping connection backs off.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.exec.failures import RecoveryTimedOut
from holdfast.failures import Failure


@dataclass(frozen=True, slots=True)
class RecoveryPolicy:
    """Backoff and timeouts in seconds; the window must end before the server forgets the
    session.
    """

    window: float = 25.0
    wait_first: float = 0.1
    wait_longest: float = 1.0
    settled: float = 10.0
    answer_longest: float = 10.0  # for a dial, and for each answer of a greeting

    def __post_init__(self) -> None:
        assert 0.0 < self.wait_first <= self.wait_longest < self.window

    def wait(self, attempt: int) -> float:
        """Return the seconds to wait before an attempt; none before the first."""
        if attempt == 1:
            return 0.0
        return min(self.wait_longest, self.wait_first * 2.0 ** min(attempt - 2, 32))


@dataclass(frozen=True, slots=True)
class Connected:
    """Connected since a time; attempts are reset only once the connection has lasted."""

    generation: int
    since: float
    attempt: int


@dataclass(frozen=True, slots=True)
class Recovering:
    """A dial is open, and must succeed by the deadline."""

    generation: int
    deadline: float
    attempt: int


@dataclass(frozen=True, slots=True)
class Failed:
    """Final state, with its failure."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class Resumed:
    """A connection is open and has caught up."""

    generation: int
    at: float


@dataclass(frozen=True, slots=True)
class Dropped:
    """A connection ended, or could not be opened."""

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
    """Return the first state and dial."""
    return _dial(Recovering(0, now + policy.window, 0), now, policy)


def step(state: State, event: Event, policy: RecoveryPolicy) -> Step:
    """Handle an event of a connection."""
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
