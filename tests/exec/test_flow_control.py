"""A client is told what it holds and no more, and says what it took before anyone waits for it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.exec.flow_control import EVENTS_MAX, Acknowledgements, Credit, size_of
from holdfast.exec.model import Closed, Event, Exited, Output
from holdfast.exec.output_index import RECORD_BYTES


def out(seq: int, size: int = 1) -> Output:
    return Output(seq, "stdout", bytes(size))


def test_what_is_told_is_used_up_and_what_is_taken_comes_back() -> None:
    credit = Credit(3 * size_of(out(1, 68)))

    credit.tell(1, [68, 68])
    assert (credit.bytes_left, credit.taken) == (100, 0)
    credit.tell(3, [500])
    assert credit.bytes_left == 0
    credit.take(2)
    assert (credit.bytes_left, credit.taken) == (0, 2)
    credit.take(3)
    assert (credit.bytes_left, credit.taken) == (300, 3)
    credit.take(1)
    assert credit.taken == 3


def test_small_events_are_counted_too() -> None:
    credit = Credit(2**30)

    credit.tell(1, [1] * EVENTS_MAX)

    assert (credit.events_left, credit.bytes_left) == (0, 0)


@pytest.mark.parametrize(
    ("sizes", "bytes_max", "due"),
    [
        ([100], None, [False]),
        ([68, 68], 400, [False, True]),
        ([500], 400, [True]),
        ([0] * 4, 128, [False, True, False, True]),
    ],
)
def test_what_was_taken_is_said_at_half_of_it(
    sizes: list[int], bytes_max: int | None, due: list[bool]
) -> None:
    receipts = Acknowledgements()

    said = [receipts.take([out(seq, size)], bytes_max) for seq, size in enumerate(sizes, 1)]

    assert said == due


@dataclass
class Exchange:
    """A server with all the events there are, and a client that takes some of what it is told."""

    events: list[Event]
    bytes_max: int
    told: int = 0
    taken: int = 0
    receipts: Acknowledgements = field(default_factory=Acknowledgements)

    def __post_init__(self) -> None:
        self.credit = Credit(self.bytes_max)

    def tell(self) -> None:
        while self.told < len(self.events) and self.credit.bytes_left:
            event = self.events[self.told]
            self.credit.tell(event.seq, [size_of(event) - RECORD_BYTES])
            self.told += 1

    def take(self, count: int) -> None:
        batch = self.events[self.taken : min(self.told, self.taken + count)]
        self.taken += len(batch)
        if self.receipts.take(batch, self.bytes_max):
            self.credit.take(self.taken)

    @property
    def unread(self) -> int:
        return sum(size_of(event) for event in self.events[self.taken : self.told])


@pytest.mark.promise("X11")
@given(
    sizes=st.lists(st.integers(0, 300), max_size=60),
    bytes_max=st.integers(1, 1000),
    counts=st.lists(st.integers(1, 10), min_size=1),
)
def test_everything_is_told_in_the_end_and_little_is_unread(
    sizes: list[int], bytes_max: int, counts: list[int]
) -> None:
    events: list[Event] = [out(seq, size) for seq, size in enumerate(sizes, 1)]
    events += [Exited(len(events) + 1, 0), Closed(len(events) + 2)]
    exchange = Exchange(events, bytes_max)

    for step in range(10 * len(events)):
        exchange.tell()
        assert exchange.unread <= bytes_max + 332
        exchange.take(counts[step % len(counts)])

    assert exchange.taken == len(events)
