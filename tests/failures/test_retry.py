"""When a failed call is made again: row by row, then whatever the numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.failures import (
    Failure,
    GiveUp,
    Recovery,
    RetryLater,
    RetryPolicy,
    retry_decision,
)
from holdfast.rpc.failures import TooManyRequests

pytestmark = pytest.mark.promise("T5")

POLICY = RetryPolicy()
NOW = 784_111_777.0  # Sun, 06 Nov 1994 08:49:37 GMT, the example of the HTTP specification


def failure(*, retryable: bool = True, retry_after: float | None = None) -> Failure:
    made = TooManyRequests(in_flight_max=1)
    recovery = Recovery.RETRY_BACKOFF if retryable else Recovery.ESCALATE
    return made.narrow(recovery=recovery, retryable=retryable, retry_after=retry_after)


def test_the_default_is_three_retries_shortly_then_slower() -> None:
    assert POLICY.waits == ((0.1, 0.5), (1.0, 2.0), (4.0, 8.0))


@pytest.mark.parametrize(
    ("held", "attempt", "safe", "chance", "verdict"),
    [
        (failure(), 1, True, 0.0, RetryLater(0.1, 2)),
        (failure(), 2, True, 0.0, RetryLater(1.0, 3)),
        (failure(), 2, True, 0.5, RetryLater(1.5, 3)),
        (failure(), 3, True, 0.0, RetryLater(4.0, 4)),
        (failure(), 3, True, 0.75, RetryLater(7.0, 4)),
        (failure(), 4, True, 0.0, GiveUp("tried often enough")),
        (failure(), 100, True, 0.0, GiveUp("tried often enough")),
        (failure(retryable=False), 1, True, 0.0, GiveUp("repeating cannot help")),
        (failure(), 1, False, 0.0, GiveUp("repeating is not safe")),
        (failure(retryable=False), 1, False, 0.0, GiveUp("repeating cannot help")),
        (failure(retry_after=7.0), 1, True, 0.9, RetryLater(7.0, 2)),
        (failure(retry_after=0.0), 3, True, 0.5, RetryLater(6.0, 4)),
        (failure(retry_after=-3.0), 1, True, 0.0, RetryLater(0.1, 2)),
        (failure(retry_after=0.3), 1, True, 0.0, RetryLater(0.3, 2)),
        (failure(retry_after=0.3), 3, True, 0.0, RetryLater(0.3, 4)),
        (failure(retry_after=1.0), 3, True, 0.0, RetryLater(1.0, 4)),
        (failure(retry_after=60.0), 1, True, 0.0, RetryLater(60.0, 2)),
        (failure(retry_after=60.1), 1, True, 0.0, GiveUp("asked to wait longer than allowed")),
        (
            failure(retry_after=float("inf")),
            1,
            True,
            0.0,
            GiveUp("asked to wait longer than allowed"),
        ),
        (failure(retry_after=7.0), 4, True, 0.0, GiveUp("tried often enough")),
        (failure(retryable=False, retry_after=7.0), 1, True, 0.0, GiveUp("repeating cannot help")),
        (failure(retry_after=7.0), 1, False, 0.0, GiveUp("repeating is not safe")),
    ],
)
def test_verdict(
    held: Failure, attempt: int, safe: bool, chance: float, verdict: RetryLater | GiveUp
) -> None:
    assert retry_decision(held, attempt=attempt, safe=safe, chance=chance, policy=POLICY) == verdict


@st.composite
def policies(draw: st.DrawFn) -> RetryPolicy:
    longest = draw(st.floats(0, 1e6))
    bounds = st.floats(0, longest)
    ranges = st.tuples(bounds, bounds).map(lambda pair: (min(pair), max(pair)))
    return RetryPolicy(waits=tuple(draw(st.lists(ranges, max_size=6))), wait_longest=longest)


@given(
    policy=policies(),
    attempt=st.integers(1, 20),
    chance=st.floats(0, 1, exclude_max=True),
    retry_after=st.none() | st.floats(allow_nan=False),
    retryable=st.booleans(),
    safe=st.booleans(),
)
def test_whatever_the_numbers(  # one argument for each number
    policy: RetryPolicy,
    attempt: int,
    chance: float,
    retry_after: float | None,
    retryable: bool,
    safe: bool,
) -> None:
    held = failure(retryable=retryable, retry_after=retry_after)
    verdict = retry_decision(held, attempt=attempt, safe=safe, chance=chance, policy=policy)

    if isinstance(verdict, RetryLater):
        assert retryable
        assert safe
        assert attempt <= len(policy.waits)
        assert verdict.attempt == attempt + 1
        assert 0.0 <= verdict.wait <= policy.wait_longest
        assert retry_after is None or verdict.wait >= retry_after
    else:
        too_long = retry_after is not None and retry_after > policy.wait_longest
        assert not retryable or not safe or attempt > len(policy.waits) or too_long


@given(policies(), st.floats(0, 1, exclude_max=True))
def test_trying_always_ends(policy: RetryPolicy, chance: float) -> None:
    attempt, waited = 1, 0.0
    while isinstance(
        verdict := retry_decision(
            failure(), attempt=attempt, safe=True, chance=chance, policy=policy
        ),
        RetryLater,
    ):
        attempt, waited = verdict.attempt, waited + verdict.wait

    assert attempt == len(policy.waits) + 1
    assert waited <= policy.wait_longest * len(policy.waits)


@pytest.mark.parametrize(
    "waits", [((2.0, 1.0),), ((-1.0, 1.0),), ((0.0, 61.0),)], ids=["backwards", "past", "long"]
)
def test_a_policy_that_cannot_be_kept_is_a_bug(waits: tuple[tuple[float, float], ...]) -> None:
    with pytest.raises(AssertionError):
        RetryPolicy(waits=waits)
