"""What a turn does next is in one table, and nothing else can happen."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.agent.loop import TABLE, Effect, Event, Phase, step

IMPOSSIBLE = {
    Phase.IDLE: {*Event} - {Event.PROMPTED, Event.ABORTED},
    Phase.RUNNING: {
        Event.PROMPTED,
        Event.CALLED,
        Event.SAID,
        Event.EXECUTED,
        Event.ASKED,
        Event.ANSWERED,
        Event.SETTLED,
    },
    Phase.STREAMING: {
        Event.PROMPTED,
        Event.READY,
        Event.DONE,
        Event.EXECUTED,
        Event.ASKED,
        Event.ANSWERED,
        Event.RESUMED,
        Event.SETTLED,
    },
    Phase.EXECUTING: {*Event} - {Event.EXECUTED, Event.ASKED, Event.ABORTED, Event.FAILED},
    Phase.WAITING: {*Event} - {Event.ASKED, Event.ANSWERED, Event.ABORTED, Event.FAILED},
    Phase.PAUSED: {*Event} - {Event.RESUMED, Event.ABORTED, Event.FAILED},
    Phase.STOPPED: {*Event} - {Event.SETTLED, Event.ABORTED, Event.FAILED},
}


@pytest.mark.parametrize(("phase", "event"), list(product(Phase, Event)))
def test_every_event_in_every_state_is_foreseen(phase: Phase, event: Event) -> None:
    if event in IMPOSSIBLE[phase]:
        with pytest.raises(AssertionError):
            step(phase, event)
    else:
        step(phase, event)


@pytest.mark.promise("A11")
@pytest.mark.parametrize("phase", [each for each in Phase if each is not Phase.IDLE])
def test_whatever_runs_can_be_stopped_and_ends(phase: Phase) -> None:
    stopped, effect = step(phase, Event.ABORTED)

    assert (stopped, effect in (Effect.SETTLE, None)) == (Phase.STOPPED, True)
    assert step(stopped, Event.SETTLED) == (Phase.IDLE, Effect.END)


@given(st.data())
def test_a_turn_ends_only_settled_or_done(data: st.DataObject) -> None:
    phase, effect = step(Phase.IDLE, Event.PROMPTED)
    for _ in range(30):
        possible = sorted(event for at, event in TABLE if at is phase)
        event = data.draw(st.sampled_from(possible))
        phase, effect = step(phase, event)
        if phase is Phase.IDLE:
            assert effect is Effect.END
            assert event in (Event.DONE, Event.SETTLED)
            return
