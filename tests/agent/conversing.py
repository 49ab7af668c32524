"""A conversation in memory: scripted models, small tools, and a memory that a host would keep."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import TypeVar

import anyio
import anyio.lowlevel
import msgspec

from holdfast.agent.conversation import Talk, converse
from holdfast.agent.history.tree import Tree
from holdfast.agent.loop import Budget, Crashes
from holdfast.agent.model import (
    AnyPiece,
    Asking,
    Choice,
    Done,
    Memo,
    ModelMessage,
    Over,
    Prompt,
    Said,
    Tokens,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from holdfast.agent.ports import Desk, Models, Tool
from holdfast.agent.providers.scripted import Line, ScriptedCall, ScriptedModels
from holdfast.agent.turn_context import Kit, Told
from holdfast.failures import RetryPolicy

CHOICE = Choice("scripted", "script")
ONCE = RetryPolicy(waits=())
Kind = TypeVar("Kind")

Use = Callable[[dict[str, object], Desk], Awaitable[Done]]


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

    async def use(self, arguments: dict[str, object], desk: Desk) -> Done:
        self.uses.append(arguments)
        return await self._use(arguments, desk)


async def echo(arguments: dict[str, object], desk: Desk) -> Done:
    """Say what it was told, after showing it."""
    desk.show("…")
    await anyio.lowlevel.checkpoint()
    return Done(str(arguments.get("text", "")))


async def hang(arguments: dict[str, object], desk: Desk) -> Done:
    """Never return."""
    del arguments, desk
    await anyio.sleep_forever()
    raise AssertionError


async def crash(arguments: dict[str, object], desk: Desk) -> Done:
    """Raise what nobody foresaw."""
    raise ZeroDivisionError("by zero")


async def inquire(arguments: dict[str, object], desk: Desk) -> Done:
    """Ask the person, and say what they said."""
    return Done(await desk.ask("May I?", choices=("yes", "no"), is_leave=True))


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
        self, choice: Choice, prompt: Prompt
    ) -> AsyncGenerator[AsyncGenerator[Sequence[AnyPiece]]]:
        async with self._models.answering(choice, prompt) as pieces:
            yield _paced(pieces)

    def window(self, choice: Choice) -> int | None:
        return self._models.window(choice)

    def price(self, choice: Choice, tokens: Tokens) -> float | None:
        return self._models.price(choice, tokens)


async def _paced(
    pieces: AsyncGenerator[Sequence[AnyPiece]],
) -> AsyncGenerator[Sequence[AnyPiece]]:
    async for batch in pieces:
        await anyio.sleep(0.001)
        yield batch


class Stand:
    """What conversations are held with, and what is kept of them."""

    def __init__(
        self,
        lines: Sequence[Line],
        *,
        tools: Sequence[Tool] | None = None,
        budget: Budget | None = None,
        window: int | None = None,
        models: Models | None = None,
        policy: RetryPolicy = ONCE,
    ) -> None:
        self.scripted = ScriptedModels(lines, window=window, policy=policy)
        self.tools = small_tools() if tools is None else tuple(tools)
        self.kit = Kit(
            models=models or Paced(self.scripted),
            choice=CHOICE,
            tools={tool.spec.name: tool for tool in self.tools},
            system="You are a test.",
            budget=budget or Budget(),
        )
        self.memory: list[bytes] = []
        self.crashes = Crashes()

    @asynccontextmanager
    async def talk(self) -> AsyncGenerator[Talk]:
        """A conversation that remembers."""
        async with converse(self.kit, lambda: map(msgspec.Raw, self.memory), self.crashes) as talk:
            yield talk

    @property
    def tree(self) -> Tree:
        """Where the conversation stands, by what was kept."""
        tree = Tree()
        for memo in self.memory:
            tree.read(memo)
        return tree

    @property
    def history(self) -> list[str]:
        """What the model would be told, in short."""
        return [in_short(each) for each in self.tree.line.said]

    def keep(self, batch: Sequence[Told]) -> None:
        """Keep what is to be kept of a batch, as a host does."""
        self.memory += [msgspec.json.encode(each) for each in batch if isinstance(each, Memo)]

    async def turn(
        self,
        talk: Talk,
        prompt: str = "go",
        how: Mapping[str, str] | None = None,
        *,
        answer: str = "",
        heed: Callable[[Told], None] | None = None,
    ) -> list[Told]:
        """Take a turn to its end; every question is answered so."""
        told: list[Told] = []
        async with aclosing(talk.take_turn(prompt, how or {})) as batches:
            async for batch in batches:
                self.keep(batch)
                told += batch
                for each in batch:
                    if isinstance(each, Asking) and answer:
                        assert talk.answer(each.question, answer)
                    if heed is not None:
                        heed(each)
        return told

    async def whole(self, prompt: str = "go", *, answer: str = "") -> list[Told]:
        """One turn of a conversation of its own."""
        async with self.talk() as talk:
            return await self.turn(talk, prompt, answer=answer)


def in_short(said: Said) -> str:
    match said.message:
        case UserMessage(text):
            return f"user: {text}"
        case ToolMessage(_, text):
            return f"tool: {text}"
        case ModelMessage(text, _, calls):
            return f"model: {text}{''.join(f' [{each.tool}]' for each in calls)}"


def only(told: Sequence[Told], kind: type[Kind]) -> list[Kind]:
    """Those of one kind."""
    return [each for each in told if isinstance(each, kind)]


def end(told: Sequence[Told]) -> Over:
    """How it ended, which is told once and last."""
    (over,) = only(told, Over)
    assert told[-1] is over
    return over


def calls(*tools: str, say: str = "", text: str = "t") -> Line:
    """An answer that calls for these tools."""
    made = tuple(ScriptedCall(tool, {"text": f"{text}{at}"}) for at, tool in enumerate(tools))
    return Line(say=say, calls=made)


def says(text: str) -> Line:
    """An answer that ends a turn."""
    return Line(say=text)
