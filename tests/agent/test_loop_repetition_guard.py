"""A call that is repeated while nothing changes is told to the model, and then stopped."""

from __future__ import annotations

import pytest

from holdfast.agent.loop import STOP_AT, WARN_AT, RepetitionGuard, verdict, warning
from holdfast.agent.model import ToolCall

LOOK = ToolCall("c1", "look", '{"at":1}')
OTHER = ToolCall("c2", "look", '{"at":2}')


def test_the_same_result_of_the_same_call_is_counted() -> None:
    guard = RepetitionGuard()

    assert [guard.note(LOOK, "same") for _ in range(3)] == [1, 2, 3]
    assert guard.note(LOOK, "other") == 1
    assert guard.note(LOOK, "same") == 1


def test_calls_that_alternate_without_effect_are_counted() -> None:
    guard = RepetitionGuard()
    guard.note(LOOK, "same")
    guard.note(OTHER, "same")

    assert [guard.note(each, "same") for each in (LOOK, OTHER) * 3] == [1, 2, 2, 3, 3, 4]


@pytest.mark.promise("A1")
@pytest.mark.parametrize("between", ["change", "new call", "other result"])
def test_anything_new_in_between_starts_the_counts_again(between: str) -> None:
    guard = RepetitionGuard()
    counts: list[int] = []
    for at in range(STOP_AT + 2):
        counts.append(guard.note(LOOK, "quiet"))
        if between == "change":
            guard.note(OTHER, "Changed f.", is_change=True)
        elif between == "new call":
            guard.note(ToolCall("c", "shell", f'{{"command":"sed -i {at}"}}'), "")
        else:
            guard.note(OTHER, f"result {at}")

    assert set(counts) == {1}


def test_the_model_is_warned_first_and_the_turn_stopped_later() -> None:
    warned = [at for at in range(1, STOP_AT + 1) if warning(LOOK, at)]
    assert warned == list(WARN_AT)
    assert f"{WARN_AT[0]} times by now" in warning(LOOK, WARN_AT[0])
    assert verdict(LOOK, STOP_AT - 1) is None
    stopped = verdict(LOOK, STOP_AT)
    assert stopped is not None
    assert stopped.details == {"tool": "look", "times": STOP_AT}


def test_only_so_many_calls_are_known() -> None:
    guard = RepetitionGuard()
    guard.note(LOOK, "same")
    for at in range(2_000):
        guard.note(ToolCall("c", "look", str(at)), "same")

    assert guard.note(LOOK, "same") == 1
