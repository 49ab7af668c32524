"""Events are handed on once, in order and without holes, or a gap is named."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from holdfast.exec.client.events import EventSequence
from holdfast.exec.failures import ReplayGap
from holdfast.exec.model import Closed, Event, Exited, Output, Page


def out(seq: int, size: int = 1) -> Output:
    return Output(seq, "stdout", b"%d" % seq * size)


def page(
    *seqs: int, next_seq: int, status: int | None = None, closed: bool = False, first: int = 0
) -> Page:
    return Page(
        tuple(out(seq) for seq in seqs), next_seq, status, closed=closed, first_retained=first
    )


@pytest.mark.parametrize(
    ("arriving", "handed_on"),
    [([1, 2, 3], [1, 2, 3]), ([2, 1, 3], [1, 2, 3]), ([1, 1, 2, 1], [1, 2]), ([3, 2], [])],
)
def test_news_is_put_in_order(arriving: list[int], handed_on: list[int]) -> None:
    sequence = EventSequence("p")
    got: list[Event] = []

    for seq in arriving:
        sequence.live(out(seq))
        got += sequence.take()

    assert got == [out(seq) for seq in handed_on]


@pytest.mark.promise("X4")
@pytest.mark.parametrize(
    ("before", "kept", "handed_on"),
    [
        ([], page(next_seq=1), []),
        ([], page(1, 2, next_seq=3), [out(1), out(2)]),
        ([], page(1, next_seq=3, status=5), [out(1), Exited(2, 5)]),
        ([], page(2, next_seq=3, status=5), [Exited(1, 5), out(2)]),
        ([], page(next_seq=3, status=0, closed=True), [Exited(1, 0), Closed(2)]),
        (
            [],
            page(1, 3, next_seq=5, status=7, closed=True),
            [out(1), Exited(2, 7), out(3), Closed(4)],
        ),
        (
            [Exited(1, 5)],
            page(2, next_seq=4, status=5, closed=True),
            [Exited(1, 5), out(2), Closed(3)],
        ),
        ([Exited(3, 5)], page(1, 2, next_seq=4, status=5), [out(1), out(2), Exited(3, 5)]),
        (
            [Closed(3)],
            page(1, next_seq=4, status=0, closed=True),
            [out(1), Exited(2, 0), Closed(3)],
        ),
        ([out(1), out(4)], page(2, 3, next_seq=4), [out(1), out(2), out(3), out(4)]),
        ([], page(1, 3, next_seq=4, status=5, closed=True), [out(1), Exited(2, 5), out(3)]),
        ([], page(1, 3, next_seq=4, status=5, first=1), [out(1), Exited(2, 5), out(3)]),
    ],
)
def test_exit_and_close_get_their_places(
    before: list[Event], kept: Page, handed_on: list[Event]
) -> None:
    sequence = EventSequence("p")
    for event in before:
        sequence.live(event)
    got = sequence.take()

    sequence.replay(kept)

    assert got + sequence.take() == handed_on


@pytest.mark.promise("X5")
@pytest.mark.parametrize(
    ("kept", "gap"),
    [
        (page(3, next_seq=4), (1, 3)),
        (page(2, next_seq=3), (1, 2)),
        (page(next_seq=3), (1, 3)),
        (page(3, next_seq=4, status=0), (1, 3)),
        (page(2, 4, next_seq=5, status=0), (1, 2)),
        (page(2, next_seq=5, status=0, closed=True), (1, 2)),
        (page(2, next_seq=3, status=0, first=2), (1, 2)),
        (page(next_seq=10**18), (1, 10**18)),
    ],
)
def test_a_hole_in_what_is_kept_is_named(kept: Page, gap: tuple[int, int]) -> None:
    expected, oldest = gap
    with pytest.raises(ReplayGap) as raised:
        EventSequence("p").replay(kept)

    assert raised.value == ReplayGap(process="p", expected=expected, oldest=oldest)


def test_what_finds_no_room_is_known_to_be_missing_and_can_be_read_again() -> None:
    sequence = EventSequence("p", held_max=2)
    for seq in (1, 2, 3):
        sequence.live(out(seq))
    assert (sequence.is_behind, sequence.has_room) == (True, False)

    assert sequence.take() == [out(1), out(2)]
    sequence.replay(page(3, next_seq=4))

    assert sequence.take() == [out(3)]
    assert (sequence.is_behind, sequence.has_room) == (False, True)


def test_what_came_early_is_bounded_in_bytes_and_leaves_room_for_what_is_due() -> None:
    sequence = EventSequence("p", held_bytes_max=100)
    sequence.live(out(3, size=100))
    sequence.live(out(2))
    assert sequence.has_room

    sequence.live(out(1))

    assert sequence.take() == [out(1)]
    assert (sequence.is_behind, sequence.must_read) == (True, True)


def test_after_a_page_that_is_not_the_last_the_next_must_be_read() -> None:
    sequence = EventSequence("p")
    states: list[tuple[bool, bool]] = []

    for event in (out(2), replace(page(1, next_seq=3), is_whole=False), page(3, next_seq=4)):
        sequence.replay(event) if isinstance(event, Page) else sequence.live(event)
        states.append((sequence.is_behind, sequence.must_read))

    assert states == [(True, False), (True, True), (False, False)]


def test_the_status_is_known_however_far_behind_the_reader_is() -> None:
    sequence = EventSequence("p", held_max=1)
    sequence.live(out(1))
    sequence.live(out(2))
    sequence.live(Exited(3, 9))

    assert sequence.status == 9
    assert not sequence.is_complete


def test_it_is_complete_once_the_close_is_known_and_finished_once_it_is_taken() -> None:
    sequence = EventSequence("p")
    sequence.live(Exited(1, 0))
    sequence.live(Closed(2))
    assert (sequence.is_complete, sequence.is_finished) == (True, False)

    assert sequence.take() == [Exited(1, 0), Closed(2)]
    assert sequence.is_finished


class LossyServer(RuleBasedStateMachine):
    """A server that keeps the last few chunks, and a network that drops, repeats and reorders."""

    def __init__(self) -> None:
        super().__init__()
        self.sequence = EventSequence("p", held_max=4, held_bytes_max=1000)
        self.truth: list[Event] = []
        self.first_retained = 1
        self.got: list[Event] = []
        self.gap = False

    @property
    def status(self) -> int | None:
        return next((event.status for event in self.truth if isinstance(event, Exited)), None)

    @property
    def is_closed(self) -> bool:
        return bool(self.truth) and isinstance(self.truth[-1], Closed)

    @precondition(lambda self: not self.is_closed)
    @rule(what=st.sampled_from(["output", "output", "output", "exit", "close"]))
    def happen(self, what: str) -> None:
        seq = len(self.truth) + 1
        if what == "output":
            self.truth.append(out(seq))
        elif what == "exit" and self.status is None:
            self.truth.append(Exited(seq, 3))
        elif what == "close" and self.status is not None:
            self.truth.append(Closed(seq))

    @precondition(lambda self: self.truth and not self.gap)
    @rule(data=st.data())
    def deliver_any(self, data: st.DataObject) -> None:
        self.sequence.live(data.draw(st.sampled_from(self.truth)))

    @rule(kept=st.integers(0, 6))
    def forget(self, kept: int) -> None:
        outputs = [event.seq for event in self.truth if isinstance(event, Output)]
        dropped = outputs[: max(0, len(outputs) - kept)]
        self.first_retained = max([self.first_retained, *(seq + 1 for seq in dropped)])

    @precondition(lambda self: not self.gap)
    @rule(paged=st.booleans(), count=st.integers(1, 3), seen_before=st.integers(0, 3))
    def read(self, paged: bool, count: int, seen_before: int) -> None:
        after = max(0, self.sequence.known - seen_before)  # an answer to a question of long ago
        kept = [
            event
            for event in self.truth
            if isinstance(event, Output) and event.seq > after and event.seq >= self.first_retained
        ]
        shown = kept[:count] if paged else kept
        full = len(self.truth) + 1
        answer = Page(
            tuple(shown),
            shown[-1].seq + 1 if paged and shown else full,
            self.status,
            self.is_closed,
            first_retained=self.first_retained if paged else 0,
            is_whole=not paged or not shown,
        )
        lost = [
            event.seq
            for event in self.truth[self.sequence.known :]
            if isinstance(event, Output) and event.seq < self.first_retained
        ]
        try:
            self.sequence.replay(answer)
        except ReplayGap as failure:
            self.gap = True
            assert lost, "a gap is claimed where there is none"
            assert failure.expected <= lost[-1]
        else:
            assert self.sequence.told >= answer.next_seq - 1

    @rule()
    def take(self) -> None:
        self.got += self.sequence.take()

    @rule(paged=st.booleans())
    def catch_up(self, paged: bool) -> None:
        """One who reads on while it is behind misses nothing that is kept."""
        while not self.gap:
            self.take()
            self.read(paged=paged, count=2, seen_before=0)
            if not self.sequence.is_behind:
                break
        self.take()
        if not self.gap:
            assert self.got == self.truth
            assert self.sequence.is_finished == self.is_closed

    @invariant()
    def nothing_twice_nothing_skipped(self) -> None:
        assert self.got == self.truth[: len(self.got)]
        assert self.sequence.taken == len(self.got)


TestLossyServer = LossyServer.TestCase
