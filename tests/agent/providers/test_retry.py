"""A model is asked again as often as that may help; tried in time that is not spent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import pytest

from holdfast.agent.failures import KeyRefused, ModelOverloaded
from holdfast.agent.model import AnswerDiscarded, AnyAnswerDelta, RetryScheduled, TextDelta
from holdfast.agent.providers.retry import attempting
from holdfast.failures import Failure, RetryPolicy, to_wire
from tests.simulation.clock import VirtualTimeLoop

POLICY = RetryPolicy(waits=((1.0, 3.0), (4.0, 8.0)))
BUSY = ModelOverloaded(provider="there", model="m", status=503, word="w")
REFUSED = KeyRefused(provider="there", model="m", status=401, word="w")
A, B = TextDelta("a"), TextDelta("b")


class Half:
    """Draws the middle."""

    def fraction(self) -> float:
        return 0.5

    def draw(self, count: int) -> bytes:
        return b"\x80" * count


def told(
    *tries: Sequence[AnyAnswerDelta | Failure],
) -> tuple[list[AnyAnswerDelta], Failure | None, float, int]:
    """What is told of these tries, what is raised, how long it takes and how many are made."""
    made, pieces, raised = 0, list[AnyAnswerDelta](), None

    async def ask() -> AsyncGenerator[Sequence[AnyAnswerDelta]]:
        nonlocal made
        made += 1
        for each in tries[made - 1]:
            if isinstance(each, Failure):
                raise each
            yield (each,)

    async def main() -> None:
        nonlocal raised
        try:
            async for batch in attempting(ask, policy=POLICY, chance=Half()):
                pieces.extend(batch)
        except Failure as failure:
            raised = failure

    loop = VirtualTimeLoop(seed=1)
    try:
        loop.run_until_complete(main())
        return pieces, raised, loop.now, made
    finally:
        loop.close()


def test_a_good_answer_is_passed_on() -> None:
    assert told([A, B]) == ([A, B], None, 0.0, 1)


@pytest.mark.promise("T5")
def test_each_try_begins_anew() -> None:
    wire = to_wire(BUSY)
    pieces = [
        RetryScheduled(2.0, wire, 2),
        A,
        AnswerDiscarded(wire),
        RetryScheduled(6.0, wire, 3),
        B,
    ]

    assert told([BUSY], [A, BUSY], [B]) == (pieces, None, 8.0, 3)


@pytest.mark.promise("T5")
def test_after_the_last_try_the_failure_is_raised() -> None:
    _, raised, seconds, made = told([BUSY], [BUSY], [A, BUSY])

    assert (raised, seconds, made) == (BUSY, 8.0, 3)
    assert raised is not None
    assert raised.__notes__[-1] == "Tried 3 times."


def test_what_does_not_pass_is_raised_at_once() -> None:
    assert told([A, REFUSED]) == ([A], REFUSED, 0.0, 1)
