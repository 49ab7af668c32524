"""Make a failed call again where that may help: visibly, a few times, never in secret."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import anyio

from holdfast.failures import Failure, GiveUp, RetryPolicy, retry_decision
from holdfast.world.clock import RandomSource

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class RetryWait:
    """A call failed and is made again after `wait` seconds: retry number `retry` of the most."""

    failure: Failure
    wait: float
    retry: int
    retries_max: int


async def retrying(
    call: Callable[[], Awaitable[Answer]],
    *,
    safe: bool,
    policy: RetryPolicy,
    chance: RandomSource,
    announce: Callable[[RetryWait], Awaitable[None]],
) -> Answer:
    """Retry a call until it succeeds or the policy gives up; then raise its last failure.

    `safe` says that making exactly this call twice does no harm. Every wait is announced before
    it begins, and can be cancelled. The failure carries a note of how often it was tried.
    """
    attempt = 1
    while True:
        try:
            return await call()
        except Failure as failure:
            drawn = chance.fraction()
            verdict = retry_decision(
                failure, attempt=attempt, safe=safe, chance=drawn, policy=policy
            )
            if isinstance(verdict, GiveUp):
                failure.add_note(f"Tried {attempt} times: {verdict.reason}.")
                raise
            news = RetryWait(failure, verdict.wait, attempt, len(policy.waits))
        await announce(news)
        await anyio.sleep(news.wait)
        attempt = verdict.attempt
