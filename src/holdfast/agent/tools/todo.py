"""Tool for the model's task list, which is stored in the conversation alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Final

import msgspec
from msgspec.structs import replace

from holdfast.agent.arguments import fields, given, number, several, text
from holdfast.agent.failures import ToolRefused
from holdfast.agent.model import (
    AnyMessage,
    ModelMessage,
    Task,
    TaskProgress,
    ToolMessage,
    ToolResult,
    ToolSpec,
)
from holdfast.agent.permission_rules import single_line
from holdfast.agent.ports import ToolContext

# The list is changed as a whole, and read back from the tool's last result, so that it follows the
# conversation when the person goes back to an earlier message.

TOOL: Final = "tasks"
TASKS_MAX: Final = 100
_TEXT_MAX: Final = 200
_SIGNS: Final = {TaskProgress.OPEN: " ", TaskProgress.BEGUN: "~", TaskProgress.DONE: "x"}
_LINE: Final = re.compile(r"\[([ ~x])\] (\d{1,6})\. (.+)")

TodoPlan = tuple[Task, ...]


class TodoAction(StrEnum):
    """What to do with a task."""

    ADD = "add"
    UPDATE = "update"
    REMOVE = "remove"


class TodoChange(msgspec.Struct, frozen=True):
    """One change of the list."""

    action: TodoAction
    number: int = 0
    text: str = ""
    progress: TaskProgress | None = None


def changed(plan: TodoPlan, steps: Sequence[TodoChange]) -> TodoPlan:
    """Apply all changes; raises ToolRefused, without any change, if one is not valid."""
    for step in steps:
        plan = _changed(plan, step)
    return plan


def formatted(plan: TodoPlan) -> str:
    """Format the list for the model."""
    if not plan:
        return "There are no tasks."
    lines = [f"[{_SIGNS[task.progress]}] {task.number}. {task.text}" for task in plan]
    done = sum(task.progress is TaskProgress.DONE for task in plan)
    return "\n".join([*lines, f"{done} of {len(plan)} are done."])


def plan_in(newest_first: Iterable[AnyMessage]) -> TodoPlan:
    """Return the list from its last result in the conversation."""
    results: dict[str, str] = {}
    for message in newest_first:
        if isinstance(message, ToolMessage) and not message.is_error:
            results[message.call] = message.text
        elif isinstance(message, ModelMessage):
            for call in reversed(message.calls):
                if call.tool == TOOL and call.id in results:
                    return read(results[call.id])
    return ()


def read(text: str) -> TodoPlan:
    """Parse a list as `formatted` formats it."""
    progress = {sign: each for each, sign in _SIGNS.items()}
    found = (_LINE.fullmatch(line) for line in text.split("\n"))
    return tuple(Task(int(each[2]), each[3], progress[each[1]]) for each in found if each)


def _changed(plan: TodoPlan, step: TodoChange) -> TodoPlan:
    text = single_line(step.text, chars_max=_TEXT_MAX)
    if step.action is TodoAction.ADD:
        if not text:
            raise ToolRefused(reason="a task needs a text")
        if len(plan) >= TASKS_MAX:
            raise ToolRefused(reason=f"there are {TASKS_MAX} tasks already; remove some")
        number = max((task.number for task in plan), default=0) + 1
        return (*plan, Task(number, text, step.progress or TaskProgress.OPEN))
    if all(task.number != step.number for task in plan):
        raise ToolRefused(reason=f"there is no task {step.number}")
    if step.action is TodoAction.REMOVE:
        return tuple(task for task in plan if task.number != step.number)
    return tuple(
        replace(task, text=text or task.text, progress=step.progress or task.progress)
        if task.number == step.number
        else task
        for task in plan
    )


_SPEC: Final = ToolSpec(
    name=TOOL,
    description=(
        "Keep a plan of what you mean to do, which the person sees. For work of several steps: add "
        "them first, then update each as you begin it and when it is done. All changes of a call "
        "are made, or none. Without changes it shows the plan."
    ),
    parameters=fields(
        (),
        changes=several(
            "What to change, in order.",
            fields(
                ("action",),
                action=text("What to do.", of=tuple(TodoAction)),
                number=number("For update and remove: which task.", least=1),
                text=text("What is to be done, in a line."),
                progress=text("How far it is.", of=tuple(TaskProgress)),
            ),
        ),
    ),
)

ReadMessages = Callable[[], Iterable[AnyMessage]]
"""Returns the messages from the head of the conversation to its root."""


class _Given(msgspec.Struct, frozen=True):
    changes: list[TodoChange] = []


class TodoTool:
    """Changes the task list."""

    spec = _SPEC
    only_reads = False

    def __init__(self, said: ReadMessages) -> None:
        self._said = said

    def title(self, arguments: dict[str, object]) -> str:
        return "Plan" if given(arguments, _Given).changes else "Look at the plan"

    async def use(self, arguments: dict[str, object], context: ToolContext) -> ToolResult:
        """Apply changes, and return the whole list."""
        del context  # unused: the port's signature
        steps = given(arguments, _Given).changes
        after = changed(plan_in(self._said()), steps)
        return ToolResult(formatted(after), plan=after if steps else None)
