"""Silence is noticed within its limit, and only silence of the other side."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.rpc.transports.websocket_protocol import PingAction, PingPolicy, PingState, ping_step

PULSE = PingPolicy(every=5.0, silence_longest=10.0)


@pytest.mark.parametrize(
    ("watch", "heard", "expected"),
    [
        (PingState(0, 0), True, (PingState(0, 1), PingAction.WAIT)),
        (PingState(0, 1), True, (PingState(0, 0), PingAction.PING)),
        (PingState(0, 0), False, (PingState(1, 1), PingAction.WAIT)),
        (PingState(2, 1), False, (PingState(3, 0), PingAction.PING)),
        (PingState(3, 0), True, (PingState(0, 1), PingAction.WAIT)),
        (PingState(3, 0), False, (PingState(4, 0), PingAction.GIVE_UP)),
    ],
)
def test_look(watch: PingState, heard: bool, expected: tuple[PingState, PingAction]) -> None:
    assert ping_step(watch, PULSE, heard=heard) == expected


@given(
    st.floats(0.1, 60.0),
    st.floats(0.1, 60.0),
    st.lists(st.booleans(), max_size=50),
)
def test_whoever_falls_silent_is_given_up_in_time_and_was_asked_before(
    every: float, silence_longest: float, heard: list[bool]
) -> None:
    pulse = PingPolicy(every=every, silence_longest=silence_longest)
    watch = PingState()
    for one in heard:
        watch, _ = ping_step(watch, pulse, heard=one)
    watch, _ = ping_step(watch, pulse, heard=True)
    signs: list[PingAction] = []
    while PingAction.GIVE_UP not in signs:
        watch, sign = ping_step(watch, pulse, heard=False)
        signs.append(sign)
    waited = len(signs) * pulse.tick
    assert silence_longest <= waited < silence_longest + pulse.tick
    assert every * 1.5 > silence_longest or PingAction.PING in signs
