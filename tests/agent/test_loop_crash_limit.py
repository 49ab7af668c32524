"""An agent that keeps crashing is left alone for a while."""

from __future__ import annotations

import pytest

from holdfast.agent.loop import CrashHistory


@pytest.mark.parametrize(
    ("times", "now", "wait"),
    [
        ((), 0.0, None),
        ((0.0, 1.0), 1.0, None),
        ((0.0, 1.0, 2.0), 2.0, 61),
        ((0.0, 1.0, 2.0), 61.5, 1),
        ((0.0, 1.0, 2.0), 62.0, None),
        ((0.0, 1.0, 60.1), 60.1, None),
        ((0.0, 30.0, 50.0, 80.0), 80.0, 61),
    ],
)
def test_three_within_a_minute_are_too_many(
    times: tuple[float, ...], now: float, wait: int | None
) -> None:
    crashes = CrashHistory()
    for at in times:
        crashes.note("bug", now=at)

    refusal = crashes.refusal(now=now)

    assert (None if refusal is None else refusal.wait) == wait
    assert refusal is None or (refusal.crashes, refusal.reason) == (3, "bug")
