"""A host is given up when it does not answer, or answers and does nothing."""

from __future__ import annotations

import pytest

from holdfast.host.supervision import JOURNAL_STUCK, TURN_STUCK, PingState, answered, missed

FINE: dict[str, float] = {"turn": 0.0, "journal": 0.0}
STUCK: dict[str, float] = {"turn": TURN_STUCK + 1, "journal": 0.0}
DISK: dict[str, float] = {"turn": 0.0, "journal": JOURNAL_STUCK + 1}


@pytest.mark.promise("A5")
@pytest.mark.parametrize(
    ("answers", "misses"),
    [
        ([FINE, FINE], 0),
        ([None, None], 2),
        ([None, None, FINE], 0),
        ([None, STUCK, DISK], 3),
        ([FINE, None, FINE, None], 1),
    ],
)
def test_what_counts_as_missed(answers: list[dict[str, float] | None], misses: int) -> None:
    watched = PingState()
    for answer in answers:
        watched = missed(watched) if answer is None else answered(watched, **answer)

    assert (watched.misses, watched.is_responsive) == (misses, misses < 3)
