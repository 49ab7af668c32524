"""A backlog is bounded, and says what it dropped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.rpc.backlog import Backlog, Overflow
from holdfast.rpc.failures import SubscriberDropped
from holdfast.rpc.model import Notification


def notes(*numbers: int) -> list[Notification]:
    return [Notification(str(number)) for number in numbers]


def taken(backlog: Backlog) -> list[int]:
    return [int(note.method) for note in backlog.take()]


def test_what_fits_is_handed_over_once_and_in_order() -> None:
    backlog = Backlog(overflow=Overflow.END, items_max=4, bytes_max=100)
    backlog.put(notes(1, 2), 10)
    backlog.put(notes(3, 4), 10)

    assert (taken(backlog), taken(backlog), backlog.dropped) == ([1, 2, 3, 4], [], 0)


@pytest.mark.promise("F23")
@pytest.mark.parametrize(("items_max", "bytes_max"), [(3, 100), (100, 25)])
def test_the_oldest_go_first_and_are_counted(items_max: int, bytes_max: int) -> None:
    backlog = Backlog(overflow=Overflow.DROP_OLDEST, items_max=items_max, bytes_max=bytes_max)
    for number in (1, 3, 5):
        backlog.put(notes(number, number + 1), 20)

    assert (taken(backlog), backlog.dropped) == ([5, 6], 4)


@pytest.mark.promise("F23")
def test_a_reader_that_must_miss_nothing_is_told_that_it_did() -> None:
    backlog = Backlog(overflow=Overflow.END, items_max=2, bytes_max=100)
    backlog.put(notes(1, 2), 1)

    with pytest.raises(SubscriberDropped) as raised:
        backlog.put(notes(3), 1)

    assert raised.value == SubscriberDropped(dropped=2)


@given(st.lists(st.integers(1, 9), max_size=40), st.integers(1, 20))
def test_never_more_than_the_bound_and_one_batch(sizes: list[int], items_max: int) -> None:
    backlog = Backlog(overflow=Overflow.DROP_OLDEST, items_max=items_max, bytes_max=10**9)
    for size in sizes:
        backlog.put(notes(*range(size)), size)

    kept = len(backlog.take())
    assert kept <= max(items_max, sizes[-1] if sizes else 0)
    assert kept + backlog.dropped == sum(sizes)
