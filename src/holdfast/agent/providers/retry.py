"""Ask a model until its answer is whole or asking again is no use, and tell of every try."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

import anyio

from holdfast.agent.model import AnswerDiscarded, AnyAnswerDelta, RetryScheduled
from holdfast.failures import Failure, GiveUp, RetryPolicy, retry_decision, to_wire
from holdfast.world import RandomSource

# Decide whether a model is asked once more, and what is told about it.


@dataclass(frozen=True, slots=True)
class Once:
    """Tell these pieces, wait, and ask again; it will be try number `attempt`."""

    pieces: tuple[AnyAnswerDelta, ...]
    wait: float
    attempt: int


def once_more(
    failure: Failure, *, attempt: int, is_begun: bool, chance: float, policy: RetryPolicy
) -> Once | None:
    """What to do after try number `attempt`; None when asking again is no use.

    To ask twice is always safe: nothing is done before an answer is whole. `is_begun` says that
    pieces of this one have been told already, which are void then.
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
    """What `ask` tells, over and over as long as it fails and that may help; then its failure."""
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
