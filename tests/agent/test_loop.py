"""What a turn does next is in one table, and nothing else can happen."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.agent.loop import TABLE, LoopEffect, LoopEvent, LoopPhase, step

IMPOSSIBLE = {
    LoopPhase.IDLE: {*LoopEvent} - {LoopEvent.PROMPTED, LoopEvent.ABORTED},
    LoopPhase.RUNNING: {
        LoopEvent.PROMPTED,
        LoopEvent.CALLED,
        LoopEvent.SAID,
        LoopEvent.EXECUTED,
        LoopEvent.ASKED,
        LoopEvent.ANSWERED,
        LoopEvent.SETTLED,
    },
    LoopPhase.STREAMING: {
        LoopEvent.PROMPTED,
        LoopEvent.READY,
        LoopEvent.DONE,
        LoopEvent.EXECUTED,
        LoopEvent.ASKED,
        LoopEvent.ANSWERED,
        LoopEvent.RESUMED,
        LoopEvent.SETTLED,
    },
    LoopPhase.EXECUTING: {*LoopEvent}
    - {LoopEvent.EXECUTED, LoopEvent.ASKED, LoopEvent.ABORTED, LoopEvent.FAILED},
    LoopPhase.WAITING: {*LoopEvent}
    - {LoopEvent.ASKED, LoopEvent.ANSWERED, LoopEvent.ABORTED, LoopEvent.FAILED},
    LoopPhase.PAUSED: {*LoopEvent} - {LoopEvent.RESUMED, LoopEvent.ABORTED, LoopEvent.FAILED},
    LoopPhase.STOPPED: {*LoopEvent} - {LoopEvent.SETTLED, LoopEvent.ABORTED, LoopEvent.FAILED},
}


@pytest.mark.parametrize(("phase", "event"), list(product(LoopPhase, LoopEvent)))
def test_every_event_in_every_state_is_foreseen(phase: LoopPhase, event: LoopEvent) -> None:
    if event in IMPOSSIBLE[phase]:
        with pytest.raises(AssertionError):
            step(phase, event)
    else:
        step(phase, event)


@pytest.mark.promise("A11")
@pytest.mark.parametrize("phase", [each for each in LoopPhase if each is not LoopPhase.IDLE])
def test_whatever_runs_can_be_stopped_and_ends(phase: LoopPhase) -> None:
    stopped, effect = step(phase, LoopEvent.ABORTED)

    assert (stopped, effect in (LoopEffect.SETTLE, None)) == (LoopPhase.STOPPED, True)
    assert step(stopped, LoopEvent.SETTLED) == (LoopPhase.IDLE, LoopEffect.END)


@given(st.data())
def test_a_turn_ends_only_settled_or_done(data: st.DataObject) -> None:
    phase, effect = step(LoopPhase.IDLE, LoopEvent.PROMPTED)
    for _ in range(30):
        possible = sorted(event for at, event in TABLE if at is phase)
        event = data.draw(st.sampled_from(possible))
        phase, effect = step(phase, event)
        if phase is LoopPhase.IDLE:
            assert effect is LoopEffect.END
            assert event in (LoopEvent.DONE, LoopEvent.SETTLED)
            return
