"""A conversation whose every request is looked at by the validators of all three formats."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import replace

import anyio
import msgspec

from holdfast.agent.conversation import TASK, AgentConversation
from holdfast.agent.history.tree import repairs
from holdfast.agent.model import (
    AnyAnswerDelta,
    AnyConversationRecord,
    ModelChoice,
    ModelRequest,
    Tokens,
    ToolCallStarted,
    TurnQuestion,
)
from holdfast.agent.ports import Models
from holdfast.agent.providers.formats import writer
from holdfast.agent.providers.registry import Format, Provider
from holdfast.agent.providers.scripted import ScriptedAnswer
from holdfast.agent.turn_context import TurnItem
from tests.agent.conversing import Paced, Small, Stand, only
from tests.parts.provider_validators import validate


class Validated:
    """Models that are asked only what every provider would accept."""

    def __init__(self, models: Models) -> None:
        self._models = models
        self._writers = {
            form: writer(Provider("scripted", form, "http://127.0.0.1")) for form in Format
        }
        self.requests = 0

    def answering(
        self, choice: ModelChoice, prompt: ModelRequest
    ) -> AbstractAsyncContextManager[AsyncGenerator[Sequence[AnyAnswerDelta]]]:
        for form, each in self._writers.items():
            validate(form, each.body(choice, prompt))
        self.requests += 1
        return self._models.answering(choice, prompt)

    def window(self, choice: ModelChoice) -> int | None:
        return self._models.window(choice)

    def price(self, choice: ModelChoice, tokens: Tokens) -> float | None:
        return self._models.price(choice, tokens)


def stand_of(lines: Sequence[ScriptedAnswer], *, window: int | None = None) -> Stand:
    """A stand with the usual tools, that plays these lines whatever becomes of its turns."""
    stand = Stand(lines, window=window)
    stand.config = replace(stand.config, models=Validated(Paced(stand.scripted)))
    return stand


async def disturbed(
    stand: Stand, talk: AgentConversation, at: int, *, crashes: bool = False, leaves: bool = False
) -> tuple[list[TurnItem], float]:
    """A turn that something is done to when so much of it was told; and how long it went on."""
    told: list[TurnItem] = []
    since = 0.0
    is_done = False
    async with aclosing(talk.take_turn("go", {})) as batches:
        async for batch in batches:
            stand.keep(batch)
            told += batch
            for each in only(batch, TurnQuestion):
                talk.answer(each.question, "yes")
            if len(told) > at and not is_done:
                is_done, since = True, anyio.current_time()
                if leaves:
                    return told, 0.0
                if crashes:
                    crash()
                else:
                    talk.interrupt()
    return told, anyio.current_time() - since if is_done else 0.0


def crash() -> None:
    """Kill the task that takes the turn, if there still is one."""
    for task in asyncio.all_tasks():
        if task.get_name() == TASK:
            task.cancel()


def assert_sound(stand: Stand) -> None:
    """Nothing is open, and no call was carried out twice."""
    tree = stand.tree
    assert not repairs(tree)
    assert not tree.line.open
    memos = [msgspec.json.decode(each, type=AnyConversationRecord) for each in stand.memory]
    begun = [each for each in memos if isinstance(each, ToolCallStarted)]
    assert len({each.call for each in begun}) == len(begun)
    uses = sum(len(tool.uses) for tool in stand.tools if isinstance(tool, Small))
    assert uses <= len(begun)
