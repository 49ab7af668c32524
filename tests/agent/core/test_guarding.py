"""Who does the same again, and gets the same, is told and then stopped."""

from __future__ import annotations

from holdfast.agent.core.guarding import STOP_AT, TELL_AT, Guard, verdict, word
from holdfast.agent.model import Call

LOOK = Call("c1", "look", '{"at":1}')


def test_the_same_result_of_the_same_call_is_counted() -> None:
    guard = Guard()

    assert [guard.note(LOOK, "same") for _ in range(3)] == [1, 2, 3]
    assert guard.note(Call("c2", "look", '{"at":2}'), "same") == 1
    assert guard.note(LOOK, "same") == 4, "other calls in between change nothing"
    assert guard.note(LOOK, "other") == 1
    assert guard.note(LOOK, "same") == 1


def test_it_is_told_first_and_stopped_later() -> None:
    assert word(LOOK, TELL_AT - 1) == ""
    assert f"{TELL_AT} times by now" in word(LOOK, TELL_AT)
    assert verdict(LOOK, STOP_AT - 1) is None
    stopped = verdict(LOOK, STOP_AT)
    assert stopped is not None
    assert stopped.details == {"tool": "look", "times": STOP_AT}


def test_only_so_many_ways_are_known() -> None:
    guard = Guard()
    guard.note(LOOK, "same")
    for at in range(2_000):
        guard.note(Call("c", "look", str(at)), "same")

    assert guard.note(LOOK, "same") == 1
