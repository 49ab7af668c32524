"""Decide whether to make a failed call again, and when.

Only what may succeed (`retryable`) and may safely be repeated is retried, a few times, with
jitter. A server that names a wait is obeyed: never called earlier, and never waited for longer than
the policy allows, so a longer wait than that hands control back. A wait of 0 names none.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.failures.base import Failure


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often to try again, and how long to wait each time: a range to draw from, in seconds."""

    waits: tuple[tuple[float, float], ...] = ((0.1, 0.5), (1.0, 2.0), (4.0, 8.0))
    wait_longest: float = 60.0

    def __post_init__(self) -> None:
        assert all(0.0 <= low <= high <= self.wait_longest for low, high in self.waits)


@dataclass(frozen=True, slots=True)
class RetryLater:
    """Make the call again after `wait` seconds; it will be try number `attempt`."""

    wait: float
    attempt: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Stop and hand control back."""

    reason: str


def retry_decision(
    failure: Failure, *, attempt: int, safe: bool, chance: float, policy: RetryPolicy
) -> RetryLater | GiveUp:
    """Decide after attempt number `attempt` failed; `chance` in [0, 1) selects the jitter."""
    assert attempt >= 1
    assert 0.0 <= chance < 1.0
    if not failure.retryable:
        return GiveUp("repeating cannot help")
    if not safe:
        return GiveUp("repeating is not safe")
    if attempt > len(policy.waits):
        return GiveUp("tried often enough")
    low, high = policy.waits[attempt - 1]
    wait = low + (high - low) * chance
    # `Retry-After: 0`, or a date that has passed, would make all retries at once: back off instead.
    if failure.retry_after is not None and failure.retry_after > 0.0:
        wait = failure.retry_after
    if wait > policy.wait_longest:
        return GiveUp("asked to wait longer than allowed")
    return RetryLater(wait, attempt + 1)
