"""Decide whether a model is asked once more, and what is told about it."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.agent.model import AnyPiece, Discarded, Waiting
from holdfast.failures import Enough, Failure, RetryPolicy, decide, to_wire


@dataclass(frozen=True, slots=True)
class Once:
    """Tell these pieces, wait, and ask again; it will be try number `attempt`."""

    pieces: tuple[AnyPiece, ...]
    wait: float
    attempt: int


def once_more(
    failure: Failure, *, attempt: int, is_begun: bool, chance: float, policy: RetryPolicy
) -> Once | None:
    """What to do after try number `attempt`; None when asking again is no use.

    To ask twice is always safe: nothing is done before an answer is whole. `is_begun` says that
    pieces of this one have been told already, which are void then.
    """
    verdict = decide(failure, attempt=attempt, safe=True, chance=chance, policy=policy)
    if isinstance(verdict, Enough):
        return None
    told = to_wire(failure)
    waiting = Waiting(seconds=verdict.wait, failure=told, attempt=verdict.attempt)
    pieces = (Discarded(told), waiting) if is_begun else (waiting,)
    return Once(pieces, verdict.wait, verdict.attempt)
