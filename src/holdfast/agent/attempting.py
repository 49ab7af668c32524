"""Ask a model until its answer is whole or asking again is no use, and tell of every try."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

import anyio

from holdfast.agent.core.retrying import once_more
from holdfast.agent.model import AnyPiece
from holdfast.failures import Failure, RetryPolicy
from holdfast.world import Chance


async def attempting(
    ask: Callable[[], AsyncGenerator[Sequence[AnyPiece]]], *, policy: RetryPolicy, chance: Chance
) -> AsyncGenerator[Sequence[AnyPiece]]:
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
