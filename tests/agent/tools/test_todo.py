"""The plan stands in the conversation: who goes back in that goes back in the plan."""

from __future__ import annotations

import pytest

from holdfast.agent.memory import MemoryToolContext
from holdfast.agent.model import (
    AnyMessage,
    ModelMessage,
    Task,
    TaskProgress,
    ToolCall,
    ToolMessage,
    ToolResult,
)
from holdfast.agent.tools.todo import TodoTool

pytestmark = pytest.mark.anyio


async def test_the_plan_goes_with_the_conversation() -> None:
    said: list[AnyMessage] = []
    tool = TodoTool(lambda: reversed(said))

    async def use(name: str, *changes: dict[str, object]) -> ToolResult:
        done = await tool.use(
            {"changes": list(changes)} if changes else {}, MemoryToolContext(name)
        )
        said.append(ModelMessage(calls=(ToolCall(name, "tasks", "{}"),)))
        said.append(ToolMessage(name, done.text))
        return done

    added = await use("1", {"action": "add", "text": "a"}, {"action": "add", "text": "b"})
    await use("2", {"action": "update", "number": 1, "progress": "done"})
    shown = await use("3")
    del said[2:]
    back = await use("4", {"action": "update", "number": 2, "progress": "begun"})

    assert added.plan == (Task(1, "a"), Task(2, "b"))
    assert shown == ToolResult("[x] 1. a\n[ ] 2. b\n1 of 2 are done.")
    assert back.plan == (Task(1, "a"), Task(2, "b", TaskProgress.BEGUN))


def test_it_is_told_to_the_person() -> None:
    tool = TodoTool(tuple)

    assert (tool.spec.name, tool.only_reads) == ("tasks", False)
    assert tool.title({}) == "Look at the plan"
    assert tool.title({"changes": [{"action": "add", "text": "x"}]}) == "Plan"
