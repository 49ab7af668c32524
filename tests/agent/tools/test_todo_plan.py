"""A plan changes as a whole, and is what was last told of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.agent.failures import ToolRefused
from holdfast.agent.model import (
    AnyMessage,
    Call,
    ModelMessage,
    Progress,
    Task,
    ToolMessage,
    UserMessage,
)
from holdfast.agent.tools.todo import TASKS_MAX, Deed, Step, changed, plan_in, read, told

PLAN = (Task(1, "one"), Task(3, "three", Progress.BEGUN))


@pytest.mark.parametrize(
    ("step", "plan"),
    [
        (Step(Deed.ADD, text="four\n more"), (*PLAN, Task(4, "four more"))),
        (Step(Deed.ADD, text="x", progress=Progress.DONE), (*PLAN, Task(4, "x", Progress.DONE))),
        (Step(Deed.UPDATE, 1, progress=Progress.DONE), (Task(1, "one", Progress.DONE), PLAN[1])),
        (Step(Deed.UPDATE, 3, text="3"), (PLAN[0], Task(3, "3", Progress.BEGUN))),
        (Step(Deed.REMOVE, 1), (PLAN[1],)),
    ],
)
def test_a_change(step: Step, plan: tuple[Task, ...]) -> None:
    assert changed(PLAN, [step]) == plan


@pytest.mark.parametrize(
    "step", [Step(Deed.ADD), Step(Deed.UPDATE, 2, text="x"), Step(Deed.REMOVE, 9)]
)
def test_a_wrong_change_stops_all(step: Step) -> None:
    with pytest.raises(ToolRefused):
        changed(PLAN, [Step(Deed.REMOVE, 1), step])


def test_a_plan_does_not_grow_for_ever() -> None:
    with pytest.raises(ToolRefused, match="already"):
        changed((), [Step(Deed.ADD, text="x")] * (TASKS_MAX + 1))


def test_it_is_told() -> None:
    assert told(PLAN) == "[ ] 1. one\n[~] 3. three\n0 of 2 are done."
    assert told(()) == "There are no tasks."


STEPS = st.builds(
    Step,
    st.just(Deed.ADD),
    text=st.text(min_size=1).filter(lambda text: text.strip() != ""),
    progress=st.sampled_from([None, *Progress]),
)


@settings(deadline=None)
@given(st.lists(STEPS, max_size=10))
def test_any_plan_is_read_back(steps: list[Step]) -> None:
    plan = changed((), steps)
    assert read(f"{told(plan)}\n[And a word of whoever carries it.]") == plan


def test_the_last_word_in_the_conversation_counts() -> None:
    def call(name: str, tool: str = "tasks") -> ModelMessage:
        return ModelMessage(calls=(Call(name, tool, "{}"),))

    older, newer = (Task(1, "old"),), (Task(1, "new"),)
    said: list[AnyMessage] = [
        call("a"),
        ToolMessage("a", told(older)),
        UserMessage("go on"),
        call("b"),
        ToolMessage("b", told(newer)),
        call("c"),
        ToolMessage("c", "there is no task 9", is_error=True),
        call("d", "read"),
        ToolMessage("d", told(older)),
    ]

    assert plan_in(reversed(said)) == newer
    assert plan_in(reversed(said[:4])) == older
    assert plan_in([]) == ()
