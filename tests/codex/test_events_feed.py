"""What waits for a reader is bounded: deltas go first, and nothing is left out in silence."""

from __future__ import annotations

import pytest

from holdfast.codex.events import ThreadEventFeed
from holdfast.codex.failures import EventsLost
from holdfast.codex.model import EventsDropped, UnknownEvent
from holdfast.codex.wire.generated import AgentMessageDeltaNotification


def delta(number: int) -> AgentMessageDeltaNotification:
    return AgentMessageDeltaNotification("t", "u", "i", str(number))


def whole(number: int) -> UnknownEvent:
    return UnknownEvent(str(number))


def test_what_fits_is_handed_over_once_and_in_order() -> None:
    feed = ThreadEventFeed("t", items_max=10, bytes_max=1000)
    events = [whole(1), delta(2), whole(3)]
    feed.put(events[:2], 10)
    feed.put(events[2:], 10)

    assert (feed.take(), feed.take()) == (events, [])


@pytest.mark.promise("F24")
@pytest.mark.parametrize(("items_max", "bytes_max"), [(10, 10**9), (10**9, 100)])
def test_deltas_nobody_read_are_dropped_and_counted(items_max: int, bytes_max: int) -> None:
    feed = ThreadEventFeed("t", items_max=items_max, bytes_max=bytes_max)
    feed.put([whole(0)], 1)
    for number in range(1000):
        feed.put([delta(number)], 10)
    feed.put([whole(1)], 1)
    first, *rest = feed.take()

    assert isinstance(first, EventsDropped)
    kept = [event for event in rest if isinstance(event, AgentMessageDeltaNotification)]
    assert first.count + len(kept) == 1000
    assert [event for event in rest if isinstance(event, UnknownEvent)] == [whole(0), whole(1)]
    assert len(rest) <= 13


@pytest.mark.promise("F24")
def test_a_feed_ends_rather_than_leave_out_what_cannot_be_had_again() -> None:
    feed = ThreadEventFeed("t", items_max=10, bytes_max=10**9)

    with pytest.raises(EventsLost) as raised:
        for number in range(100):
            feed.put([whole(number)], 10)

    assert raised.value == EventsLost(thread="t")
    assert feed.take() == []
