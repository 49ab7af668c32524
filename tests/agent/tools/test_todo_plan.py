"""A plan changes as a whole, and is read back from its last result."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.agent.failures import ToolRefused
from holdfast.agent.model import (
    AnyMessage,
    ModelMessage,
    Task,
    TaskProgress,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from holdfast.agent.tools.todo import (
    TASKS_MAX,
    TodoAction,
    TodoChange,
    changed,
    formatted,
    plan_in,
    read,
)

PLAN = (Task(1, "one"), Task(3, "three", TaskProgress.BEGUN))


@pytest.mark.parametrize(
    ("step", "plan"),
    [
        (TodoChange(TodoAction.ADD, text="four\n more"), (*PLAN, Task(4, "four more"))),
        (
            TodoChange(TodoAction.ADD, text="x", progress=TaskProgress.DONE),
            (*PLAN, Task(4, "x", TaskProgress.DONE)),
        ),
        (
            TodoChange(TodoAction.UPDATE, 1, progress=TaskProgress.DONE),
            (Task(1, "one", TaskProgress.DONE), PLAN[1]),
        ),
        (TodoChange(TodoAction.UPDATE, 3, text="3"), (PLAN[0], Task(3, "3", TaskProgress.BEGUN))),
        (TodoChange(TodoAction.REMOVE, 1), (PLAN[1],)),
    ],
)
def test_a_change(step: TodoChange, plan: tuple[Task, ...]) -> None:
    assert changed(PLAN, [step]) == plan


@pytest.mark.parametrize(
    "step",
    [
        TodoChange(TodoAction.ADD),
        TodoChange(TodoAction.UPDATE, 2, text="x"),
        TodoChange(TodoAction.REMOVE, 9),
    ],
)
def test_a_wrong_change_stops_all(step: TodoChange) -> None:
    with pytest.raises(ToolRefused):
        changed(PLAN, [TodoChange(TodoAction.REMOVE, 1), step])


def test_a_plan_does_not_grow_for_ever() -> None:
    with pytest.raises(ToolRefused, match="already"):
        changed((), [TodoChange(TodoAction.ADD, text="x")] * (TASKS_MAX + 1))


def test_it_is_told() -> None:
    assert formatted(PLAN) == "[ ] 1. one\n[~] 3. three\n0 of 2 are done."
    assert formatted(()) == "There are no tasks."


STEPS = st.builds(
    TodoChange,
    st.just(TodoAction.ADD),
    text=st.text(min_size=1).filter(lambda text: text.strip() != ""),
    progress=st.sampled_from([None, *TaskProgress]),
)


@settings(deadline=None)
@given(st.lists(STEPS, max_size=10))
def test_any_plan_is_read_back(steps: list[TodoChange]) -> None:
    plan = changed((), steps)
    assert read(f"{formatted(plan)}\n[And a word of whoever carries it.]") == plan


def test_the_last_word_in_the_conversation_counts() -> None:
    def call(name: str, tool: str = "tasks") -> ModelMessage:
        return ModelMessage(calls=(ToolCall(name, tool, "{}"),))

    older, newer = (Task(1, "old"),), (Task(1, "new"),)
    said: list[AnyMessage] = [
        call("a"),
        ToolMessage("a", formatted(older)),
        UserMessage("go on"),
        call("b"),
        ToolMessage("b", formatted(newer)),
        call("c"),
        ToolMessage("c", "there is no task 9", is_error=True),
        call("d", "read"),
        ToolMessage("d", formatted(older)),
    ]

    assert plan_in(reversed(said)) == newer
    assert plan_in(reversed(said[:4])) == older
    assert plan_in([]) == ()
