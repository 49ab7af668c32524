"""A model is asked again where that helps, and what was told of it before is void."""

from __future__ import annotations

import pytest

from holdfast.agent.failures import KeyRefused, RateLimited
from holdfast.agent.model import AnswerDiscarded, RetryScheduled
from holdfast.agent.providers.retry import Once, once_more
from holdfast.failures import RetryPolicy, to_wire

POLICY = RetryPolicy(waits=((1.0, 3.0), (4.0, 4.0)), wait_longest=10.0)
FACTS = {"provider": "there", "model": "m", "status": 429, "word": "w"}


def limited(after: float | None = None) -> RateLimited:
    return RateLimited(provider="there", model="m", status=429, word="w").narrow(retry_after=after)


@pytest.mark.promise("T5")
@pytest.mark.parametrize(
    ("attempt", "after", "is_begun", "expected"),
    [
        (1, None, False, (2.0, False)),
        (1, None, True, (2.0, True)),
        (2, None, False, (4.0, False)),
        (1, 9.0, False, (9.0, False)),
        (1, 11.0, False, None),
        (3, None, True, None),
    ],
)
def test_when_it_is_asked_again(
    attempt: int, after: float | None, is_begun: bool, expected: tuple[float, bool] | None
) -> None:
    failure = limited(after)
    found = once_more(failure, attempt=attempt, is_begun=is_begun, chance=0.5, policy=POLICY)

    told = to_wire(failure)
    if expected is None:
        assert found is None
    else:
        wait, void = expected
        waiting = RetryScheduled(wait, told, attempt + 1)
        pieces = (AnswerDiscarded(told), waiting) if void else (waiting,)
        assert found == Once(pieces, wait, attempt + 1)


def test_what_cannot_help_is_not_tried() -> None:
    refused = KeyRefused(provider="there", model="m", status=401, word="w")

    assert once_more(refused, attempt=1, is_begun=False, chance=0.0, policy=POLICY) is None
