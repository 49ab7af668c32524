"""Two sides speak the newest version that both know, or learn which of them is too old."""

from __future__ import annotations

import pytest

from holdfast.exec.protocol import OURS, Versions, agree, from_our_side
from holdfast.rpc.failures import VersionRefused


@pytest.mark.parametrize(
    ("ours", "theirs", "spoken"),
    [
        ((1, 1), None, None),
        ((1, 1), (1, 1), 1),
        ((1, 1), (1, 2), 1),
        ((1, 2), (1, 1), 1),
        ((1, 3), (2, 4), 3),
        ((2, 4), (1, 2), 2),
    ],
)
def test_the_newest_that_both_speak_is_spoken(
    ours: tuple[int, int], theirs: tuple[int, int] | None, spoken: int | None
) -> None:
    named = None if theirs is None else Versions(*theirs)

    assert agree(named, Versions(*ours)) == spoken


@pytest.mark.parametrize(
    ("ours", "theirs"), [((1, 1), (2, 2)), ((2, 3), (1, 1)), ((1, 1), (9, 2)), ((1, 1), (-3, 0))]
)
def test_versions_that_do_not_meet_are_named_by_both_sides_as_their_own(
    ours: tuple[int, int], theirs: tuple[int, int]
) -> None:
    with pytest.raises(VersionRefused) as here:
        agree(Versions(*theirs), Versions(*ours))
    with pytest.raises(VersionRefused) as there:
        agree(Versions(*ours), Versions(*theirs))

    assert here.value == from_our_side(there.value)
    assert (here.value.ours_oldest, here.value.ours_newest) == ours


def test_the_oldest_version_is_still_spoken() -> None:
    assert OURS.oldest == 1 <= OURS.newest
