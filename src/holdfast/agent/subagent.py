"""Tool that delegates a task to a sub-agent with a conversation of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from holdfast.agent.history.tree import ConversationTree
from holdfast.agent.loop import BudgetLimits
from holdfast.agent.model import (
    ModelText,
    ToolResult,
    ToolSpec,
    ToolUse,
    ToolUseEnded,
    TurnNote,
    TurnOutcome,
    TurnOver,
    TurnQuestion,
    UsageRecorded,
)
from holdfast.agent.permission_rules import single_line
from holdfast.agent.ports import ToolContext
from holdfast.agent.text import RECALL
from holdfast.agent.tools.recall import RecallTool
from holdfast.agent.turn import AgentTurn
from holdfast.agent.turn_context import (
    AgentConfig,
    ConversationLog,
    KeyRedactor,
    TurnItem,
    TurnQueue,
    nothing,
)
from holdfast.world import background_tasks

NAME: Final = "sub_agent"
BUDGET: Final = BudgetLimits(steps=100, seconds=540.0)
_TITLE_MAX: Final = 100

_SPEC: Final = ToolSpec(
    NAME,
    "Have another agent do a part of the work: it has your tools and the project, but knows only "
    "what you tell it here, and cannot ask the person. You get its last words.",
    {
        "type": "object",
        "properties": {
            "task": {
                "type": "string",
                "description": "all that it has to know, and what it is to answer",
            }
        },
        "required": ["task"],
        "additionalProperties": False,
    },
)


class SubAgent:
    """Runs sub-agents; they do not have this tool, so delegation is one level deep."""

    spec = _SPEC
    only_reads = False

    def __init__(self, config: AgentConfig, *, budget: BudgetLimits = BUDGET) -> None:
        assert NAME not in config.tools, "one below another is enough"
        # No `clear`: the processes of the session are shared with the main agent.
        self._config = replace(config, budget=budget, clear=nothing)

    def title(self, arguments: dict[str, object]) -> str:
        return f"Sub-agent: {' '.join(str(arguments.get('task', '')).split())[:_TITLE_MAX]}"

    async def use(self, arguments: dict[str, object], context: ToolContext) -> ToolResult:
        """Run a sub-agent, and return its last answer; cancellation ends it."""
        tree, queue = ConversationTree(), TurnQueue()
        config = replace(
            self._config, tools={**self._config.tools, RECALL: RecallTool(tree.result)}
        )
        turn = AgentTurn(
            config, ConversationLog(tree, queue, KeyRedactor(config.known)), config.choice
        )
        story = _SubAgentTurn(context)
        async with background_tasks() as tasks:
            tasks.start_soon(turn.run, str(arguments["task"]))
            while story.over is None:
                batch = await queue.take()
                story.hear(batch)
                for asking in (each for each in batch if isinstance(each, TurnQuestion)):
                    tasks.start_soon(_pass_on, asking, context, turn)
        return story.done()


async def _pass_on(asking: TurnQuestion, context: ToolContext, turn: AgentTurn) -> None:
    """Ask the person on behalf of the sub-agent."""
    title = f"Sub-agent: {asking.title}"
    said = await context.ask(
        title, asking.detail, asking.choices, is_permission=asking.is_permission
    )
    turn.answer(asking.question, said)


class _SubAgentTurn:
    """Output of a sub-agent, and its result."""

    def __init__(self, context: ToolContext) -> None:
        self.over: TurnOver | None = None
        self._desk = context
        self._seen: list[str] = []  # displayed so far
        self._last = ""
        self._spent: list[UsageRecorded] = []
        self._paths: dict[str, None] = {}

    def hear(self, batch: Sequence[TurnItem]) -> None:
        for each in batch:
            match each:
                case ModelText(text=text, is_thinking=False, continues=continues):
                    self._last = self._last + text if continues else text
                    self._show(text)
                case ToolUse(title=title):
                    self._show(f"▸ {title}")
                case ToolUseEnded(done=done):
                    self._paths |= dict.fromkeys(done.paths)
                    if done.is_error:
                        self._show(f"  ✗ {single_line(done.text, chars_max=_TITLE_MAX)}")
                case TurnNote(text):
                    self._show(f"! {text}")
                case UsageRecorded():
                    self._spent.append(each)
                case TurnOver():
                    self.over = each
                case _:
                    pass

    def _show(self, text: str) -> None:
        self._seen.append(f"{text}\n")
        self._desk.show(self._seen[-1])

    def done(self) -> ToolResult:
        assert self.over is not None, "it is heard to its end"
        failure, text = self.over.failure, self._last or "(The sub-agent said nothing.)"
        if self.over.ending is not TurnOutcome.COMPLETED:
            why = "it was stopped" if failure is None else str(failure.get("userMessage"))
            text = f"The sub-agent did not finish: {why}\nIts last words: {text}"
            self._show(f"! It did not finish: {why}")
        return ToolResult(
            text,
            is_error=self.over.ending is not TurnOutcome.COMPLETED,
            shown="".join(self._seen),
            paths=tuple(self._paths),
            spent=tuple(self._spent),
        )
