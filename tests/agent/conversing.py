"""A conversation in memory: scripted models, small tools, and a memory that a host would keep."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import TypeVar

import anyio
import anyio.lowlevel
import msgspec

from holdfast.agent.conversation import AgentConversation, open_conversation
from holdfast.agent.history.tree import ConversationTree
from holdfast.agent.loop import BudgetLimits, CrashHistory
from holdfast.agent.model import (
    AnyAnswerDelta,
    ConversationRecord,
    ModelChoice,
    ModelMessage,
    ModelRequest,
    PromptMessage,
    Tokens,
    ToolMessage,
    ToolResult,
    ToolSpec,
    TurnOver,
    TurnQuestion,
    UserMessage,
)
from holdfast.agent.ports import Models, Tool, ToolContext
from holdfast.agent.providers.scripted import ScriptedAnswer, ScriptedCall, ScriptedModels
from holdfast.agent.turn_context import AgentConfig, TurnItem
from holdfast.failures import RetryPolicy

CHOICE = ModelChoice("scripted", "script")
ONCE = RetryPolicy(waits=())
Kind = TypeVar("Kind")

Use = Callable[[dict[str, object], ToolContext], Awaitable[ToolResult]]


class Small:
    """A tool that is one function; it counts how often it was used."""

    def __init__(self, name: str, use: Use, *, only_reads: bool = False) -> None:
        parameters = {"type": "object", "properties": {"text": {"type": "string"}}}
        self.spec = ToolSpec(name, f"does {name}", dict[str, object](parameters))
        self.only_reads = only_reads
        self.uses: list[dict[str, object]] = []
        self._use = use

    def title(self, arguments: dict[str, object]) -> str:
        return f"{self.spec.name} {arguments.get('text', '')}".strip()

    async def use(self, arguments: dict[str, object], context: ToolContext) -> ToolResult:
        self.uses.append(arguments)
        return await self._use(arguments, context)


async def echo(arguments: dict[str, object], context: ToolContext) -> ToolResult:
    """Say what it was told, after showing it."""
    context.show("…")
    await anyio.lowlevel.checkpoint()
    return ToolResult(str(arguments.get("text", "")))


async def hang(arguments: dict[str, object], context: ToolContext) -> ToolResult:
    """Never return."""
    del arguments, context
    await anyio.sleep_forever()
    raise AssertionError


async def crash(arguments: dict[str, object], context: ToolContext) -> ToolResult:
    """Raise what nobody foresaw."""
    raise ZeroDivisionError("by zero")


async def inquire(arguments: dict[str, object], context: ToolContext) -> ToolResult:
    """Ask the person, and say what they said."""
    return ToolResult(await context.ask("May I?", choices=("yes", "no"), is_permission=True))


def small_tools() -> tuple[Small, ...]:
    """One of each."""
    return (
        Small("look", echo, only_reads=True),
        Small("mark", echo),
        Small("hang", hang),
        Small("crash", crash),
        Small("inquire", inquire),
    )


class Paced:
    """Models that take a moment for every piece."""

    def __init__(self, models: Models) -> None:
        self._models = models

    @asynccontextmanager
    async def answering(
        self, choice: ModelChoice, prompt: ModelRequest
    ) -> AsyncGenerator[AsyncGenerator[Sequence[AnyAnswerDelta]]]:
        async with self._models.answering(choice, prompt) as pieces:
            yield _paced(pieces)

    def window(self, choice: ModelChoice) -> int | None:
        return self._models.window(choice)

    def price(self, choice: ModelChoice, tokens: Tokens) -> float | None:
        return self._models.price(choice, tokens)


async def _paced(
    pieces: AsyncGenerator[Sequence[AnyAnswerDelta]],
) -> AsyncGenerator[Sequence[AnyAnswerDelta]]:
    async for batch in pieces:
        await anyio.sleep(0.001)
        yield batch


class Stand:
    """What conversations are held with, and what is kept of them."""

    def __init__(
        self,
        lines: Sequence[ScriptedAnswer],
        *,
        tools: Sequence[Tool] | None = None,
        budget: BudgetLimits | None = None,
        window: int | None = None,
        models: Models | None = None,
        policy: RetryPolicy = ONCE,
    ) -> None:
        self.scripted = ScriptedModels(lines, window=window, policy=policy)
        self.tools = small_tools() if tools is None else tuple(tools)
        self.config = AgentConfig(
            models=models or Paced(self.scripted),
            choice=CHOICE,
            tools={tool.spec.name: tool for tool in self.tools},
            system="You are a test.",
            budget=budget or BudgetLimits(),
        )
        self.memory: list[bytes] = []
        self.crashes = CrashHistory()

    @asynccontextmanager
    async def talk(self) -> AsyncGenerator[AgentConversation]:
        """A conversation that remembers."""
        async with open_conversation(
            self.config, lambda: map(msgspec.Raw, self.memory), self.crashes
        ) as talk:
            yield talk

    @property
    def tree(self) -> ConversationTree:
        """Where the conversation stands, by what was kept."""
        tree = ConversationTree()
        for memo in self.memory:
            tree.read(memo)
        return tree

    @property
    def history(self) -> list[str]:
        """What the model would be told, in short."""
        return [in_short(each) for each in self.tree.line.said]

    def keep(self, batch: Sequence[TurnItem]) -> None:
        """Keep what is to be kept of a batch, as a host does."""
        self.memory += [
            msgspec.json.encode(each) for each in batch if isinstance(each, ConversationRecord)
        ]

    async def turn(
        self,
        talk: AgentConversation,
        prompt: str = "go",
        how: Mapping[str, str] | None = None,
        *,
        answer: str = "",
        heed: Callable[[TurnItem], None] | None = None,
    ) -> list[TurnItem]:
        """Take a turn to its end; every question is answered so."""
        told: list[TurnItem] = []
        async with aclosing(talk.take_turn(prompt, how or {})) as batches:
            async for batch in batches:
                self.keep(batch)
                told += batch
                for each in batch:
                    if isinstance(each, TurnQuestion) and answer:
                        assert talk.answer(each.question, answer)
                    if heed is not None:
                        heed(each)
        return told

    async def whole(self, prompt: str = "go", *, answer: str = "") -> list[TurnItem]:
        """One turn of a conversation of its own."""
        async with self.talk() as talk:
            return await self.turn(talk, prompt, answer=answer)


def in_short(said: PromptMessage) -> str:
    match said.message:
        case UserMessage(text):
            return f"user: {text}"
        case ToolMessage(_, text):
            return f"tool: {text}"
        case ModelMessage(text, _, calls):
            return f"model: {text}{''.join(f' [{each.tool}]' for each in calls)}"


def only(told: Sequence[TurnItem], kind: type[Kind]) -> list[Kind]:
    """Those of one kind."""
    return [each for each in told if isinstance(each, kind)]


def end(told: Sequence[TurnItem]) -> TurnOver:
    """How it ended, which is told once and last."""
    (over,) = only(told, TurnOver)
    assert told[-1] is over
    return over


def calls(*tools: str, say: str = "", text: str = "t") -> ScriptedAnswer:
    """An answer that calls for these tools."""
    made = tuple(ScriptedCall(tool, {"text": f"{text}{at}"}) for at, tool in enumerate(tools))
    return ScriptedAnswer(say=say, calls=made)


def says(text: str) -> ScriptedAnswer:
    """An answer that ends a turn."""
    return ScriptedAnswer(say=text)
