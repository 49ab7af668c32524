"""Silence is noticed within its limit, and only silence of the other side."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.rpc.transports.websocket_protocol import Pulse, Sign, Watch, look

PULSE = Pulse(every=5.0, silence_longest=10.0)


@pytest.mark.parametrize(
    ("watch", "heard", "expected"),
    [
        (Watch(0, 0), True, (Watch(0, 1), Sign.WAIT)),
        (Watch(0, 1), True, (Watch(0, 0), Sign.PING)),
        (Watch(0, 0), False, (Watch(1, 1), Sign.WAIT)),
        (Watch(2, 1), False, (Watch(3, 0), Sign.PING)),
        (Watch(3, 0), True, (Watch(0, 1), Sign.WAIT)),
        (Watch(3, 0), False, (Watch(4, 0), Sign.GIVE_UP)),
    ],
)
def test_look(watch: Watch, heard: bool, expected: tuple[Watch, Sign]) -> None:
    assert look(watch, PULSE, heard=heard) == expected


@given(
    st.floats(0.1, 60.0),
    st.floats(0.1, 60.0),
    st.lists(st.booleans(), max_size=50),
)
def test_whoever_falls_silent_is_given_up_in_time_and_was_asked_before(
    every: float, silence_longest: float, heard: list[bool]
) -> None:
    pulse = Pulse(every=every, silence_longest=silence_longest)
    watch = Watch()
    for one in heard:
        watch, _ = look(watch, pulse, heard=one)
    watch, _ = look(watch, pulse, heard=True)
    signs: list[Sign] = []
    while Sign.GIVE_UP not in signs:
        watch, sign = look(watch, pulse, heard=False)
        signs.append(sign)
    waited = len(signs) * pulse.tick
    assert silence_longest <= waited < silence_longest + pulse.tick
    assert every * 1.5 > silence_longest or Sign.PING in signs
