"""A host that dies is started again, ever later, and not for ever."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.host.supervision import STARTS_MAX, WITHIN, delay_before


@pytest.mark.promise("A7")
@pytest.mark.parametrize(
    ("starts", "delay"),
    [
        ((), 0.0),
        ((100.0,), 0.2),
        ((100.0, 101.0), 4.0),
        ((100.0, 101.0, 105.0), None),
        ((40.0, 101.0, 105.0), 4.0),
        ((1.0, 2.0, 3.0, 4.0), 0.0),
    ],
)
def test_when_it_is_started(starts: tuple[float, ...], delay: float | None) -> None:
    assert delay_before(starts, now=110.0) == delay


@pytest.mark.promise("A7")
@given(st.lists(st.floats(0.0, 20.0), max_size=200))
def test_no_minute_sees_more_starts_than_that(lives: list[float]) -> None:
    """Whatever it does between its starts."""
    starts: list[float] = []
    now = 0.0
    for life in lives:
        delay = delay_before(starts, now=now)
        if delay is not None:
            now += delay
            starts.append(now)
        now += life

    assert all(
        sum(1 for other in starts if start <= other < start + WITHIN) <= STARTS_MAX
        for start in starts
    )
