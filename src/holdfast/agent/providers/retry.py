"""Retries of requests to a model, reported as deltas."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

import anyio

from holdfast.agent.model import AnswerDiscarded, AnyAnswerDelta, RetryScheduled
from holdfast.failures import Failure, GiveUp, RetryPolicy, retry_decision, to_wire
from holdfast.world import RandomSource

# Retry decision.


@dataclass(frozen=True, slots=True)
class Once:
    """Emit these deltas, wait, and send the request again as number `attempt`."""

    pieces: tuple[AnyAnswerDelta, ...]
    wait: float
    attempt: int


def once_more(
    failure: Failure, *, attempt: int, is_begun: bool, chance: float, policy: RetryPolicy
) -> Once | None:
    """Return what to do after attempt number `attempt`; None if a retry does not help.

    A retry is always safe: no tool runs before an answer is complete. `is_begun`: deltas of this
    attempt were emitted already, and are void.
    """
    verdict = retry_decision(failure, attempt=attempt, safe=True, chance=chance, policy=policy)
    if isinstance(verdict, GiveUp):
        return None
    told = to_wire(failure)
    waiting = RetryScheduled(seconds=verdict.wait, failure=told, attempt=verdict.attempt)
    pieces = (AnswerDiscarded(told), waiting) if is_begun else (waiting,)
    return Once(pieces, verdict.wait, verdict.attempt)


async def attempting(
    ask: Callable[[], AsyncGenerator[Sequence[AnyAnswerDelta]]],
    *,
    policy: RetryPolicy,
    chance: RandomSource,
) -> AsyncGenerator[Sequence[AnyAnswerDelta]]:
    """Yield the deltas of `ask`, repeated while it fails and a retry may help; then raise."""
    attempt = 1
    while True:
        is_begun = False
        try:
            async with aclosing(ask()) as batches:
                async for batch in batches:
                    is_begun = True
                    yield batch
            return
        except Failure as failure:
            again = once_more(
                failure,
                attempt=attempt,
                is_begun=is_begun,
                chance=chance.fraction(),
                policy=policy,
            )
            if again is None:
                failure.add_note(f"Tried {attempt} times.")
                raise
        yield again.pieces
        await anyio.sleep(again.wait)
        attempt = again.attempt
