"""The recovery machine, row by row and then in any order."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from holdfast.exec.client.recovery import (
    Connected,
    Dial,
    Dropped,
    Event,
    Failed,
    Recovering,
    RecoveryPolicy,
    Resumed,
    State,
    Step,
    begin,
    step,
)
from holdfast.exec.failures import RecoveryTimedOut, SessionAttached, SessionExpired
from holdfast.failures import Failure
from holdfast.rpc.failures import ConnectionLost

POLICY = RecoveryPolicy(window=10.0, wait_first=1.0, wait_longest=4.0, settled=3.0)
LOST, GONE = ConnectionLost(reason="reset"), SessionExpired(session="s")
HELD = SessionAttached(session="s")
TIMED_OUT = RecoveryTimedOut(window=10.0, attempts=3)


def test_the_first_dial_waits_for_nothing() -> None:
    assert begin(5.0, POLICY) == (Recovering(1, 15.0, 1), (Dial(1, 0.0, 15.0),))


@pytest.mark.promise("X1", "X3", "X8")
@pytest.mark.parametrize(
    ("state", "event", "expected"),
    [
        (
            Connected(7, 2.0, 4),
            Dropped(7, LOST, at=5.0),
            (Recovering(8, 15.0, 1), (Dial(8, 0.0, 15.0),)),
        ),
        (
            Connected(7, 4.0, 1),
            Dropped(7, LOST, at=5.0),
            (Recovering(8, 15.0, 2), (Dial(8, 1.0, 15.0),)),
        ),
        (Connected(7, 2.0, 1), Dropped(7, GONE, at=5.0), (Failed(GONE), ())),
        (Recovering(7, 15.0, 2), Resumed(7, at=6.0), (Connected(7, 6.0, 2), ())),
        (
            Recovering(7, 15.0, 1),
            Dropped(7, LOST, at=6.0),
            (Recovering(8, 15.0, 2), (Dial(8, 1.0, 15.0),)),
        ),
        (
            Recovering(7, 15.0, 1),
            Dropped(7, HELD, at=6.0),
            (Recovering(8, 15.0, 2), (Dial(8, 1.0, 15.0),)),
        ),
        (Recovering(7, 15.0, 3), Dropped(7, LOST, at=11.0), (Failed(TIMED_OUT), ())),
        (Recovering(7, 15.0, 1), Dropped(7, GONE, at=6.0), (Failed(GONE), ())),
    ],
)
def test_transition(state: State, event: Event, expected: Step) -> None:
    assert step(state, event, POLICY) == expected


@pytest.mark.promise("X1")
@pytest.mark.parametrize("state", [Connected(7, 2.0, 1), Recovering(7, 15.0, 1), Failed(GONE)])
@pytest.mark.parametrize("event", [Resumed(6, at=3.0), Dropped(6, LOST, at=3.0)])
def test_news_of_an_old_generation_changes_nothing(state: State, event: Event) -> None:
    assert step(state, event, POLICY) == (state, ())


def test_what_has_failed_stays_failed() -> None:
    assert step(Failed(GONE), Resumed(7, at=3.0), POLICY) == (Failed(GONE), ())


def test_impossible_news_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="cannot happen"):
        step(Connected(7, 0.0, 1), Resumed(7, at=0.0), POLICY)


class AnyOrder(RuleBasedStateMachine):
    """Whatever the network does, at most one dial is open and none outlives its window."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.dials = 0
        self.dialling = False
        self.take(begin(self.now, POLICY))

    def take(self, result: Step) -> None:
        self.state, dials = result
        for dial in dials:
            assert not self.dialling
            self.dialling = True
            self.dials += 1
            assert dial.generation == self.dials
            self.now += dial.wait
            assert self.now < dial.deadline

    @precondition(lambda self: self.dialling)
    @rule()
    def resume(self) -> None:
        self.dialling = False
        self.take(step(self.state, Resumed(self.dials, at=self.now), POLICY))

    @precondition(lambda self: not isinstance(self.state, Failed))
    @rule(after=st.floats(0.0, 12.0), failure=st.sampled_from([LOST, LOST, HELD, GONE]))
    def drop(self, after: float, failure: Failure) -> None:
        self.now += after
        self.dialling = False
        self.take(step(self.state, Dropped(self.dials, failure, at=self.now), POLICY))

    @rule(age=st.integers(1, 5), resumed=st.booleans())
    def late_news(self, age: int, resumed: bool) -> None:
        old = self.dials - age
        event = Resumed(old, at=self.now) if resumed else Dropped(old, GONE, at=self.now)
        assert step(self.state, event, POLICY) == (self.state, ())

    @rule()
    def wait(self) -> None:
        self.now += 1.0

    @invariant()
    def dials_cost_time(self) -> None:
        assert self.dials <= 2 + self.now / POLICY.wait_first

    @invariant()
    def a_dial_is_open_exactly_while_recovering(self) -> None:
        assert self.dialling == isinstance(self.state, Recovering)


TestAnyOrder = AnyOrder.TestCase
